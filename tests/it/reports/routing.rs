//! The way of what servers ask and say by themselves.

use crate::support::{Client, EVERYTHING, Server, Setup, json, triple};

/// Servers ask by `ping` whether their session lives, and end it when they get no good answer. It does live, whether
/// its client listens at this moment or not.
/// Reported in envoyproxy/ai-gateway#2715, agentgateway/agentgateway#2187.
#[tokio::test]
async fn a_ping_is_answered_where_the_client_does_not_listen() {
    let (server, _gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    for id in ["1", "\"beat\""] {
        up.send(&json::request(id, "ping", "{}")).await;
        assert_eq!(server.answer_to(id).await, json::result(id, "{}"));
    }
    // The client, who comes later, is not asked again.
    let mut listening = session.listen().await;
    up.send(&json::notice("notifications/fence", "{}")).await;
    assert!(listening.next().await.contains("fence"));
    // Where it listens it is asked itself.
    up.send(&json::request("2", "ping", "{}")).await;
    let question = listening.question("ping").await;
    session.answer(&question, r#"{"own":true}"#).await;
    let own = json::result("2", r#"{"own":true}"#);
    assert_eq!(server.answer_to("2").await, own);
}

/// The client reads nothing but the answer of its call, though it has opened the other stream, and much comes there.
/// Reported in mark3labs/mcp-go#932, modelcontextprotocol/typescript-sdk#2228.
#[tokio::test]
async fn a_stream_that_is_not_read_does_not_hold_up_the_questions_of_a_call() {
    let (server, _gateway, session) = triple().await;
    let _unread = session.listen().await;
    let up = server.last_get_stream().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    let filler = "x".repeat(10_000);
    let notice = format!(r#"{{"data":"{filler}"}}"#);
    let notice = json::notice("notifications/message", &notice);
    for _ in 0..2_000 {
        if up.try_send(&notice).is_err() {
            // All is full on that way: it is the server who waits.
            tokio::task::yield_now().await;
        }
    }
    let form = json::form("Which name?");
    stream
        .send(&json::request("\"e-77\"", "elicitation/create", &form))
        .await;
    let question = reply.question("elicitation/create").await;
    let answer = r#"{"action":"accept","content":{"nick":"Mira"}}"#;
    assert_eq!(session.answer(&question, answer).await, 202);
    let answered = server.answer_to("\"e-77\"").await;
    assert_eq!(answered, json::result("\"e-77\"", answer));
    stream.result(&json::text_result("Mira")).await;
    assert_eq!(json::text_of(&reply.next().await), "Mira");
}

/// Log lines and progress of one person's call, with another's call at the same server open, and both listening.
/// Reported in zoedsoupe/anubis-mcp#228, supercorp-ai/supergateway#18.
#[tokio::test]
async fn what_a_call_says_reaches_nobody_else() {
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    let (mira, joris) = (client.open(EVERYTHING).await, client.open(EVERYTHING).await);
    let opened = server.opened();
    let mut listening = [
        mira.listen().await,
        mira.listen().await,
        joris.listen().await,
    ];
    let ups = [
        server.get_stream(&opened[0]).await,
        server.get_stream(&opened[1]).await,
    ];
    // Both calls have the same id and the same token.
    let params = r#"{"name":"slow","_meta":{"progressToken":1}}"#;
    let call =
        |session: &crate::support::Session| session.start(json::request("1", "tools/call", params));
    let (hers, his) = (call(&mira), call(&joris));
    let mut streams = Vec::new();
    for session in &opened {
        let own = server
            .take("a call", |held| held.seen.session() == session)
            .await;
        let token = own.seen.raw(&["params", "_meta", "progressToken"]);
        streams.push((token.unwrap(), own.stream()));
    }
    let (mut hers, mut his) = (hers.await.unwrap(), his.await.unwrap());
    for step in 1..=5 {
        let (token, stream) = &streams[0];
        let progress = format!(r#"{{"progressToken":{token},"progress":{step}}}"#);
        stream
            .send(&json::notice("notifications/progress", &progress))
            .await;
        let line = format!(r#"{{"level":"info","data":{step}}}"#);
        stream
            .send(&json::notice("notifications/message", &line))
            .await;
    }
    for step in 1..=5 {
        assert_eq!(hers.json().await["params"]["progress"], step);
        assert_eq!(hers.json().await["params"]["data"], step);
    }
    for (_, stream) in streams {
        stream.result("{}").await;
    }
    for reply in [&mut hers, &mut his] {
        assert_eq!(
            reply.json().await["id"],
            1,
            "nothing but the result is left"
        );
        reply.ends().await;
    }
    // One fence for each of her two streams, of which each message takes one; the last comes to him.
    for up in [&ups[0], &ups[1]] {
        up.send(&json::notice("notifications/fence", "{}")).await;
    }
    assert!(listening[2].next().await.contains("fence"));
    let [first, second, _] = &mut listening;
    let fence = tokio::select! {
        message = first.next() => message,
        message = second.next() => message,
    };
    assert!(fence.contains("fence"), "{fence}");
}
