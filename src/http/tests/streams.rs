//! Streams of events: at once, whole and in order, with the HTTP library and without it.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc::Sender;

use super::support::*;
use crate::protocol::sse;
use crate::relay::Item;

const SECOND: Duration = Duration::from_secs(1);

async fn tell(stream: &Sender<Item>, text: &str) {
    stream
        .send(Item::Notice(text.to_owned().into()))
        .await
        .unwrap();
}

/// An event as HTTP/1.0 has it.
fn event(text: &str) -> String {
    String::from_utf8(sse::encode(None, text.as_bytes()).to_vec()).unwrap()
}

/// An event as a chunk.
fn chunk(text: &str) -> String {
    let event = event(text);
    format!("{:X}\r\n{event}\r\n", event.len())
}

#[tokio::test]
async fn events_come_as_chunks_before_and_after_the_library_is_let_go() {
    let mut connection = Connection::open().await;
    let (head, stream) = connection.listen("HTTP/1.1", "accept: */*").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for said in [
        "content-type: text/event-stream\r\n",
        "transfer-encoding: chunked\r\n",
        "date: ",
    ] {
        assert!(head.contains(said), "{head}");
    }
    for text in ["a", "b"] {
        tell(&stream, text).await;
        assert_eq!(connection.until(&chunk(text)).await, chunk(text));
        doze().await;
    }
    let large = "x".repeat(1 << 20);
    for text in [&large, "c", &large, "d"] {
        tell(&stream, text).await;
        let read = connection.until(&chunk(text)).await;
        assert!(read == chunk(text), "{} bytes", read.len());
    }
    drop(stream);
    assert_eq!(connection.until("0\r\n\r\n").await, "0\r\n\r\n");
    connection.is_served().await;
    assert_eq!(connection.opened(), 2, "it was let go once, for the stream");
}

#[tokio::test]
async fn events_for_http_1_0_come_without_chunks_and_end_with_the_connection() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        let (head, stream) = connection.listen("HTTP/1.0", "accept: */*").await;
        assert!(head.starts_with("HTTP/1.0 200 OK\r\n"), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
        for text in ["a", "b"] {
            tell(&stream, text).await;
            assert_eq!(connection.until(&event(text)).await, event(text));
            if asleep {
                doze().await;
            }
        }
        drop(stream);
        assert_eq!(connection.rest().await, "");
        connection.ends().await;
    }
}

#[tokio::test]
async fn a_client_that_wants_no_further_answer_gets_the_last_chunk_and_the_end() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        let (head, stream) = connection.listen("HTTP/1.1", "Connection: Close").await;
        assert!(head.contains("connection: close"), "{head}");
        if asleep {
            doze().await;
        }
        tell(&stream, "a").await;
        drop(stream);
        assert_eq!(connection.rest().await, format!("{}0\r\n\r\n", chunk("a")));
        connection.ends().await;
    }
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let mut connection = Connection::open().await;
    let (_, stream) = connection.listen("HTTP/1.1", "accept: */*").await;
    for _ in 0..3 {
        pass(KEEP_ALIVE + SECOND).await;
        connection.until(":\n\n\r\n").await;
    }
    drop(stream);
    connection.until("0\r\n\r\n").await;
}

#[tokio::test]
async fn a_request_during_a_stream_is_answered_after_it() {
    for moment in [SECOND / 10, SECOND * 5] {
        let mut connection = Connection::open().await;
        let (_, stream) = connection.listen("HTTP/1.1", "accept: */*").await;
        pass(moment).await;
        connection.ask("/next").await;
        pass(SECOND * 5).await;
        connection.ask("/second").await;
        pass(SECOND / 10).await;
        tell(&stream, "a").await;
        assert_eq!(connection.until(&chunk("a")).await, chunk("a"));
        drop(stream);
        assert_eq!(connection.until("0\r\n\r\n").await, "0\r\n\r\n");
        connection.answered("/next").await;
        connection.answered("/second").await;
        connection.is_served().await;
    }
}

#[tokio::test]
async fn a_client_that_is_gone_closes_its_stream() {
    for asleep in [false, true] {
        for reset in [false, true] {
            let mut connection = Connection::open().await;
            let (_, stream) = connection.listen("HTTP/1.1", "accept: */*").await;
            if asleep {
                doze().await;
            }
            if reset {
                connection.client.set_zero_linger().unwrap();
            }
            let (client, other) = (connection.client, Connection::open().await);
            connection.client = other.client;
            drop(client);
            stream.closed().await;
            connection.ends().await;
        }
    }
}

#[tokio::test]
async fn a_client_that_closes_its_half_is_gone() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        let (_, stream) = connection.listen("HTTP/1.1", "accept: */*").await;
        if asleep {
            doze().await;
        }
        connection.client.shutdown().await.unwrap();
        stream.closed().await;
        connection.ends().await;
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_given_up() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        let (_, stream) = connection.listen("HTTP/1.1", "accept: */*").await;
        if asleep {
            doze().await;
        }
        let large = "x".repeat(1 << 20);
        for _ in 0..40 {
            let sent = stream.try_send(Item::Notice(large.clone().into()));
            assert!(sent.is_ok());
        }
        pass(SECOND * 70).await;
        stream.closed().await;
        connection.ends().await;
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_credential_that_opened_it() {
    let mut connection = Connection::with_credential(Some(SECOND * 10)).await;
    let (_, stream) = connection.listen("HTTP/1.1", "accept: */*").await;
    pass(SECOND * 11).await;
    assert_eq!(connection.until("0\r\n\r\n").await, "0\r\n\r\n");
    stream.closed().await;
    connection.is_served().await;
}

#[tokio::test]
async fn at_the_end_of_the_gateway_a_stream_is_told_to_its_last_event() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        let (_, stream) = connection.listen("HTTP/1.1", "accept: */*").await;
        if asleep {
            doze().await;
        }
        connection.stop.cancel();
        pass(SECOND).await;
        tell(&stream, "last").await;
        drop(stream);
        assert_eq!(
            connection.rest().await,
            format!("{}0\r\n\r\n", chunk("last"))
        );
        connection.ends().await;
    }
}

#[tokio::test]
async fn a_stream_whose_request_is_still_on_its_way_stays_with_the_library() {
    let mut connection = Connection::open().await;
    let (_, stream) = connection.listen("HTTP/1.1", "content-length: 5").await;
    doze().await;
    tell(&stream, "a").await;
    assert_eq!(connection.until(&chunk("a")).await, chunk("a"));
    assert_eq!(connection.opened(), 1);
}
