//! Notices: what servers and clients tell each other without an answer goes where it belongs, once,
//! in order, and byte for byte.

use crate::support::{Client, EVERYTHING, Stream, json, pair, triple};

/// What servers say on the standalone stream, known or not.
#[tokio::test]
async fn from_the_server_on_the_get_stream() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let stream = server.last_get_stream().await;
    let notices = [
        json::notice(
            "notifications/message",
            r#"{"level":"info","data":{"n":1.0}}"#,
        ),
        json::notice("notifications/tools/list_changed", "{}"),
        r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#.to_owned(),
        json::notice(
            "notifications/resources/list_changed",
            r#"{"_meta":{"x":[]}}"#,
        ),
        json::notice(
            "notifications/resources/updated",
            r#"{"uri":"file:///a","title":"new"}"#,
        ),
        json::notice(
            "notifications/elicitation/complete",
            r#"{"elicitationId":"e-1"}"#,
        ),
        json::notice("notifications/vendor/x", r#"{"b":2,"a":1e2}"#),
        r#"{"method":"vendor/without-prefix","zzz":true,"jsonrpc":"2.0"}"#.to_owned(),
    ];
    for notice in &notices {
        stream.send(notice).await;
    }
    for notice in &notices {
        assert_eq!(listening.next().await, *notice);
    }
}

/// The same on the stream of a call, in order and before the result.
#[tokio::test]
async fn from_the_server_on_the_stream_of_a_call() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    let notices = [
        json::notice("notifications/message", r#"{"level":"debug","data":"a"}"#),
        json::notice("notifications/resources/updated", r#"{"uri":"file:///a"}"#),
        json::notice("notifications/vendor/x", "[1,2]"),
    ];
    for notice in &notices {
        stream.send(notice).await;
    }
    stream.result("{}").await;
    for notice in &notices {
        assert_eq!(reply.next().await, *notice);
    }
    assert_eq!(reply.json().await["id"], 1);
    reply.ends().await;
}

/// What clients say.
/// Reported in docker/mcp-gateway#79.
#[tokio::test]
async fn from_the_client() {
    let (server, _gateway, session) = triple().await;
    let notices = [
        json::notice("notifications/roots/list_changed", "{}"),
        json::notice("notifications/vendor/x", r#"{"b":2,"a":1.50}"#),
        r#"{"method":"vendor/y","jsonrpc":"2.0","extra":null}"#.to_owned(),
    ];
    for notice in &notices {
        assert_eq!(session.say(notice.clone()).await, 202);
        server.sees(notice, |seen| seen.text() == notice).await;
    }
}

/// Two calls run, each says something of its own: it comes on its own stream, not on a sibling's.
#[tokio::test]
async fn two_calls_with_notices_of_their_own() {
    let (server, _gateway, session) = triple().await;
    let first = session.start(json::call("1", "first", "{}"));
    let first_up = server.called("first").await.stream();
    let mut first = first.await.unwrap();
    let second = session.start(json::call("2", "second", "{}"));
    let second_up = server.called("second").await.stream();
    let mut second = second.await.unwrap();
    for (up, own) in [(&second_up, "second"), (&first_up, "first")] {
        up.send(&json::notice(
            "notifications/message",
            &format!(r#"{{"data":"{own}"}}"#),
        ))
        .await;
    }
    assert_eq!(first.json().await["params"]["data"], "first");
    assert_eq!(second.json().await["params"]["data"], "second");
    first_up.result("{}").await;
    second_up.result("{}").await;
    assert_eq!(first.json().await["id"], 1);
    assert_eq!(second.json().await["id"], 2);
}

/// F7, F9: tokens of every type come back as they were; progress comes in order, then the result.
/// Reported in twentyhq/twenty#24559, kaeawc/auto-mobile#6118, metatool-ai/metamcp#129, BerriAI/litellm#19809,
/// sparfenyuk/mcp-proxy#189.
#[tokio::test]
async fn progress_with_the_token_of_the_client() {
    let (server, _gateway, session) = triple().await;
    for token in ["0", "\"p-1\"", "\"7\"", "7", "12345678901234567890", "\"\""] {
        let body = json::request(
            "1",
            "tools/call",
            &format!(r#"{{"name":"slow","_meta":{{"progressToken":{token},"trace":"t"}}}}"#),
        );
        let call = session.start(body);
        let held = server.called("slow").await;
        let inner = held
            .seen
            .raw(&["params", "_meta", "progressToken"])
            .unwrap();
        assert_eq!(
            held.seen.raw(&["params", "_meta", "trace"]).as_deref(),
            Some("\"t\"")
        );
        let stream = held.stream();
        let mut reply = call.await.unwrap();
        for step in 1..=3 {
            stream.send(&progress(&inner, step)).await;
        }
        stream.result("{}").await;
        for step in 1..=3 {
            assert_eq!(reply.next().await, progress(token, step));
        }
        assert_eq!(reply.json().await["id"], 1);
    }
}

/// F7: the server spells the token in its own way, as a serializer does: it is still that token.
/// Reported in twentyhq/twenty#24559, kaeawc/auto-mobile#6118.
#[tokio::test]
async fn progress_with_the_token_in_another_spelling() {
    let (server, _gateway, session) = triple().await;
    for (token, other) in [
        (r#""\u00fc""#, "\"ü\""),
        ("\"ü\"", r#""\u00fc""#),
        (r#""a\/b""#, r#""a/b""#),
    ] {
        let params = format!(r#"{{"name":"slow","_meta":{{"progressToken":{token}}}}}"#);
        let call = session.start(json::request("1", "tools/call", &params));
        let stream = server.called("slow").await.stream();
        let mut reply = call.await.unwrap();
        stream.send(&progress(other, 1)).await;
        stream.result("{}").await;
        let seen = reply.json().await;
        assert_eq!(
            seen["params"]["progressToken"],
            json::parse(token),
            "{token}: {seen}"
        );
        assert_eq!(reply.json().await["id"], 1);
    }
}

/// F7: nobody asked for progress, so none comes, and the same for a token that is somebody else's.
/// Reported in twentyhq/twenty#24559, kaeawc/auto-mobile#6118.
#[tokio::test]
async fn progress_that_nobody_asked_for() {
    let (server, gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    let mut listening = session.listen().await;
    let other = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let elsewhere = other.start(json::request(
        "1",
        "tools/call",
        r#"{"name":"other","_meta":{"progressToken":"theirs"}}"#,
    ));
    let held = server.called("other").await;
    let theirs = held
        .seen
        .raw(&["params", "_meta", "progressToken"])
        .unwrap();

    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    for token in ["1", "\"invented\"", &theirs] {
        stream.send(&progress(token, 1)).await;
        up.send(&progress(token, 1)).await;
    }
    fence(&stream).await;
    fence(&up).await;
    assert!(reply.next().await.contains("fence"));
    assert!(listening.next().await.contains("fence"));
    stream.result("{}").await;
    reply.next().await;
    held.result("{}");
    elsewhere.await.unwrap().next().await;
}

/// F56: the call is over; its progress is no longer anybody's.
#[tokio::test]
async fn progress_after_the_end() {
    let (server, _gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    let mut listening = session.listen().await;
    let body = json::request(
        "1",
        "tools/call",
        r#"{"name":"slow","_meta":{"progressToken":"p"}}"#,
    );
    let call = session.start(body);
    let held = server.called("slow").await;
    let inner = held
        .seen
        .raw(&["params", "_meta", "progressToken"])
        .unwrap();
    held.result("{}");
    call.await.unwrap().next().await;
    up.send(&progress(&inner, 9)).await;
    fence(&up).await;
    assert!(listening.next().await.contains("fence"));
}

/// Progress of a call that was answered on another stream: some servers report on the GET stream.
#[tokio::test]
async fn progress_on_the_get_stream() {
    let (server, _gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    let mut listening = session.listen().await;
    let body = json::request(
        "1",
        "tools/call",
        r#"{"name":"slow","_meta":{"progressToken":"p"}}"#,
    );
    let call = session.start(body);
    let held = server.called("slow").await;
    let inner = held
        .seen
        .raw(&["params", "_meta", "progressToken"])
        .unwrap();
    up.send(&progress(&inner, 1)).await;
    assert_eq!(listening.next().await, progress("\"p\"", 1));
    held.result("{}");
    call.await.unwrap().next().await;
}

/// Clients report progress on questions, too.
#[tokio::test]
async fn progress_of_the_client_on_a_question() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    let params = r#"{"messages":[],"maxTokens":1,"_meta":{"progressToken":"up-7"}}"#;
    stream
        .send(&json::request("3", "sampling/createMessage", params))
        .await;
    let question = reply.question("sampling/createMessage").await;
    let token = json::raw(&question, &["params", "_meta", "progressToken"]).unwrap();
    assert_eq!(session.say(progress(&token, 1)).await, 202);
    let seen = server.notice("notifications/progress").await;
    assert_eq!(seen.text(), progress("\"up-7\"", 1));
    session.answer(&question, "{}").await;
    server.answer_to("3").await;
    stream.result("{}").await;
    reply.next().await;
}

/// A message that came while nobody listened is there when somebody does.
#[tokio::test]
async fn notices_wait_for_a_listener() {
    let (server, _gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    let notice = json::notice("notifications/tools/list_changed", "{}");
    up.send(&notice).await;
    let mut listening = session.listen().await;
    assert_eq!(listening.next().await, notice);
}

/// A6: one session's notices are no other's.
/// Reported in zoedsoupe/anubis-mcp#228, supercorp-ai/supergateway#18.
#[tokio::test]
async fn notices_stay_in_their_session() {
    let (server, gateway) = pair().await;
    let client = Client::new(&gateway, "alpha");
    let mira = client.open(EVERYTHING).await;
    let mira_up = server.last_get_stream().await;
    let joris = client.open(EVERYTHING).await;
    let joris_up = server.last_get_stream().await;
    let (mut to_mira, mut to_joris) = (mira.listen().await, joris.listen().await);
    for number in 0..5 {
        mira_up
            .send(&json::notice(
                "notifications/message",
                &format!(r#"{{"data":{number}}}"#),
            ))
            .await;
    }
    for number in 0..5 {
        assert_eq!(to_mira.json().await["params"]["data"], number);
    }
    fence(&joris_up).await;
    assert!(to_joris.next().await.contains("fence"));
    fence(&mira_up).await;
    assert!(to_mira.next().await.contains("fence"));
}

fn progress(token: &str, step: u32) -> String {
    json::notice(
        "notifications/progress",
        &format!(r#"{{"progressToken":{token},"progress":{step},"total":3.0,"message":"m"}}"#),
    )
}

async fn fence(stream: &Stream) {
    stream
        .send(&json::notice("notifications/fence", "{}"))
        .await;
}
