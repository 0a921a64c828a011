//! A legacy server no longer knows its session, as after a restart. The gateway opens another one, and the
//! client notices no more than it must.
//!
//! `renewed` is how it goes on, `in_flight` what was on its way, `over` when it can't go on, `down` a server that
//! can't be had, `program` one that is a process and dies.

mod down;
mod in_flight;
mod over;
mod program;
mod renewed;

use crate::support::{Gateway, Reply, Session, Stream, json};

/// Waits until a session goes on with another one at its server.
async fn is_renewed(gateway: &Gateway) {
    gateway
        .audited("the renewal", |line| line["type"] == "session.renewed")
        .await;
}

/// Sets a session's log level, with the server's agreement.
async fn set_level(server: &crate::support::Server, session: &Session, level: &str) {
    let params = format!(r#"{{"level":"{level}"}}"#);
    agreed(server, session, "logging/setLevel", &params).await;
}

/// Sends a request to which the server says yes.
async fn agreed(server: &crate::support::Server, session: &Session, method: &str, params: &str) {
    let going = session.start(json::request("\"agreed\"", method, params));
    server.asked(method).await.result("{}");
    assert_eq!(going.await.unwrap().status, 200);
}

/// A call in whose midst the server asks `Who?` under the id `7`: its stream there, the client's, and the
/// question.
async fn asking(server: &crate::support::Server, session: &Session) -> (Stream, Reply, String) {
    let call = session.start(json::call("\"asking\"", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let question = json::request("7", "elicitation/create", &json::form("Who?"));
    stream.send(&question).await;
    let mut reply = call.await.unwrap();
    let question = reply.question("elicitation/create").await;
    (stream, reply, question)
}

/// The next message that does not say that something may have changed.
async fn next(reply: &mut Reply) -> String {
    loop {
        let message = reply.next().await;
        let method = json::method(&message).unwrap_or_default();
        if !method.ends_with("list_changed") {
            return message;
        }
    }
}

/// The next such message, which must be an error of the gateway's: its code and reason.
async fn failure(reply: &mut Reply) -> (i64, String) {
    let message = json::parse(&next(reply).await);
    let error = &message["error"];
    assert_eq!(error["data"]["source"], "gateway", "{message}");
    let reason = error["data"]["reason"].as_str().unwrap_or_default();
    (
        error["code"].as_i64().unwrap_or_default(),
        reason.to_owned(),
    )
}
