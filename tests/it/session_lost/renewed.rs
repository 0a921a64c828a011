//! A session at a server that lost it goes on: one `initialize` whoever needs it, everything set as it was, and
//! the client told what may have changed.

use hyper::Method;

use super::{agreed, is_renewed, set_level};
use crate::support::{Client, EVERYTHING, NOTHING, Reply, Server, Setup, json, modern, triple};

/// The client holds the same session before and after, and nothing tells it of a loss.
/// Reported in agentgateway/agentgateway#3622.
#[tokio::test]
async fn a_call_after_the_server_restarted_succeeds() {
    let (server, gateway, session) = triple().await;
    session.works().await;
    server.forget();
    session.works().await;
    session.works().await;
    let hellos = server.seen_method("initialize");
    assert_eq!(hellos.len(), 2);
    assert_eq!(hellos[1].session(), "", "a new session is asked for");
    assert_eq!(hellos[0].raw(&["params"]), hellos[1].raw(&["params"]));
    let ready = server.seen_method("notifications/initialized");
    let ready: Vec<_> = ready.iter().map(|seen| seen.session().to_owned()).collect();
    assert_eq!(ready, server.opened());
    is_renewed(&gateway).await;
    let closed = gateway.audit();
    assert!(!closed.iter().any(|line| line["type"] == "session.closed"));
    assert!(session.delete().await.is_success());
    let deleted = server
        .sees("DELETE", |seen| seen.http == Method::DELETE)
        .await;
    assert_eq!(deleted.session(), server.opened()[1]);
}

/// Each of the oldest and the newest versions is spoken again as it was.
#[tokio::test]
async fn every_version_goes_on_in_that_version() {
    let server = Server::with(|habits| habits.strict = true).await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Client::new(&gateway, "alpha");
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = client.open_at(version, NOTHING).await;
        server.forget();
        session.works().await;
    }
}

/// Many calls meet the loss at once, before and after it is known. None was carried out; all are, once.
#[tokio::test]
async fn twenty_calls_at_once_cause_one_initialize() {
    let (server, _gateway, session) = triple().await;
    for round in 1..=3 {
        server.forget();
        let calls: Vec<_> = (0..20)
            .map(|id| {
                let arguments = format!(r#"{{"x":{id}}}"#);
                session.start(json::call(&id.to_string(), "echo", &arguments))
            })
            .collect();
        for (id, call) in calls.into_iter().enumerate() {
            let text = json::text_of(&call.await.unwrap().next().await);
            assert_eq!(text, id.to_string());
        }
        assert_eq!(server.seen_method("initialize").len(), 1 + round);
    }
}

/// The log level that was set last, and what was subscribed and not given up, is set again before the call
/// goes on; the standalone stream is opened again, and what could not be heard is said to have changed.
#[tokio::test]
async fn everything_is_set_as_it_was() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    set_level(&server, &session, "info").await;
    set_level(&server, &session, "warning").await;
    for uri in ["a://1", "a://2", "a://3"] {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        agreed(&server, &session, "resources/subscribe", &params).await;
    }
    agreed(
        &server,
        &session,
        "resources/unsubscribe",
        r#"{"uri":"a://2"}"#,
    )
    .await;
    server.forget();
    let call = session.start(json::call("1", "echo", r#"{"x":1}"#));
    let level = server.asked("logging/setLevel").await;
    assert_eq!(level.seen.session(), server.opened()[1]);
    assert_eq!(level.seen.raw(&["params", "level"]).unwrap(), "\"warning\"");
    level.result("{}");
    for uri in ["\"a://1\"", "\"a://3\""] {
        let subscribe = server.asked("resources/subscribe").await;
        assert_eq!(subscribe.seen.session(), server.opened()[1]);
        assert_eq!(subscribe.seen.raw(&["params", "uri"]).unwrap(), uri);
        subscribe.result("{}");
    }
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "1");
    hears(&mut listening, "tools/list_changed").await;
    for uri in ["a://1", "a://3"] {
        let updated = hears(&mut listening, "resources/updated").await;
        assert_eq!(updated["params"]["uri"], uri);
    }
    let stream = server.last_get_stream().await;
    assert_eq!(stream.seen.session(), server.opened()[1]);
    let notice = json::notice("notifications/tools/list_changed", r#"{"n":1}"#);
    stream.send(&notice).await;
    let heard = hears(&mut listening, "tools/list_changed").await;
    assert_eq!(heard["params"]["n"], 1);
}

/// A resource that is no more is no reason to end the session: its client reads it, since it has changed.
#[tokio::test]
async fn a_subscription_that_is_refused_now_ends_nothing() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    agreed(
        &server,
        &session,
        "resources/subscribe",
        r#"{"uri":"a://1"}"#,
    )
    .await;
    server.forget();
    let call = session.start(json::call("1", "echo", r#"{"x":1}"#));
    let subscribe = server.asked("resources/subscribe").await;
    let error = json::error(&subscribe.id(), -32002, "not any more");
    subscribe.respond(200, "application/json", &error);
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "1");
    hears(&mut listening, "tools/list_changed").await;
    hears(&mut listening, "resources/updated").await;
    server.forget();
    session.works().await;
    assert_eq!(server.seen_method("resources/subscribe").len(), 2);
}

/// Nobody has to call for it: the end of the standalone stream shows the loss.
#[tokio::test]
async fn a_client_that_only_listens_hears_of_it() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let stream = server.last_get_stream().await;
    server.forget();
    stream.abort().await;
    hears(&mut listening, "tools/list_changed").await;
    assert_eq!(server.opened().len(), 2);
}

/// What a client says to its server is said to the new session, when the old one was lost.
#[tokio::test]
async fn a_notification_reaches_the_new_session() {
    let (server, _gateway, session) = triple().await;
    server.forget();
    let status = session
        .notify("notifications/roots/list_changed", "{}")
        .await;
    assert_eq!(status, 202);
    let session = Some(server.opened()[1].clone());
    let seen = server.seen_method("notifications/roots/list_changed");
    assert_eq!(seen.last().map(|seen| seen.session().to_owned()), session);
}

/// The oldest loss of all: before the client has said that it is ready. The server hears it once.
#[tokio::test]
async fn a_session_that_is_lost_before_it_began() {
    let (server, gateway, _) = triple().await;
    let client = Client::new(&gateway, "alpha");
    let hello = crate::support::client::initialize("2025-11-25", EVERYTHING);
    let mut reply = client.post(hello).await;
    reply.next().await;
    let session = client.session(reply.header("mcp-session-id"), "2025-11-25");
    server.forget();
    let ready = json::notice("notifications/initialized", "{}");
    assert_eq!(session.post(ready).await.status, 202);
    let mut reply = session.post(json::call("1", "echo", r#"{"x":1}"#)).await;
    assert_eq!(json::text_of(&reply.next().await), "1");
    let last = server.opened().last().cloned().unwrap();
    let ready = server.seen_method("notifications/initialized");
    let heard = ready.iter().filter(|seen| seen.session() == last);
    assert_eq!(heard.count(), 1);
}

/// A 404 for what belongs to an older session is no news: nothing is opened for it.
#[tokio::test]
async fn a_loss_that_is_known_renews_nothing() {
    let (server, _gateway, session) = triple().await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    server.forget();
    session.works().await;
    let cancel = r#"{"requestId":1}"#;
    assert_eq!(session.notify("notifications/cancelled", cancel).await, 202);
    let seen = server.notice("notifications/cancelled").await;
    assert_eq!(
        seen.session(),
        server.opened()[0],
        "it is about that session"
    );
    stream.result("{}").await;
    while reply.maybe_next().await.is_some() {}
    session.works().await;
    assert_eq!(server.seen_method("initialize").len(), 2);
}

/// A page of a list belongs to the session that it was begun in: a modern client begins anew.
#[tokio::test]
async fn a_cursor_does_not_go_to_another_session() {
    let (server, _gateway, client) = modern().await;
    let going = client.request("1", "tools/list", "{}").start();
    let held = server.asked("tools/list").await;
    held.result(r#"{"tools":[],"nextCursor":"2"}"#);
    let text = going.await.unwrap().next().await;
    let cursor = json::raw(&text, &["result", "nextCursor"]).unwrap();
    server.forget();
    let second = client
        .request("2", "tools/list", "{}")
        .param("cursor", &cursor);
    let (status, code, _) = second.refused().await;
    assert_eq!((status, code), (200, -32602));
    let going = client.request("3", "tools/list", "{}").start();
    let held = server.asked("tools/list").await;
    assert_eq!(held.seen.session(), server.opened()[1]);
    held.result(r#"{"tools":[],"nextCursor":"2"}"#);
    let text = going.await.unwrap().next().await;
    let cursor = json::raw(&text, &["result", "nextCursor"]).unwrap();
    let going = client
        .request("4", "tools/list", "{}")
        .param("cursor", &cursor)
        .start();
    let held = server.asked("tools/list").await;
    assert_eq!(held.seen.raw(&["params", "cursor"]).unwrap(), "\"2\"");
    held.result(r#"{"tools":[]}"#);
    assert_eq!(going.await.unwrap().status, 200);
}

/// The next message, which must be this notification.
async fn hears(reply: &mut Reply, kind: &str) -> serde_json::Value {
    let message = reply.json().await;
    let expected = format!("notifications/{kind}");
    assert_eq!(message["method"], expected, "{message}");
    message
}
