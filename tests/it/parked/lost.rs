//! Answers that are written and not read, and servers that say a thing twice: what was decided once
//! stays decided, and nothing is executed a second time that nobody asked for a second time.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{answers_to, parked};
use crate::support::{
    Ask, Gateway, Modern, Round, Server, Setup, accepted, json, modern, two_people, within,
};

/// Sends a request on a connection that is closed when the whole answer has arrived at the machine of
/// the client, which never read it. Gives what it would have read.
async fn unread(gateway: &Gateway, ask: &Ask) -> String {
    let body = ask.body();
    let mut request = format!(
        "POST /mcp/alpha HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
        gateway.address(),
        body.len()
    );
    for (name, value) in &ask.client().headers {
        request = request + name.as_str() + ": " + value.to_str().unwrap() + "\r\n";
    }
    let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
    let request = format!("{request}\r\n{body}");
    socket.write_all(request.as_bytes()).await.unwrap();
    let arrived = async {
        let mut seen = vec![0; 64 * 1024];
        loop {
            let length = socket.peek(&mut seen).await.unwrap();
            let text = String::from_utf8_lossy(&seen[..length]).into_owned();
            let parts = text.split_once("\r\n\r\n");
            if let Some((_, body)) = parts.filter(|(_, body)| body.ends_with('}')) {
                return body.to_owned();
            }
        }
    };
    within("the answer", arrived).await
}

/// F30: the client leaves while it is sent away. The call stays parked: had the client read its state, it
/// could come back. Who calls anew calls a second time, and that is what they asked for.
#[tokio::test]
async fn f30_the_client_disconnects_while_the_round_is_written() {
    let (server, gateway, client) = modern().await;
    let ask = client.call("1", "ask", "{}");
    let going = unread(&gateway, &ask);
    let asking = async {
        let stream = server.called("ask").await.stream();
        super::elicit(&stream, "7", "Who?").await;
        stream
    };
    let (round, stream) = tokio::join!(going, asking);
    client.works().await;
    let again = ask.start();
    let second = server.called("ask").await;
    second.result(&json::text_result("the second"));
    assert_eq!(
        json::text_of(&again.await.unwrap().next().await),
        "the second"
    );
    assert!(server.answers().is_empty(), "the first still waits");
    let round = Round::of(&round);
    let going = ask
        .retry("2", &round, &round.all(&accepted("Mira")))
        .start();
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", &accepted("Mira"))
    );
    stream.result(&json::text_result("the first")).await;
    assert_eq!(
        json::text_of(&going.await.unwrap().next().await),
        "the first"
    );
}

/// F3: the connection breaks before the outcome is read. The very same request gets it again, from the
/// same person only, and the server hears nothing of that.
#[tokio::test]
async fn f3_an_outcome_that_was_not_read() {
    let (server, gateway, mira, joris) = two_people().await;
    let call = parked(&server, &mira).await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("Mira")));
    let going = unread(&gateway, &retry);
    let answering = async {
        server.answer_to("7").await;
        call.stream.result(&json::text_result("done")).await;
    };
    let (outcome, ()) = tokio::join!(going, answering);
    for _ in 0..2 {
        let mut reply = retry.send().await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.next().await, outcome);
    }
    assert_eq!(json::text_of(&outcome), "done");
    gateway
        .audited_times("that it was given again", 2, |line| {
            line["reason"] == "outcome_given_again"
        })
        .await;
    // Another spelling of the same is another request.
    for other in [
        retry.clone().id("3"),
        retry.clone().meta("trace", "1"),
        call.ask
            .retry("2", &call.round, &call.round.all(&accepted("Other"))),
    ] {
        assert_eq!(other.refused().await.2, "state_consumed");
    }
    let theirs = joris.call("1", "ask", r#"{"n":2,"m":{"a":1.0}}"#).retry(
        "2",
        &call.round,
        &call.round.all(&accepted("Mira")),
    );
    assert_eq!(theirs.body(), retry.body());
    assert_eq!(theirs.refused().await.2, "state_invalid");
    mira.works().await;
    assert_eq!(answers_to(&server, "7"), 1);
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// F3: an error is an outcome, too, and so is one that had waited for the client.
#[tokio::test]
async fn f3_an_outcome_that_had_waited_is_given_again() {
    let (server, gateway, client) = modern().await;
    let call = parked(&server, &client).await;
    call.stream.abort().await;
    gateway
        .audited("the call", |line| line["method"] == "tools/call")
        .await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("x")));
    let first = retry.send().await.next().await;
    assert!(json::parse(&first)["error"].is_object(), "{first}");
    assert_eq!(retry.send().await.next().await, first);
}

/// F52: to be given an outcome again counts as coming back does.
#[tokio::test]
async fn f52_an_outcome_that_is_asked_for_too_often() {
    let server = Server::start().await;
    let limits = "{ limits: { requests: 3/h, burst: 3 } }";
    let setup = Setup::new().server_with("alpha", &server, limits);
    let gateway = setup.start().await;
    let call = parked(&server, &Modern::new(&gateway, "alpha")).await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("Mira")));
    let going = retry.start();
    server.answer_to("7").await;
    call.stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(json::text_of(&retry.send().await.next().await), "done");
    assert_eq!(retry.refused().await.1, -31004);
}

/// F55: a server answers one request twice. The first counts, wherever the second comes and whenever.
#[tokio::test]
async fn f55_a_second_response() {
    let (server, gateway, client) = modern().await;
    let standalone = {
        client.works().await;
        server.last_get_stream().await
    };
    // While the client waits.
    let going = client.call("1", "order", "{}").start();
    let stream = server.called("order").await.stream();
    let [first, second] =
        ["first", "second"].map(|text| json::result(&stream.id, &json::text_result(text)));
    stream
        .bytes(&format!("data: {first}\n\ndata: {second}\n\n"))
        .await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "first");
    standalone.send(&second).await;
    // While it is away.
    let call = parked(&server, &client).await;
    let [first, second] =
        ["first", "second"].map(|text| json::result(&call.stream.id, &json::text_result(text)));
    call.stream
        .bytes(&format!("data: {first}\n\ndata: {second}\n\n"))
        .await;
    gateway
        .audited("the call", |line| {
            line["type"] == "call" && line["target"] == "ask"
        })
        .await;
    standalone.send(&second).await;
    let retry = call
        .ask
        .retry("2", &call.round, &call.round.all(&accepted("x")));
    assert_eq!(json::text_of(&retry.send().await.next().await), "first");
    client.works().await;
}
