//! `subscriptions/listen` in front of a legacy server: what its session hears, to those who asked for
//! it, tagged with the id under which they asked (2026-07-28 patterns/subscriptions).

use serde_json::json as value;

use crate::support::server::Held;
use crate::support::{Ask, Modern, Reply, Server, Setup, Stream, json, modern, two_people};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

/// A listen for everything that lists can say.
fn lists(client: &Modern, id: &str) -> Ask {
    let params = r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}"#;
    client.request(id, "subscriptions/listen", params)
}

fn updates(client: &Modern, id: &str, uris: &str) -> Ask {
    let params = format!(r#"{{"notifications":{{"resourceSubscriptions":{uris}}}}}"#);
    client.request(id, "subscriptions/listen", &params)
}

/// Opens it, and reads the acknowledgement: what is honoured.
async fn acknowledged(ask: &Ask) -> (Reply, serde_json::Value) {
    let mut reply = ask.send().await;
    assert_eq!(reply.status, 200);
    assert!(reply.is_stream());
    let message = reply.json().await;
    assert_eq!(
        message["method"], "notifications/subscriptions/acknowledged",
        "{message}"
    );
    assert_eq!(
        message["params"]["_meta"][TAG],
        json::parse(&ask.body())["id"]
    );
    (reply, message["params"]["notifications"].clone())
}

async fn changed(stream: &Stream, kind: &str) {
    stream
        .send(&json::notice(
            &format!("notifications/{kind}/list_changed"),
            "{}",
        ))
        .await;
}

/// The next message, which must be of this kind and of this listen.
async fn hears(reply: &mut Reply, kind: &str, id: serde_json::Value) {
    let message = reply.json().await;
    assert_eq!(
        message["method"],
        format!("notifications/{kind}"),
        "{message}"
    );
    assert_eq!(message["params"]["_meta"][TAG], id, "{message}");
}

/// The last message: the result, with nothing in it, and the end of the stream.
async fn completes(reply: &mut Reply, id: serde_json::Value) {
    let message = reply.json().await;
    assert_eq!(message["id"], id, "{message}");
    let expected = value!({ "resultType": "complete", "_meta": { TAG: id } });
    assert_eq!(message["result"], expected);
    reply.ends().await;
}

/// The server agrees to a subscription to each of these, in this order.
async fn subscribed(server: &Server, uris: &[&str]) {
    for uri in uris {
        let held = server.asked("resources/subscribe").await;
        assert_eq!(
            held.seen.raw(&["params", "uri"]),
            Some(format!("\"{uri}\""))
        );
        held.result("{}");
    }
}

/// The server forgets all sessions, and breaks the stream of the last one, by which that is noticed.
async fn restart(server: &Server) {
    let listening = server.last_get_stream().await;
    server.forget();
    listening.abort().await;
}

/// The subset that the server can be heard on, and nothing else, comes first.
#[tokio::test]
async fn the_honoured_subset_is_acknowledged() {
    let (server, _gateway, client) = modern().await;
    let (_reply, honoured) = acknowledged(&lists(&client, "\"l\"")).await;
    assert_eq!(honoured, value!({ "toolsListChanged": true }));
    for (params, expected) in [
        ("{}", value!({})),
        (r#"{"toolsListChanged":false}"#, value!({})),
        (r#"{"vendorChanged":true,"taskIds":["1"]}"#, value!({})),
    ] {
        let params = format!(r#"{{"notifications":{params}}}"#);
        let (_reply, honoured) =
            acknowledged(&client.request("1", "subscriptions/listen", &params)).await;
        assert_eq!(honoured, expected);
    }
    assert_eq!(server.opened().len(), 1);
}

/// A filter must be there, and be one.
#[tokio::test]
async fn without_a_filter() {
    let (_server, _gateway, client) = modern().await;
    for params in [
        "{}",
        r#"{"notifications":7}"#,
        r#"{"notifications":{"resourceSubscriptions":7}}"#,
    ] {
        let (_, code, _) = client
            .request("1", "subscriptions/listen", params)
            .refused()
            .await;
        assert_eq!(code, -32602, "{params}");
    }
}

/// Each listen hears what it asked for, under its own id, wherever the server says it.
#[tokio::test]
async fn to_everybody_who_asked() {
    let server = Server::with(|habits| {
        habits.capabilities = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true}}"#;
    })
    .await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Modern::new(&gateway, "alpha");
    let (mut first, honoured) = acknowledged(&lists(&client, "1")).await;
    assert_eq!(
        honoured,
        value!({ "toolsListChanged": true, "promptsListChanged": true })
    );
    let (mut second, _) = acknowledged(&lists(&client, "\"1\"")).await;
    let only = client.request(
        "3",
        "subscriptions/listen",
        r#"{"notifications":{"promptsListChanged":true}}"#,
    );
    let (mut third, _) = acknowledged(&only).await;
    let listening = server.last_get_stream().await;
    changed(&listening, "tools").await;
    hears(&mut first, "tools/list_changed", value!(1)).await;
    hears(&mut second, "tools/list_changed", value!("1")).await;
    // On the stream of a call as well.
    let going = client.call("9", "ask", "{}").start();
    let stream = server.called("ask").await.stream();
    changed(&stream, "prompts").await;
    hears(&mut first, "prompts/list_changed", value!(1)).await;
    hears(&mut second, "prompts/list_changed", value!("1")).await;
    hears(&mut third, "prompts/list_changed", value!(3)).await;
    // What nobody can have asked for is on nobody's stream, and not on the call's.
    changed(&stream, "resources").await;
    let vendor = json::notice("notifications/vendor", "{}");
    stream.send(&vendor).await;
    stream.result(&json::text_result("done")).await;
    let mut reply = going.await.unwrap();
    assert!(!reply.is_stream());
    assert_eq!(json::text_of(&reply.next().await), "done");
    changed(&listening, "tools").await;
    hears(&mut first, "tools/list_changed", value!(1)).await;
}

/// The rest of a notification is as the server spelled it.
#[tokio::test]
async fn a_notification_keeps_its_bytes() {
    let (server, _gateway, client) = modern().await;
    let (mut reply, _) = acknowledged(&lists(&client, "1")).await;
    let listening = server.last_get_stream().await;
    let params = r#"{"z":1.10,"_meta":{"v":2.0},"a":"\u0041"}"#;
    listening
        .send(&json::notice("notifications/tools/list_changed", params))
        .await;
    let text = reply.next().await;
    for (path, spelled) in [
        (["params", "z"].as_slice(), "1.10"),
        (&["params", "_meta", "v"], "2.0"),
        (&["params", "a"], r#""\u0041""#),
        (&["params", "_meta", TAG], "1"),
    ] {
        assert_eq!(json::raw(&text, path).as_deref(), Some(spelled));
    }
}

/// Resources are subscribed to at the server; one that it refuses is left out.
#[tokio::test]
async fn resources() {
    let (server, _gateway, client) = modern().await;
    let ask = updates(&client, "5", r#"["shop://1","shop://no"]"#);
    let going = tokio::spawn(async move { acknowledged(&ask).await });
    for uri in ["shop://1", "shop://no"] {
        let held = server.asked("resources/subscribe").await;
        assert_eq!(
            held.seen.raw(&["params", "uri"]),
            Some(format!("\"{uri}\""))
        );
        if uri == "shop://1" {
            held.result("{}");
        } else {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32002,"message":"none"}}}}"#,
                held.id()
            );
            held.respond(200, "application/json", &body);
        }
    }
    let (mut reply, honoured) = going.await.unwrap();
    assert_eq!(honoured, value!({ "resourceSubscriptions": ["shop://1"] }));
    let listening = server.last_get_stream().await;
    for uri in ["shop://2", "shop://no", "shop://10", "shop://1"] {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        listening
            .send(&json::notice("notifications/resources/updated", &params))
            .await;
    }
    let message = reply.json().await;
    assert_eq!(message["params"]["uri"], "shop://1", "{message}");
    changed(&listening, "tools").await;
    let params = r#"{"uri":"shop://1/part"}"#;
    listening
        .send(&json::notice("notifications/resources/updated", params))
        .await;
    assert_eq!(reply.json().await["params"]["uri"], "shop://1/part");
}

/// A resource is subscribed to for as long as somebody listens for it.
#[tokio::test]
async fn resources_are_given_up_with_the_last_listener() {
    let (server, _gateway, client) = modern().await;
    let mut replies = Vec::new();
    for id in ["1", "2"] {
        let ask = updates(&client, id, r#"["shop://1"]"#);
        let going = tokio::spawn(async move { acknowledged(&ask).await });
        if id == "1" {
            server.asked("resources/subscribe").await.result("{}");
        }
        replies.push(going.await.unwrap().0);
    }
    assert_eq!(server.seen_method("resources/subscribe").len(), 1);
    drop(replies.pop());
    let listening = server.last_get_stream().await;
    let updated = json::notice("notifications/resources/updated", r#"{"uri":"shop://1"}"#);
    listening.send(&updated).await;
    hears(&mut replies[0], "resources/updated", value!(1)).await;
    assert!(server.seen_method("resources/unsubscribe").is_empty());
    drop(replies);
    let held = server.asked("resources/unsubscribe").await;
    assert_eq!(
        held.seen.raw(&["params", "uri"]).as_deref(),
        Some("\"shop://1\"")
    );
    held.result("{}");
}

/// The client leaves while the server is still being told: that is taken back, also what the server had not
/// answered yet.
#[tokio::test]
async fn resources_are_given_up_when_the_client_leaves_before_the_acknowledgement() {
    let (server, _gateway, client) = modern().await;
    let ask = updates(&client, "1", r#"["shop://1","shop://2","shop://3"]"#);
    let going = ask.start();
    subscribed(&server, &["shop://1"]).await;
    let second = server.asked("resources/subscribe").await;
    going.abort();
    assert!(going.await.is_err());
    second.result("{}");
    let mut told = vec![Some("\"shop://1\"".into()), Some("\"shop://2\"".into())];
    let about = |held: &Held| {
        held.seen
            .method()
            .is_some_and(|it| it.starts_with("resources/"))
    };
    while !told.is_empty() {
        let held = server.take("about resources", about).await;
        let uri = held.seen.raw(&["params", "uri"]);
        if held.seen.method().as_deref() == Some("resources/subscribe") {
            // It has not noticed yet.
            told.push(uri);
        } else {
            let at = told.iter().position(|it| *it == uri);
            told.remove(at.expect("it was subscribed to"));
        }
        held.result("{}");
    }
    client.works().await;
}

/// The server takes a part and then fails: the part is taken back.
#[tokio::test]
async fn resources_are_given_up_when_the_server_fails_in_the_midst_of_it() {
    let (server, _gateway, client) = modern().await;
    let ask = updates(&client, "1", r#"["shop://1","shop://2"]"#);
    let going = ask.start();
    subscribed(&server, &["shop://1"]).await;
    server
        .asked("resources/subscribe")
        .await
        .stream()
        .abort()
        .await;
    let held = server.asked("resources/unsubscribe").await;
    let given_up = held.seen.raw(&["params", "uri"]);
    assert_eq!(given_up.as_deref(), Some("\"shop://1\""));
    held.result("{}");
    server.asked("resources/unsubscribe").await.result("{}");
    let failed = going.await.unwrap().json().await;
    assert!(failed["error"].is_object(), "{failed}");
}

/// What one person's session hears is nobody else's.
#[tokio::test]
async fn others_hear_nothing() {
    let (server, _gateway, mira, joris) = two_people().await;
    let (mut to_mira, _) = acknowledged(&lists(&mira, "1")).await;
    let (mut to_joris, _) = acknowledged(&lists(&joris, "1")).await;
    let opened = server.opened();
    let (of_mira, of_joris) = (
        server.get_stream(&opened[0]).await,
        server.get_stream(&opened[1]).await,
    );
    let params = |who| format!(r#"{{"who":"{who}"}}"#);
    of_mira
        .send(&json::notice(
            "notifications/tools/list_changed",
            &params("mira"),
        ))
        .await;
    assert_eq!(to_mira.json().await["params"]["who"], "mira");
    of_joris
        .send(&json::notice(
            "notifications/tools/list_changed",
            &params("joris"),
        ))
        .await;
    assert_eq!(to_joris.json().await["params"]["who"], "joris");
    of_mira
        .send(&json::notice(
            "notifications/tools/list_changed",
            &params("again"),
        ))
        .await;
    assert_eq!(to_mira.json().await["params"]["who"], "again");
}

/// The server forgets the session: the listen goes on at the next one, after it has said that what it is
/// about may have changed.
#[tokio::test]
async fn the_server_forgets() {
    let (server, _gateway, client) = modern().await;
    let (mut reply, _) = acknowledged(&lists(&client, "\"l\"")).await;
    server.forget();
    client.works().await;
    hears(&mut reply, "tools/list_changed", value!("l")).await;
    assert_eq!(server.opened().len(), 2);
    let listening = server.last_get_stream().await;
    changed(&listening, "prompts").await;
    let params = r#"{"at":"the next one"}"#;
    listening
        .send(&json::notice("notifications/tools/list_changed", params))
        .await;
    assert_eq!(reply.json().await["params"]["at"], "the next one");
}

/// Nobody has to call for that. Resources are subscribed to again, once for all who listen, and are
/// given up with the last of them.
#[tokio::test]
async fn resources_after_the_server_forgot() {
    let (server, _gateway, client) = modern().await;
    let uris = ["shop://1", "shop://2"];
    let mut replies = Vec::new();
    for id in ["1", "2"] {
        let ask = updates(&client, id, r#"["shop://1","shop://2"]"#);
        let going = tokio::spawn(async move { acknowledged(&ask).await });
        if id == "1" {
            subscribed(&server, &uris).await;
        }
        replies.push(going.await.unwrap().0);
    }
    restart(&server).await;
    subscribed(&server, &uris).await;
    for (reply, id) in replies.iter_mut().zip([1, 2]) {
        for uri in uris {
            let message = reply.json().await;
            assert_eq!(message["method"], "notifications/resources/updated");
            assert_eq!(message["params"]["uri"], uri, "{message}");
            assert_eq!(message["params"]["_meta"][TAG], id, "{message}");
        }
    }
    let listening = server.last_get_stream().await;
    let updated = json::notice("notifications/resources/updated", r#"{"uri":"shop://2"}"#);
    listening.send(&updated).await;
    hears(&mut replies[0], "resources/updated", value!(1)).await;
    drop(replies);
    for _ in uris {
        let held = server.asked("resources/unsubscribe").await;
        assert_eq!(held.seen.session(), server.opened()[1]);
        held.result("{}");
    }
    assert_eq!(server.seen_method("resources/subscribe").len(), 4);
}

/// A word about each thing, however many: a listen that reads is not taken for one that does not.
#[tokio::test]
async fn many_resources_after_the_server_forgot() {
    let (server, _gateway, client) = modern().await;
    let uris: Vec<_> = (0..60).map(|number| format!("shop://{number}")).collect();
    let uris: Vec<_> = uris.iter().map(String::as_str).collect();
    let ask = updates(&client, "1", &value!(uris).to_string());
    let going = tokio::spawn(async move { acknowledged(&ask).await });
    subscribed(&server, &uris).await;
    let (mut reply, _) = going.await.unwrap();
    restart(&server).await;
    subscribed(&server, &uris).await;
    for uri in uris {
        assert_eq!(reply.json().await["params"]["uri"], uri);
    }
}

/// What was acknowledged can't be kept: the listen ends with its result, and the client may ask again.
#[tokio::test]
async fn a_server_that_takes_less_than_before() {
    let (server, _gateway, client) = modern().await;
    let ask = updates(&client, "\"l\"", r#"["shop://1"]"#);
    let going = tokio::spawn(async move { acknowledged(&ask).await });
    subscribed(&server, &["shop://1"]).await;
    let (mut reply, _) = going.await.unwrap();
    restart(&server).await;
    let held = server.asked("resources/subscribe").await;
    let error = json::error(&held.id(), -32002, "not any more");
    held.respond(200, "application/json", &error);
    completes(&mut reply, value!("l")).await;
}

/// A server that can't be had for a while: the listen stays, and hears that it may have missed something as soon
/// as there is a session again.
#[tokio::test]
async fn a_server_that_can_not_be_had() {
    let (server, _gateway, client) = modern().await;
    let (mut reply, _) = acknowledged(&lists(&client, "7")).await;
    server.change(|habits| habits.hold_initialize = true);
    restart(&server).await;
    for _ in 0..2 {
        let held = server.asked("initialize").await;
        held.respond(503, "text/plain", "starting");
    }
    server.change(|habits| habits.hold_initialize = false);
    hears(&mut reply, "tools/list_changed", value!(7)).await;
    let listening = server.last_get_stream().await;
    changed(&listening, "tools").await;
    hears(&mut reply, "tools/list_changed", value!(7)).await;
    assert_eq!(server.opened().len(), 2);
}

/// A listen that shares its session with nobody has one of its own afterwards too, which ends with it.
#[tokio::test]
async fn nobodys_listen_after_the_server_forgot() {
    let server = Server::start().await;
    let setup = Setup::new().server("alpha", &server).yaml("auth: open");
    let gateway = setup.start().await;
    let client = Modern::new(&gateway, "alpha");
    let (mut reply, _) = acknowledged(&lists(&client, "1")).await;
    restart(&server).await;
    hears(&mut reply, "tools/list_changed", value!(1)).await;
    let session = server.opened()[1].clone();
    drop(reply);
    server
        .sees("DELETE", |seen| {
            seen.http == hyper::Method::DELETE && seen.session() == session
        })
        .await;
}

/// The gateway ends while a listen is between two sessions.
#[tokio::test]
async fn the_gateway_ends_while_a_listen_moves() {
    let (server, mut gateway, client) = modern().await;
    let (mut reply, _) = acknowledged(&lists(&client, "1")).await;
    server.change(|habits| habits.hold_initialize = true);
    restart(&server).await;
    let held = server.asked("initialize").await;
    gateway.terminate().await;
    completes(&mut reply, value!(1)).await;
    held.respond(503, "text/plain", "");
    assert!(gateway.exit().await.success());
}

/// A listen that comes when the server has just forgotten the session is opened at a new one.
#[tokio::test]
async fn a_listen_after_the_server_forgot() {
    let (server, _gateway, client) = modern().await;
    client.works().await;
    server.forget();
    let ask = updates(&client, "1", r#"["shop://1"]"#);
    let going = tokio::spawn(async move { acknowledged(&ask).await });
    server.asked("resources/subscribe").await.result("{}");
    let (mut reply, _) = going.await.unwrap();
    let listening = server.last_get_stream().await;
    let updated = json::notice("notifications/resources/updated", r#"{"uri":"shop://1"}"#);
    listening.send(&updated).await;
    hears(&mut reply, "resources/updated", value!(1)).await;
}

/// The gateway ends: so do the listens, with their result.
#[tokio::test]
async fn the_gateway_ends() {
    let (_server, mut gateway, client) = modern().await;
    let (mut reply, _) = acknowledged(&lists(&client, "1")).await;
    gateway.terminate().await;
    completes(&mut reply, value!(1)).await;
    assert!(gateway.exit().await.success());
}
