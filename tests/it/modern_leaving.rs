//! A modern client closes a request before it has the answer: that cancels it, also where the server
//! could not have asked anything.

use hyper::Method;

use crate::support::{Modern, Server, Setup, modern};

/// How often the server was told that a request is cancelled.
fn cancels(server: &Server) -> usize {
    server.seen_method("notifications/cancelled").len()
}

/// Lists, and what else passes without a question, are cancelled at the server as calls are.
#[tokio::test]
async fn a_list_whose_client_leaves_is_cancelled() {
    let server = Server::with(|habits| {
        habits.capabilities = r#"{"tools":{},"prompts":{},"resources":{},"completions":{}}"#;
    })
    .await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let client = Modern::new(&gateway, "alpha");
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
        "vendor/unheard",
    ] {
        let going = client.request("1", method, "{}").start();
        let held = server.asked(method).await;
        going.abort();
        drop(going.await);
        let id = held.id();
        let notice = server
            .sees("the cancel", |seen| {
                seen.raw(&["params", "requestId"]).as_deref() == Some(&id)
            })
            .await;
        assert_eq!(
            notice.method().as_deref(),
            Some("notifications/cancelled"),
            "{method}"
        );
        assert_eq!(notice.session(), held.seen.session());
        client.works().await;
    }
    assert_eq!(cancels(&server), 6, "each once");
}

/// The same when the server has begun to answer.
#[tokio::test]
async fn a_list_whose_client_leaves_in_the_midst_of_the_answer_is_cancelled() {
    let (server, _gateway, client) = modern().await;
    let going = client.request("1", "tools/list", "{}").start();
    let stream = server.asked("tools/list").await.stream();
    going.abort();
    drop(going.await);
    let notice = server.notice("notifications/cancelled").await;
    assert_eq!(
        notice.raw(&["params", "requestId"]).as_deref(),
        Some(stream.id.as_str())
    );
    client.works().await;
}

/// What has its answer is not cancelled, and neither is what was refused.
#[tokio::test]
async fn a_list_that_was_answered_is_not_cancelled() {
    let (server, _gateway, client) = modern().await;
    let going = client.request("1", "tools/list", "{}").start();
    server.asked("tools/list").await.result(r#"{"tools":[]}"#);
    assert_eq!(going.await.unwrap().status, 200);
    client.request("1", "prompts/list", "{}").refused().await;
    // The fence: a cancel of the list would be told before that of the call.
    let going = client.call("1", "order", "{}").start();
    let held = server.called("order").await;
    going.abort();
    drop(going.await);
    let notice = server.notice("notifications/cancelled").await;
    assert_eq!(notice.raw(&["params", "requestId"]), Some(held.id()));
}

/// A session of its own ends with the request; the server is told once that the request is cancelled,
/// and then that the session ends.
#[tokio::test]
async fn nobodys_requests_are_cancelled_once() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("auth: open")
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    for (number, ask) in [
        client.call("1", "order", "{}"),
        client.request("1", "tools/list", "{}"),
    ]
    .into_iter()
    .enumerate()
    {
        let going = ask.start();
        let held = server.take("the request", |_| true).await;
        going.abort();
        drop(going.await);
        let session = held.seen.session();
        server
            .sees("the end of the session", |seen| {
                seen.http == Method::DELETE && seen.session() == session
            })
            .await;
        let seen = server.seen();
        let told: Vec<_> = seen
            .iter()
            .filter(|seen| seen.session() == session)
            .map(|seen| seen.method().unwrap_or_else(|| seen.http.to_string()))
            .filter(|it| it == "DELETE" || it == "notifications/cancelled")
            .collect();
        assert_eq!(told, ["notifications/cancelled", "DELETE"], "{number}");
        assert_eq!(
            server.seen_method("notifications/cancelled")[number].raw(&["params", "requestId"]),
            Some(held.id())
        );
    }
}
