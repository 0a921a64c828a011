//! Programs that write too much: memory stays bounded, and others don't notice.

use super::{Process, open, setup, visitor};
use crate::support::{Gateway, json};

const MIB: usize = 1024 * 1024;

/// Messages may have a mebibyte here.
async fn gateway() -> Gateway {
    let setup = setup(&[], "").yaml("limits: { message: 1MiB }");
    setup.start().await
}

fn of(bytes: usize) -> String {
    format!(r#"{{"bytes":{bytes}}}"#)
}

/// Reported in mark3labs/mcp-go#588 and #155, superfly/flyctl#4402, ThinkInAIXYZ/go-mcp#128.
#[tokio::test]
async fn a_large_message_passes() {
    let gateway = gateway().await;
    let session = open(&gateway).await;
    let mut reply = session.call("1", "huge", &of(MIB - 100)).await;
    assert!(reply.next().await.len() > MIB - 100);
    session.works().await;
}

/// The answer is too large; its call fails, and the session goes on.
#[tokio::test]
async fn an_answer_that_is_too_large_fails_its_call_alone() {
    let gateway = gateway().await;
    let session = open(&gateway).await;
    // Some write the id first, others last.
    for (tool, size) in [("huge", 300 * MIB), ("huge_id_last", 20 * MIB)] {
        let mut reply = session.call("1", tool, &of(size)).await;
        let error = reply.json().await["error"].clone();
        assert_eq!(error["code"], -32603, "{tool}: {error}");
        assert_eq!(
            error["message"],
            r#"the server "alpha" sent a message that is too large"#
        );
    }
    gateway
        .says("the server wrote a line that is too large")
        .await;
    session.works().await;
    assert!(gateway.memory() < 200 * MIB, "{}", gateway.memory());
}

/// Nobody knows whose it is: somebody would wait for ever.
#[tokio::test]
async fn a_line_that_is_too_large_and_nobodys_ends_the_process() {
    let gateway = gateway().await;
    let session = open(&gateway).await;
    let process = Process::of(&session).await;
    let mut reply = session.call("1", "no_newline", &of(20 * MIB)).await;
    assert_eq!(reply.error().await, -31003);
    process.is_gone().await;
    open(&gateway).await.works().await;
}

#[tokio::test]
async fn a_flood_of_junk_is_left_out() {
    let gateway = gateway().await;
    let session = open(&gateway).await;
    let other = open(&gateway).await;
    let call = session.start(json::call("1", "much_junk", &of(20 * MIB)));
    other.works().await;
    let mut reply = call.await.unwrap();
    assert_eq!(json::text_of(&reply.next().await), "after the junk");
    assert!(gateway.output().len() < 100_000);
    assert!(gateway.memory() < 200 * MIB, "{}", gateway.memory());
}

/// All of it reaches a client that reads.
#[tokio::test]
async fn a_flood_of_notifications_reaches_who_reads() {
    let gateway = gateway().await;
    let session = open(&gateway).await;
    let mut reply = session.call("1", "many_lines", &of(MIB)).await;
    let mut count = 0;
    let last = loop {
        let message = reply.next().await;
        if !message.contains("notifications/message") {
            break message;
        }
        count += 1;
    };
    assert_eq!(json::text_of(&last), "after the flood");
    assert!(count > 8000, "{count}");
}

/// Who does not read is not waited for by others, and does not fill the gateway.
#[tokio::test]
async fn a_flood_for_a_client_that_does_not_read_is_bounded() {
    let gateway = gateway().await;
    let session = open(&gateway).await;
    let other = open(&gateway).await;
    let _unread = session.call("1", "many_lines", &of(200 * MIB)).await;
    for _ in 0..20 {
        other.works().await;
    }
    visitor(&gateway).works().await;
    assert!(gateway.memory() < 200 * MIB, "{}", gateway.memory());
}
