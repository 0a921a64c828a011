//! Servers that are programs: how they die, what they write beside messages, how much, and who shares them.

use serde_json::Value;

use crate::support::{
    Client, EVERYTHING, Gateway, NOTHING, Reply, Server, Session, Setup, json, within,
};

/// The program of the tests of programs; what its tools do is written there.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stdio/server.sh");

/// A process that is killed with calls and a question open: each of them ends with an error, the next call finds a
/// new process, and whoever listens is told that the lists may have changed. Other servers don't notice.
/// Reported in ferro-labs/ai-gateway#353 and #361, MoonshotAI/kimi-code#2109, GCWing/OpenBitFun#888.
#[tokio::test]
async fn a_killed_program_ends_all_that_waits_for_it_and_nothing_else() {
    let other = Server::start().await;
    let gateway = Setup::new()
        .program("alpha", &["bash", PROGRAM, "legacy"], "era: legacy")
        .server("beta", &other)
        .start()
        .await;
    let elsewhere = Client::new(&gateway, "beta").open(EVERYTHING).await;
    assert_eq!(elsewhere.text("count", "{}").await, "1");
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let mut listening = session.listen().await;
    let process = session.text("pid", "{}").await;
    let mut asked = session.call("4", "ask", r#"{"x":"who"}"#).await;
    let question = asked.question("elicitation/create").await;
    let hang = |id: &&str| session.start(json::call(id, "hang", "{}"));
    let waiting: Vec<_> = ["1", "2", "3"].iter().map(hang).collect();
    // The program takes one line after the other: when this is answered, it has the others.
    session.works().await;
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &process])
        .status();
    assert!(killed.unwrap().success());
    for call in waiting {
        let mut reply = call.await.unwrap();
        let error = reply.json().await["error"].clone();
        assert_eq!(error["data"]["upstream"], "alpha", "{error}");
    }
    let (mut told, mut failed) = (Vec::new(), None);
    while let Some(message) = asked.maybe_next().await {
        let message = json::parse(&message);
        match message["method"].as_str() {
            Some(method) => told.push(method.to_owned()),
            None => failed = Some(message["error"]["data"]["upstream"].clone()),
        }
    }
    assert_eq!(failed.unwrap(), "alpha");
    // The question is taken away, on whichever stream its client still reads.
    while ![
        "notifications/cancelled",
        "notifications/tools/list_changed",
    ]
    .iter()
    .all(|method| told.iter().any(|it| it == method))
    {
        let message = listening.json().await;
        told.push(message["method"].as_str().unwrap().to_owned());
    }
    let late = session.answer(&question, r#"{"action":"decline"}"#).await;
    assert_eq!(late, 202);
    assert_ne!(session.text("pid", "{}").await, process);
    assert_eq!(elsewhere.text("count", "{}").await, "2");
}

/// Banners, blank lines, colours, JSON that is no message, before and between the messages; each of these begins
/// with a byte order mark, as some runtimes write it, and ends with a carriage return.
/// Reported in microsoft/azure-devops-mcp#147, editor-code-assistant/eca#298, hurttlocker/o8#1541.
#[tokio::test]
async fn what_a_program_writes_beside_messages_breaks_nothing() {
    const TALKS: &str = r#"
talk() { printf 'Server v1.2 is ready\n\n\r\n\e[32mconnected\e[0m\n{"level":"info","msg":"up"}\n[1,2]\n"text"\n{"jsonrpc":"1.0"}\n'; }
answer() { talk; printf '\xef\xbb\xbf{"jsonrpc":"2.0","id":%s,"result":%s}\r\n' "$id" "$1"; talk; }
talk
while IFS= read -r line; do
  id=$(jq -c '.id // empty' <<<"$line")
  case $(jq -r '.method // ""' <<<"$line") in
    initialize) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    tools/call) answer '{"content":[{"type":"text","text":"done"}]}' ;;
    server/discover) talk; printf '\xef\xbb\xbf{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\r\n' "$id" ;;
  esac
done
"#;
    // One whose era is known, and one that is asked for it.
    let gateway = Setup::new()
        .program("known", &["bash", "-c", TALKS], "era: legacy")
        .program("asked", &["bash", "-c", TALKS], "era: auto")
        .start()
        .await;
    for name in ["known", "asked"] {
        let session = Client::new(&gateway, name).open(NOTHING).await;
        for id in ["1", "2", "3"] {
            let mut reply = session.call(id, "any", "{}").await;
            let message = reply.next().await;
            assert_eq!(json::text_of(&message), "done");
            assert!(message.starts_with('{'), "no mark comes out: {message}");
            reply.ends().await;
        }
    }
    let said = "the server wrote something that is no MCP message";
    gateway.says(said).await;
    assert!(gateway.output().matches(said).count() < 20, "it is paced");
}

/// A line may be as long as a message may be: in one piece or in many, in either direction.
/// Reported in mark3labs/mcp-go#588 and #155, superfly/flyctl#4402, ThinkInAIXYZ/go-mcp#128.
#[tokio::test]
async fn lines_of_any_length_pass() {
    const ECHO: &str = r#"jq -c --unbuffered 'if .method == "initialize" then {jsonrpc, id, result: {protocolVersion: "2025-11-25", capabilities: {tools: {}}, serverInfo: {name: "jq", version: "1"}}} elif .method == "tools/call" then {jsonrpc, id, result: {content: [{type: "text", text: .params.arguments.x}]}} else empty end'"#;
    let pieces = format!("{ECHO} | dd bs=7 status=none");
    let gateway = Setup::new()
        .program("whole", &["bash", "-c", ECHO], "era: legacy")
        .program("pieces", &["bash", "-c", &pieces], "era: legacy")
        .yaml("limits: { body: 8MiB, message: 8MiB }")
        .start()
        .await;
    let sizes = [63, 64, 65, 1024, 5 * 1024];
    for (name, sizes) in [("whole", &sizes[..]), ("pieces", &sizes[..4])] {
        let session = Client::new(&gateway, name).open(NOTHING).await;
        for kibibytes in sizes {
            let text = "0123456789abcdef".repeat(kibibytes * 64);
            let came = session.text("echo", &format!(r#"{{"x":"{text}"}}"#)).await;
            assert!(came == text, "{name}, {kibibytes} KiB: {}", came.len());
        }
    }
}

/// A gateway whose callers share a process.
async fn shared() -> Gateway {
    let keys = "era: legacy, shared: true";
    let setup = Setup::new().program("alpha", &["bash", PROGRAM, "legacy"], keys);
    setup.start().await
}

/// Twenty sessions share a process and say the same ids and tokens at once: each gets what is its own.
/// Reported in supercorp-ai/supergateway#35, #138 and #182, abir-taheer/mcp-runner#4.
#[tokio::test]
async fn sessions_that_share_a_program_do_not_mix() {
    let gateway = shared().await;
    let client = Client::new(&gateway, "alpha");
    let mut sessions = Vec::new();
    for _ in 0..20 {
        sessions.push(client.open(EVERYTHING).await);
    }
    let process = sessions[0].text("pid", "{}").await;
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let arguments = format!(r#"{{"x":"own-{number}"}}"#);
            sessions[number].start(json::call("1", "echo", &arguments))
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        let answer = call.await.unwrap().next().await;
        assert_eq!(json::text_of(&answer), format!("\"own-{number}\""));
        assert_eq!(json::id(&answer), "1");
    }
    let progress = |session: &Session| {
        let params = r#"{"name":"progress","arguments":{},"_meta":{"progressToken":7}}"#;
        session.start(json::request("1", "tools/call", params))
    };
    let calls: Vec<_> = sessions.iter().map(progress).collect();
    for call in calls {
        let mut reply = call.await.unwrap();
        for step in 1..=3 {
            let message = reply.json().await;
            assert_eq!(message["params"]["progressToken"], 7, "{message}");
            assert_eq!(message["params"]["progress"], step, "{message}");
        }
        assert_eq!(json::text_of(&reply.next().await), "done");
        reply.ends().await;
    }
    assert_eq!(sessions[19].text("pid", "{}").await, process);
}

/// Cancelling is of one's own call, though another has the same id; what ends is one session, and not the process.
/// Reported in supercorp-ai/supergateway#35, #138 and #182, abir-taheer/mcp-runner#4.
#[tokio::test]
async fn who_shares_a_program_ends_nothing_of_others() {
    let gateway = shared().await;
    let client = Client::new(&gateway, "alpha");
    let (mira, joris) = (client.open(EVERYTHING).await, client.open(EVERYTHING).await);
    // Whose a call is, is told by how the program knows it.
    let owner = |id: &str| id.split('/').next().unwrap().to_owned();
    let hers = json::raw(&mira.text("whole", "{}").await, &["id"]).unwrap();
    let his = json::raw(&joris.text("whole", "{}").await, &["id"]).unwrap();
    assert_ne!(owner(&hers), owner(&his));
    let hang = |session: &Session| session.start(json::call("1", "hang", "{}"));
    let (_hers, _his) = (hang(&mira), hang(&joris));
    // The program takes one line after the other: when these are answered, it has the others.
    mira.works().await;
    joris.works().await;
    let cancel = r#"{"requestId":1}"#;
    let told = joris.notify("notifications/cancelled", cancel).await;
    assert_eq!(told, 202);
    let cancelled = within("the program to be told", async {
        loop {
            let cancelled = mira.text("cancelled", "{}").await;
            if !cancelled.is_empty() {
                return cancelled;
            }
        }
    })
    .await;
    let owners: Vec<_> = cancelled.split_whitespace().map(owner).collect();
    assert_eq!(owners, [owner(&his)]);
    let process = mira.text("pid", "{}").await;
    assert!(joris.delete().await.is_success());
    assert_eq!(mira.text("pid", "{}").await, process);
    let third = client.open(NOTHING).await;
    assert_eq!(third.text("pid", "{}").await, process);
}

/// What the program asks could be about anybody: it is refused, and reaches nobody. What it says of a resource
/// reaches those who subscribed to it; that a list has changed, all.
/// Reported in supercorp-ai/supergateway#35, #138 and #182, abir-taheer/mcp-runner#4.
#[tokio::test]
async fn who_shares_a_program_hears_nothing_of_others() {
    const TALKS: &str = r#"
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
fence() { say '"method":"notifications/tools/list_changed"'; }
updated() { say "\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"$1\"}"; }
while IFS= read -r line; do
  id=$(jq -c '.id // empty' <<<"$line")
  case $(jq -r '.method // ""' <<<"$line") in
    initialize) say "\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{\"listChanged\":true},\"resources\":{\"subscribe\":true}},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}" ;;
    tools/call)
      say '"id":1,"method":"elicitation/create","params":{"message":"who","requestedSchema":{"type":"object","properties":{}}}'
      IFS= read -r answer
      say "\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$(jq -c .error.code <<<"$answer")\"}]}"
      fence ;;
    resources/subscribe)
      say "\"id\":$id,\"result\":{}"
      uri=$(jq -r .params.uri <<<"$line")
      updated "$uri" ; updated "$uri/part" ; updated file:///nobodys
      fence ;;
    resources/list) say "\"id\":$id,\"result\":{\"resources\":[]}" ; updated file:///his ; updated file:///hers ; fence ;;
  esac
done
"#;
    let keys = "era: legacy, shared: true";
    let setup = Setup::new().program("alpha", &["bash", "-c", TALKS], keys);
    let gateway = setup.start().await;
    let client = Client::new(&gateway, "alpha");
    let (mira, joris) = (client.open(EVERYTHING).await, client.open(EVERYTHING).await);
    let (mut hers, mut his) = (mira.listen().await, joris.listen().await);
    let calls = [
        (&joris, "tools/call", r#"{"name":"any"}"#),
        (&joris, "resources/subscribe", r#"{"uri":"file:///his"}"#),
        (&mira, "resources/subscribe", r#"{"uri":"file:///hers"}"#),
        // Who no longer wants to hear of it does not; the other does.
        (&joris, "resources/unsubscribe", r#"{"uri":"file:///his"}"#),
        (&mira, "resources/list", "{}"),
    ];
    let heard = [
        (vec![], vec![]),
        (vec![], vec!["file:///his", "file:///his/part"]),
        (vec!["file:///hers", "file:///hers/part"], vec![]),
        (vec![], vec![]),
        (vec!["file:///hers"], vec![]),
    ];
    for ((session, method, params), (to_her, to_him)) in calls.into_iter().zip(heard) {
        let mut reply = session.post(json::request("1", method, params)).await;
        // What follows an answer may come before it, on its stream.
        let (mut early, mut answer) = (Vec::new(), None);
        while let Some(message) = reply.maybe_next().await {
            let message = json::parse(&message);
            if message["id"] == 1 {
                answer = Some(message);
            } else {
                early.push(message);
            }
        }
        let answer = answer.unwrap();
        assert!(answer["result"].is_object(), "{answer}");
        if method == "tools/call" {
            assert_eq!(answer["result"]["content"][0]["text"], "-32601");
        }
        if method == "resources/unsubscribe" {
            // The program need not hear of it.
            continue;
        }
        for (listening, owner, expected) in [(&mut hers, &mira, to_her), (&mut his, &joris, to_him)]
        {
            let early = if owner.id == session.id {
                std::mem::take(&mut early)
            } else {
                Vec::new()
            };
            assert_eq!(up_to_fence(early, listening).await, expected, "{method}");
        }
    }
}

/// The resources of which somebody hears before the list changes.
async fn up_to_fence(early: Vec<Value>, listening: &mut Reply) -> Vec<String> {
    let mut early = early.into_iter();
    let mut uris = Vec::new();
    loop {
        let message = match early.next() {
            Some(message) => message,
            None => listening.json().await,
        };
        match message["method"].as_str() {
            Some("notifications/tools/list_changed") => return uris,
            Some("notifications/resources/updated") => {
                uris.push(message["params"]["uri"].as_str().unwrap().to_owned());
            }
            other => panic!("{other:?}"),
        }
    }
}
