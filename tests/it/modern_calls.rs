//! Modern requests at a legacy server and what comes back: the shapes of the revision, the rest
//! as it was spelled.

use serde_json::{Value, json as value};

use crate::support::server::response;
use crate::support::{Modern, NOTHING, Reply, Server, Setup, json, modern};

/// Everything that a server can declare.
const ALL: &str = r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{},"tasks":{"list":{}},"vendor":{"n":1.0}}"#;

const INFO: &str = "io.modelcontextprotocol/serverInfo";

async fn offering(capabilities: &'static str) -> (Server, crate::support::Gateway, Modern) {
    let server = Server::with(|habits| {
        habits.capabilities = capabilities;
        habits.strict = true;
    })
    .await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Modern::new(&gateway, "alpha");
    (server, gateway, client)
}

/// What the server gets is a legacy request in a legacy session, with the client's payload as it was
/// spelled and nothing of the envelope.
#[tokio::test]
async fn a_call_as_the_server_sees_it() {
    let (server, _gateway, client) = offering(ALL).await;
    let arguments = r#"{ "z":1.10, "a":[1e2, -0.0,{"é":"\u00e9"}],"big":12345678901234567890123 }"#;
    let call = client
        .call("\"mine\"", "order", arguments)
        .param("vendor", r#"{"x":1.0}"#)
        .meta("traceparent", "\"00-a-b-01\"")
        .meta("vendor/n", "1.50")
        .header("mcp-param-region", "eu");
    let going = call.start();
    let held = server.called("order").await;
    let seen = held.seen.clone();
    assert_eq!(
        seen.raw(&["params", "arguments"]).as_deref(),
        Some(arguments)
    );
    assert_eq!(
        seen.raw(&["params", "vendor"]).as_deref(),
        Some(r#"{"x":1.0}"#)
    );
    assert_eq!(
        seen.raw(&["params", "_meta", "traceparent"]).as_deref(),
        Some("\"00-a-b-01\"")
    );
    assert_eq!(
        seen.raw(&["params", "_meta", "vendor/n"]).as_deref(),
        Some("1.50")
    );
    let text = seen.text();
    for gone in [
        "protocolVersion",
        "clientCapabilities",
        "clientInfo",
        "requestState",
        "mine",
    ] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
    for name in seen.headers.keys() {
        assert!(
            !["mcp-method", "mcp-name", "mcp-param-region"].contains(&name.as_str()),
            "{name}"
        );
    }
    assert_eq!(seen.header("mcp-protocol-version"), "2025-11-25");
    assert_eq!(seen.session(), server.opened()[0]);
    held.result("{}");
    going.await.unwrap();
}

/// The result gets what the revision wants of every result, and keeps every other byte.
#[tokio::test]
async fn a_result_as_the_client_sees_it() {
    let (server, _gateway, client) = offering(ALL).await;
    let going = client.call("\"mine\"", "order", "{}").start();
    let own = r#"{"content":[ ],"structuredContent":{"z":1.10,"a":1e2},"_meta":{"v":2.0},"vendor":[12345678901234567890123]}"#;
    server.called("order").await.result(own);
    let mut reply = going.await.unwrap();
    assert!(reply.header("content-type").starts_with("application/json"));
    let text = reply.next().await;
    assert_eq!(json::id(&text), "\"mine\"");
    for (member, spelled) in [
        ("content", "[ ]"),
        ("structuredContent", r#"{"z":1.10,"a":1e2}"#),
        ("vendor", "[12345678901234567890123]"),
        ("resultType", "\"complete\""),
    ] {
        assert_eq!(
            json::raw(&text, &["result", member]).as_deref(),
            Some(spelled)
        );
    }
    assert_eq!(
        json::raw(&text, &["result", "_meta", "v"]).as_deref(),
        Some("2.0")
    );
    assert_eq!(
        json::parse(&text)["result"]["_meta"][INFO],
        value!({ "name": "scripted", "version": "1" })
    );
    assert_eq!(
        json::raw(&text, &["result", "ttlMs"]),
        None,
        "a call is not kept"
    );
}

/// The id comes back as it was spelled.
#[tokio::test]
async fn ids_come_back_as_spelled() {
    let (_server, _gateway, client) = modern().await;
    for id in ["7", "\"7\"", "\"\\u0041\"", "9007199254740993", "-1"] {
        let mut reply = client.call(id, "echo", "{}").send().await;
        assert_eq!(json::id(&reply.next().await), id);
    }
}

/// A server that answers in a stream of one message: the client gets it like any other.
#[tokio::test]
async fn a_result_in_a_stream() {
    let (server, _gateway, client) = modern().await;
    let going = client.call("1", "order", "{}").start();
    server
        .called("order")
        .await
        .stream()
        .result(&json::text_result("done"))
        .await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// Lists and what is read say how long they may be kept: a legacy server said nothing, so not at all.
#[tokio::test]
async fn what_can_be_kept_says_how_long() {
    let (server, _gateway, client) = offering(ALL).await;
    let table = [
        ("tools/list", "{}", r#"{"tools":[]}"#, true),
        ("prompts/list", "{}", r#"{"prompts":[]}"#, true),
        ("resources/list", "{}", r#"{"resources":[]}"#, true),
        (
            "resources/templates/list",
            "{}",
            r#"{"resourceTemplates":[]}"#,
            true,
        ),
        (
            "resources/read",
            r#"{"uri":"shop://1"}"#,
            r#"{"contents":[]}"#,
            true,
        ),
        (
            "prompts/get",
            r#"{"name":"greet"}"#,
            r#"{"messages":[]}"#,
            false,
        ),
        (
            "completion/complete",
            r#"{"ref":{},"argument":{}}"#,
            r#"{"completion":{"values":[]}}"#,
            false,
        ),
        ("tools/vendor", "{}", r#"{"x":1.0}"#, false),
        ("vendor/anything", "{}", r#"{"x":1.0}"#, false),
    ];
    for (method, params, own, kept) in table {
        let going = client.request("1", method, params).start();
        server.asked(method).await.result(own);
        let text = going.await.unwrap().next().await;
        let message = json::parse(&text);
        assert_eq!(message["result"]["resultType"], "complete", "{text}");
        assert_eq!(
            message["result"]["_meta"][INFO]["name"], "scripted",
            "{text}"
        );
        let (ttl, scope) = if kept {
            (value!(0), value!("private"))
        } else {
            (Value::Null, Value::Null)
        };
        assert_eq!(message["result"]["ttlMs"], ttl, "{text}");
        assert_eq!(message["result"]["cacheScope"], scope, "{text}");
        for (name, value) in json::members(own) {
            assert_eq!(json::raw(&text, &["result", &name]), Some(value));
        }
    }
    assert_eq!(server.opened().len(), 1, "all in one session");
}

/// A legacy server can't have meant `execution` and `x-mcp-header`: a modern client would act on
/// them, or hide the tool for them.
#[tokio::test]
async fn tools_are_listed_without_what_only_modern_servers_mean() {
    let (server, _gateway, client) = modern().await;
    let going = client.request("1", "tools/list", "{}").start();
    let tools = r#"{"tools":[
        {"name":"plain","inputSchema":{"type":"object","required":["z"],"properties":{"z":{"type":"string"},"a":{"maximum":1.0}}}},
        {"name":"task","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"},"vendor":1.0},
        {"name":"deep","inputSchema":{"type":"object","properties":{
            "x-mcp-header":{"type":"string"},
            "top":{"type":"string","x-mcp-header":"Top"},
            "list":{"type":"array","items":{"type":"string","x-mcp-header":"Item"}},
            "any":{"anyOf":[{"type":"string","x-mcp-header":"Any"},{"type":"null"}]}},
            "$defs":{"d":{"type":"string","x-mcp-header":"Def"}}}}]}"#
        .replace('\n', "");
    server.asked("tools/list").await.result(&tools);
    let text = going.await.unwrap().next().await;
    let list = &json::parse(&text)["result"]["tools"];
    assert!(
        text.contains(r#""properties":{"z":{"type":"string"},"a":{"maximum":1.0}}"#),
        "{text}"
    );
    assert_eq!(
        list[1],
        value!({ "name": "task", "inputSchema": { "type": "object" }, "vendor": 1.0 })
    );
    assert!(!text.contains(r#""x-mcp-header":""#), "{text}");
    let properties = &list[2]["inputSchema"]["properties"];
    assert_eq!(
        properties["x-mcp-header"],
        value!({ "type": "string" }),
        "a property of that name stays"
    );
    assert_eq!(properties["list"]["items"], value!({ "type": "string" }));
}

/// A cursor comes back to the server as its own, and after the server has forgotten the session the
/// client is told to begin anew.
#[tokio::test]
async fn cursors_belong_to_a_session() {
    let (server, _gateway, client) = modern().await;
    let list = client.request("1", "tools/list", "{}");
    let going = list.start();
    server
        .asked("tools/list")
        .await
        .result(r#"{"tools":[],"nextCursor":"p\u0061ge 2/ü"}"#);
    let text = going.await.unwrap().next().await;
    let cursor = json::raw(&text, &["result", "nextCursor"]).unwrap();
    let second = list.param("cursor", &cursor);
    let going = second.start();
    let held = server.asked("tools/list").await;
    let seen = json::parse(held.seen.text());
    assert_eq!(seen["params"]["cursor"], "page 2/ü");
    held.result(r#"{"tools":[]}"#);
    assert!(
        going.await.unwrap().json().await["result"]
            .get("nextCursor")
            .is_none()
    );

    for foreign in ["\"page 2/ü\"", "\"\"", "\"x.y\""] {
        let refused = client
            .request("1", "tools/list", "{}")
            .param("cursor", foreign)
            .refused()
            .await;
        assert_eq!((refused.0, refused.1), (200, -32602), "{foreign}");
    }
    server.forget();
    client.works().await;
    let refused = second.refused().await;
    assert_eq!((refused.0, refused.1), (200, -32602));
    assert_eq!(server.seen_method("tools/list").len(), 2);
}

/// Without anybody to keep a session for, each page is asked in a session of its own. A server whose
/// cursors mean something everywhere can be listed to the end.
#[tokio::test]
async fn cursors_of_nobody_are_the_servers_own() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("auth: open")
        .start()
        .await;
    let list = Modern::new(&gateway, "alpha").request("1", "tools/list", "{}");
    let going = list.start();
    server
        .asked("tools/list")
        .await
        .result(r#"{"tools":[],"nextCursor":"page-2"}"#);
    let text = going.await.unwrap().next().await;
    let cursor = json::raw(&text, &["result", "nextCursor"]).unwrap();
    let going = list.param("cursor", &cursor).start();
    let held = server.asked("tools/list").await;
    assert_eq!(
        held.seen.raw(&["params", "cursor"]).as_deref(),
        Some("\"page-2\"")
    );
    held.result(r#"{"tools":[]}"#);
    assert_eq!(going.await.unwrap().status, 200);
}

/// Errors of the server are 200, with codes that a modern client does not read a wrong meaning into.
#[tokio::test]
async fn errors_of_the_server() {
    let (server, _gateway, client) = modern().await;
    let table = [
        (-32002, -32602, false),
        (-32000, -32603, true),
        (-32001, -32603, true),
        (-32020, -32603, true),
        (-32022, -32603, true),
        (-32601, -32601, false),
        (-32602, -32602, false),
        (-32603, -32603, false),
        (-31999, -31999, false),
        (7, 7, false),
    ];
    for (code, expected, wrapped) in table {
        let going = client
            .request("\"r\"", "resources/read", r#"{"uri":"shop://1"}"#)
            .start();
        let held = server.asked("resources/read").await;
        let error = format!(
            r#"{{"code":{code},"message":"no such thing","data":{{"uri":"shop://1","n":1.0}}}}"#
        );
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, held.id());
        held.respond(200, "application/json", &body);
        let mut reply = going.await.unwrap();
        let text = reply.next().await;
        assert_eq!(reply.status, 200, "{text}");
        let message = json::parse(&text);
        assert_eq!(message["id"], "r");
        assert_eq!(message["error"]["code"], expected, "{text}");
        assert_eq!(message["error"]["message"], "no such thing");
        let path: &[&str] = if wrapped {
            &["error", "data", "upstreamError"]
        } else {
            &["error", "data", "n"]
        };
        let spelled = if wrapped { error.as_str() } else { "1.0" };
        assert_eq!(json::raw(&text, path).as_deref(), Some(spelled), "{text}");
    }
}

/// What the server is, as a modern client asks for it; odd probes are answered too.
#[tokio::test]
async fn discover() {
    let (server, _gateway, client) = offering(ALL).await;
    for ask in [
        client.request("1", "server/discover", "{}"),
        client
            .declaring(NOTHING)
            .request("1", "server/discover", "{}"),
        client
            .request("1", "server/discover", "{}")
            .envelope("clientInfo", ""),
        client.request("1", "server/discover", r#"{"vendor":[1]}"#),
    ] {
        let result = ask.result().await;
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["supportedVersions"], value!(["2026-07-28"]));
        assert_eq!(result["ttlMs"], 60_000);
        assert_eq!(result["cacheScope"], "private");
        assert_eq!(
            result["_meta"][INFO],
            value!({ "name": "scripted", "version": "1" })
        );
        let mut declared = json::parse(ALL);
        declared.as_object_mut().unwrap().remove("tasks");
        assert_eq!(result["capabilities"], declared);
    }
    assert!(
        server.seen_method("server/discover").len() <= 1,
        "a legacy server is asked once, to find out its era"
    );
}

/// A server that fails in HTTP: an error in JSON-RPC that names it and says nothing of its page.
#[tokio::test]
async fn failures_of_the_server() {
    let (server, _gateway, client) = modern().await;
    for (status, content_type, body, code) in [
        (500, "text/html", "<p>canary</p>", -32603),
        (502, "application/json", "{}", -32603),
        (401, "text/plain", "canary", -31005),
        (429, "text/plain", "canary", -31004),
        (200, "application/json", "[1", -32603),
    ] {
        let going = client.call("1", "order", "{}").start();
        server
            .called("order")
            .await
            .respond(status, content_type, body);
        let mut reply = going.await.unwrap();
        let text = reply.next().await;
        assert_eq!(
            json::parse(&text)["error"]["code"],
            code,
            "{status}: {text}"
        );
        assert!(!text.contains("canary"), "{text}");
        assert_eq!(json::parse(&text)["id"], 1);
        assert_eq!(reply.status, 200, "{status}");
        assert_eq!(reply.header("www-authenticate"), "");
    }
    assert_eq!(
        server.seen_method("tools/call").len(),
        5,
        "nothing is tried twice"
    );
}

/// F31: the server wants other credentials than the gateway has. The client can't give them, so it is
/// told whose they are and what is wrong, and sees nothing of the server's challenge.
#[tokio::test]
async fn f31_the_server_does_not_take_the_gateways_credentials() {
    let (server, _gateway, client) = modern().await;
    let going = client.call("1", "order", "{}").start();
    let mut challenge = response(401, "text/plain", "canary".to_owned());
    let header = "Bearer realm=\"canary\"".parse().unwrap();
    challenge.headers_mut().insert("www-authenticate", header);
    server.called("order").await.respond_with(challenge);
    explains_credentials(going.await.unwrap()).await;
    server.change(|habits| habits.always = Some((401, "text/plain", "canary")));
    for ask in [
        client.request("1", "tools/list", "{}"),
        // In a session that is not there yet.
        client.declaring(NOTHING).call("1", "order", "{}"),
    ] {
        explains_credentials(ask.send().await).await;
    }
    server.change(|habits| habits.always = None);
    client.works().await;
}

async fn explains_credentials(mut reply: Reply) {
    let text = reply.next().await;
    let error = &json::parse(&text)["error"];
    assert_eq!(reply.status, 200, "{text}");
    assert_eq!(error["code"], -31005, "{text}");
    assert_eq!(error["data"]["reason"], "upstream_credentials");
    assert_eq!(error["data"]["upstream"], "alpha");
    let hint = error["message"].as_str().unwrap();
    assert!(hint.contains("whoever runs the gateway"), "{hint}");
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(reply.header("www-authenticate"), "");
}

/// Nobody is there.
#[tokio::test]
async fn an_unreachable_server() {
    let gateway = Setup::new()
        .server_at("alpha", "http://127.0.0.1:9/mcp", "{}")
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    for ask in [
        client.call("1", "echo", "{}"),
        client.request("1", "tools/list", "{}"),
        client.request("1", "server/discover", "{}"),
    ] {
        let (_, code, reason) = ask.refused().await;
        assert_eq!((code, reason.as_str()), (-31001, "upstream_unavailable"));
    }
}
