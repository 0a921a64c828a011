//! Cancellation is a message: it goes to the one it is about, at once, with the id they know it by.
//! A connection that breaks is none.

use crate::support::{Client, EVERYTHING, NOTHING, Server, Setup, json, triple, within};

/// F4, F5: the client cancels its call; the server hears its own id, and the reason.
/// Reported in lynnswap/XcodeMCPKit#210, PrefectHQ/fastmcp#4124, IBM/mcp-context-forge#1983,
/// Kuadrant/mcp-gateway#422.
#[tokio::test]
async fn the_client_cancels_a_call() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("\"c-101\"", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let other = session.start(json::call("101", "other", "{}"));
    let other_held = server.called("other").await;
    let mut reply = call.await.unwrap();
    let cancel = r#"{"requestId":"c-101","reason":"changed my mind","_meta":{"n":1.0}}"#;
    assert_eq!(session.notify("notifications/cancelled", cancel).await, 202);
    let seen = server.notice("notifications/cancelled").await;
    assert_eq!(seen.raw(&["params", "requestId"]), Some(stream.id.clone()));
    assert_eq!(
        seen.raw(&["params", "reason"]).as_deref(),
        Some(r#""changed my mind""#)
    );
    assert_eq!(
        seen.raw(&["params", "_meta"]).as_deref(),
        Some(r#"{"n":1.0}"#)
    );
    // The server may answer all the same, or just end; either way the client's stream ends.
    drop(stream);
    while reply.maybe_next().await.is_some() {}
    other_held.result("{}");
    assert_eq!(other.await.unwrap().json().await["id"], 101);
    assert_eq!(server.seen_method("notifications/cancelled").len(), 1);
}

/// F4: ids that nobody uses, or that have another type, are ignored.
/// Reported in lynnswap/XcodeMCPKit#210.
#[tokio::test]
async fn the_client_cancels_what_does_not_run() {
    let (server, gateway, session) = triple().await;
    let other = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let call = session.start(json::call("\"101\"", "slow", "{}"));
    let held = server.called("slow").await;
    let inner = held.id();
    for (who, id) in [
        (&session, "101"),
        (&session, "\"zzz\""),
        (&session, "null"),
        (&other, "\"101\""),
    ] {
        let params = format!(r#"{{"requestId":{id}}}"#);
        let status = who.notify("notifications/cancelled", &params).await;
        assert_eq!(status, 202, "{id}");
    }
    if inner != "\"101\"" {
        let params = format!(r#"{{"requestId":{inner}}}"#);
        assert_eq!(
            session.notify("notifications/cancelled", &params).await,
            202
        );
    }
    session.works().await;
    other.works().await;
    assert_eq!(server.seen_method("notifications/cancelled").len(), 0);
    held.result(&json::text_result("unharmed"));
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "unharmed");
}

/// F4: a call at one server is not cancelled at another.
/// Reported in lynnswap/XcodeMCPKit#210.
#[tokio::test]
async fn only_the_server_that_runs_it_hears() {
    let (alpha, beta) = (Server::start().await, Server::start().await);
    let gateway = Setup::new()
        .server("alpha", &alpha)
        .server("beta", &beta)
        .start()
        .await;
    let at_alpha = Client::new(&gateway, "alpha").open(NOTHING).await;
    let at_beta = Client::new(&gateway, "beta").open(NOTHING).await;
    let first = at_alpha.start(json::call("1", "slow", "{}"));
    let second = at_beta.start(json::call("1", "slow", "{}"));
    let alpha_held = alpha.called("slow").await;
    let beta_held = beta.called("slow").await;
    at_alpha
        .notify("notifications/cancelled", r#"{"requestId":1}"#)
        .await;
    alpha.notice("notifications/cancelled").await;
    at_beta.works().await;
    assert_eq!(beta.seen_method("notifications/cancelled").len(), 0);
    alpha_held.result("{}");
    beta_held.result("{}");
    assert_eq!(second.await.unwrap().json().await["id"], 1);
    drop(first.await);
}

/// F5: the server withdraws its own question; the client sees the id that it knows.
/// Reported in PrefectHQ/fastmcp#4124, IBM/mcp-context-forge#1983, Kuadrant/mcp-gateway#422.
#[tokio::test]
async fn the_server_withdraws_a_question() {
    let (server, gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::request(
            "\"e-1\"",
            "elicitation/create",
            &json::form("?"),
        ))
        .await;
    stream
        .send(&json::request("1", "elicitation/create", &json::form("??")))
        .await;
    let first = reply.question("elicitation/create").await;
    let second = reply.question("elicitation/create").await;
    stream
        .send(&json::notice(
            "notifications/cancelled",
            r#"{"requestId":"e-1","reason":"late"}"#,
        ))
        .await;
    let seen = reply.next().await;
    assert_eq!(
        json::method(&seen).as_deref(),
        Some("notifications/cancelled")
    );
    assert_eq!(
        json::raw(&seen, &["params", "requestId"]),
        Some(json::id(&first))
    );
    assert_eq!(
        json::raw(&seen, &["params", "reason"]).as_deref(),
        Some(r#""late""#)
    );
    // Withdrawn means: an answer to it is late.
    assert_eq!(session.answer(&first, r#"{"action":"accept"}"#).await, 202);
    gateway
        .audited("the ignored answer", |line| {
            line["type"] == "answer.ignored"
        })
        .await;
    session.answer(&second, r#"{"action":"decline"}"#).await;
    server.answer_to("1").await;
    session.works().await;
    assert!(
        !server
            .answers()
            .iter()
            .any(|answer| answer.contains("accept"))
    );
    stream.result("{}").await;
    reply.next().await;
}

/// The server withdraws what it never asked: the client hears nothing of it.
#[tokio::test]
async fn the_server_withdraws_what_it_never_asked() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    stream
        .send(&json::notice(
            "notifications/cancelled",
            r#"{"requestId":"never"}"#,
        ))
        .await;
    stream.result("{}").await;
    assert_eq!(reply.json().await["id"], 1);
}

/// F5: the client drops its connection. The server works on, undisturbed.
/// Reported in PrefectHQ/fastmcp#4124, IBM/mcp-context-forge#1983, Kuadrant/mcp-gateway#422.
#[tokio::test]
async fn a_dropped_connection_is_no_cancellation() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    drop(call.await.unwrap());
    // The same before even the head of the answer.
    let early = session.start(json::call("2", "early", "{}"));
    let held = server.called("early").await;
    early.abort();
    drop(early.await);
    for _ in 0..3 {
        session.works().await;
    }
    assert!(!stream.is_left());
    assert_eq!(server.seen_method("notifications/cancelled").len(), 0);
    stream.result("{}").await;
    held.result("{}");
    session.works().await;
}

/// Each message has a connection of its own, and the cancel may come first. The call is not made then; who uses
/// the id once more means another call.
#[tokio::test]
async fn a_cancel_that_overtakes_its_call_on_the_way_to_the_gateway() {
    let (server, _gateway, session) = triple().await;
    let cancel = r#"{"requestId":9}"#;
    assert_eq!(session.notify("notifications/cancelled", cancel).await, 202);
    let mut reply = session.call("9", "echo", r#"{"x":1}"#).await;
    assert_eq!(reply.error().await, -32800);
    let mut reply = session.call("9", "echo", r#"{"x":2}"#).await;
    assert_eq!(json::text_of(&reply.next().await), "2");
    // Late, and no matter of the next one.
    assert_eq!(session.notify("notifications/cancelled", cancel).await, 202);
    let mut reply = session.call("9", "echo", r#"{"x":3}"#).await;
    assert_eq!(json::text_of(&reply.next().await), "3");
    assert_eq!(server.seen_method("tools/call").len(), 2);
    assert!(server.seen_method("notifications/cancelled").is_empty());
}

/// The same between gateway and server: once the server surely has the call, it hears of the cancel again.
#[tokio::test]
async fn a_cancel_that_may_overtake_its_call_on_the_way_to_the_server() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let held = server.called("slow").await;
    let cancel = r#"{"requestId":1}"#;
    assert_eq!(session.notify("notifications/cancelled", cancel).await, 202);
    server.notice("notifications/cancelled").await;
    let stream = held.stream();
    let about = stream.id.clone();
    within("the second cancel", async {
        while server.seen_method("notifications/cancelled").len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    for seen in server.seen_method("notifications/cancelled") {
        assert_eq!(seen.raw(&["params", "requestId"]), Some(about.clone()));
    }
    drop(stream);
    drop(call);
    session.works().await;
}

/// A handshake can't be cancelled; a cancelled call may be called again.
#[tokio::test]
async fn after_a_cancellation_the_session_goes_on() {
    let (server, _gateway, session) = triple().await;
    session
        .notify("notifications/cancelled", r#"{"requestId":"init"}"#)
        .await;
    for _ in 0..3 {
        let call = session.start(json::call("5", "slow", "{}"));
        let held = server.called("slow").await;
        session
            .notify("notifications/cancelled", r#"{"requestId":5}"#)
            .await;
        let inner = Some(held.id());
        server
            .sees("the cancellation", |seen| {
                seen.method().as_deref() == Some("notifications/cancelled")
                    && seen.raw(&["params", "requestId"]) == inner
            })
            .await;
        // What the server still says is nobody's business, or the answer: never an error of ours.
        held.try_respond(crate::support::server::response(202, "", String::new()));
        drop(call.await.unwrap().maybe_next().await);
    }
    assert_eq!(server.seen_method("notifications/cancelled").len(), 3);
    session.works().await;
}
