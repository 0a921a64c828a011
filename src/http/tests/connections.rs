//! Connections between requests: nobody notices whether the HTTP library is there.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use super::support::*;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

#[tokio::test]
async fn the_library_is_let_go_between_requests_and_each_of_them_is_answered() {
    let mut connection = Connection::open().await;
    for cycle in 1..=50 {
        doze().await;
        connection.is_served().await;
        assert_eq!(connection.opened(), 1 + cycle);
    }
}

#[tokio::test]
async fn a_connection_that_is_busy_keeps_the_library() {
    let mut connection = Connection::open().await;
    for _ in 0..50 {
        pass(SECOND / 3).await;
        connection.is_served().await;
    }
    assert_eq!(connection.opened(), 1);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let mut connection = Connection::open().await;
    for _ in 0..3 {
        let requests = ["/1", "/2", "/3"].map(|it| format!("GET {it} HTTP/1.1\r\nhost: x\r\n\r\n"));
        connection.say(&requests.concat()).await;
        for path in ["/1", "/2", "/3"] {
            connection.answered(path).await;
        }
        doze().await;
    }
}

#[tokio::test]
async fn a_request_in_the_moment_of_falling_asleep_is_answered() {
    let mut connection = Connection::open().await;
    let moments = (990..=1010).chain(1990..=2010).chain(2990..=3010);
    for moment in moments {
        pass(MILLISECOND * moment).await;
        connection.is_served().await;
    }
    assert!(connection.opened() > 1);
}

#[tokio::test]
async fn a_request_may_come_in_pieces_and_stay_whole() {
    let mut connection = Connection::open().await;
    connection.is_served().await;
    for path in ["/a", "/b"] {
        let request =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n0123456789");
        for byte in request.chars() {
            connection.say(&byte.to_string()).await;
            pass(SECOND * 7 / 10).await;
        }
        connection.answered(path).await;
        doze().await;
    }
}

#[tokio::test]
async fn the_beginning_of_the_next_request_may_come_with_the_last_one() {
    let mut connection = Connection::open().await;
    connection
        .say("GET /1 HTTP/1.1\r\nhost: x\r\n\r\nGET /2 HT")
        .await;
    connection.answered("/1").await;
    pass(SECOND * 20).await;
    connection.say("TP/1.1\r\nhost: x\r\n\r\n").await;
    connection.answered("/2").await;
}

#[tokio::test]
async fn a_first_head_that_takes_more_than_ten_seconds_is_not_waited_for() {
    for begun in ["", "GET / HT"] {
        let mut connection = Connection::open().await;
        connection.say(begun).await;
        pass(SECOND * 12).await;
        assert_eq!(connection.rest().await, "");
        connection.ends().await;

        let mut in_time = Connection::open().await;
        in_time.say(begun).await;
        pass(SECOND * 9).await;
        let all = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        in_time.say(all.strip_prefix(begun).unwrap()).await;
        in_time.answered("/").await;
    }
}

#[tokio::test]
async fn a_next_head_that_takes_more_than_75_seconds_is_not_waited_for() {
    for begun in ["", "GET / HT"] {
        let mut connection = Connection::open().await;
        connection.is_served().await;
        pass(SECOND * 70).await;
        connection.say(begun).await;
        pass(SECOND * 8).await;
        assert_eq!(connection.rest().await, "");
        connection.ends().await;

        let mut in_time = Connection::open().await;
        in_time.is_served().await;
        pass(SECOND * 65).await;
        in_time.say(begun).await;
        pass(SECOND * 9).await;
        let all = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        in_time.say(all.strip_prefix(begun).unwrap()).await;
        in_time.answered("/").await;
    }
}

#[tokio::test]
async fn a_client_that_has_said_its_last_word_gets_its_answer_and_the_end() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        connection.is_served().await;
        if asleep {
            doze().await;
        }
        connection.ask("/last").await;
        connection.answered("/last").await;
        connection.client.shutdown().await.unwrap();
        assert_eq!(connection.rest().await, "");
        connection.ends().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_between_requests_ends_the_connection() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        connection.is_served().await;
        if asleep {
            doze().await;
        }
        connection.client.shutdown().await.unwrap();
        assert_eq!(connection.rest().await, "");
        connection.ends().await;
    }
}

#[tokio::test]
async fn the_end_of_the_gateway_ends_connections_that_wait() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        connection.is_served().await;
        if asleep {
            doze().await;
        }
        connection.stop.cancel();
        assert_eq!(connection.rest().await, "");
        connection.ends().await;
    }
}

#[tokio::test]
async fn what_is_no_http_is_told_so_asleep_or_not() {
    for asleep in [false, true] {
        let mut connection = Connection::open().await;
        if asleep {
            doze().await;
        }
        connection.say("what?\r\n\r\n").await;
        let rest = connection.rest().await;
        assert!(rest.starts_with("HTTP/1.1 400"), "{rest}");
        connection.ends().await;
    }
}
