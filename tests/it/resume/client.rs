//! A client that lost its stream comes back with the id of the last event that it has read
//! (2025-03-26 … 2025-11-25 basic/transports, "Resumability and Redelivery").

use crate::support::token::{self, Key};
use crate::support::{
    Client, EVERYTHING, Gateway, Reply, Server, Session, Setup, Stream, json, pair, triple,
};

const ANSWER: &str = r#"{"action":"accept","content":{"nick":"Mira"}}"#;

/// A call of `ask` whose answer has become a stream, and what the client reads of it.
async fn calling(server: &Server, session: &Session) -> (Stream, Reply) {
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    (stream, call.await.unwrap())
}

/// The next event, which must have an id: that, and its data.
async fn event(reply: &mut Reply) -> (String, String) {
    let event = reply.event().await.expect("an event");
    (event.id.expect("an id"), event.data.unwrap_or_default())
}

async fn elicit(stream: &Stream, id: &str) {
    let question = json::request(id, "elicitation/create", &json::form("Who?"));
    stream.send(&question).await;
}

fn notice(number: u32) -> String {
    json::notice("notifications/message", &format!(r#"{{"data":{number}}}"#))
}

/// Comes back to a stream after this event.
async fn resume(session: &Session, last: &str) -> Reply {
    let client = session.client.with("last-event-id", last);
    client.with("accept", "text/event-stream").get().await
}

/// F29: the connection breaks before the question is read, and the person never notices.
#[tokio::test]
async fn a_question_waits_for_a_client_that_lost_its_stream() {
    let (server, _gateway, session) = triple().await;
    let (stream, mut reply) = calling(&server, &session).await;
    let (start, data) = event(&mut reply).await;
    assert_eq!(data, "", "the stream begins with an id to come back with");
    drop(reply);
    elicit(&stream, "7").await;
    let mut back = resume(&session, &start).await;
    assert_eq!(back.status, 200);
    let question = back.question("elicitation/create").await;
    assert_eq!(session.answer(&question, ANSWER).await, 202);
    assert_eq!(server.answer_to("7").await, json::result("7", ANSWER));
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&back.next().await), "done");
    back.ends().await;
}

/// F29: the person was thinking when the connection broke. The question is not asked twice, and the call
/// ends where its client now reads.
#[tokio::test]
async fn what_was_read_is_not_read_again() {
    let (server, _gateway, session) = triple().await;
    let (stream, mut reply) = calling(&server, &session).await;
    event(&mut reply).await;
    elicit(&stream, "7").await;
    let (last, question) = event(&mut reply).await;
    drop(reply);
    let mut back = resume(&session, &last).await;
    assert_eq!(session.answer(&question, ANSWER).await, 202);
    server.answer_to("7").await;
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&back.next().await), "done");
    back.ends().await;
}

/// Sent, but lost on the way: the client says what it has, and gets the rest in order, each once.
#[tokio::test]
async fn what_was_sent_and_never_arrived_is_sent_again() {
    let (server, _gateway, session) = triple().await;
    let (stream, mut reply) = calling(&server, &session).await;
    event(&mut reply).await;
    for number in 0..4 {
        stream.send(&notice(number)).await;
    }
    let mut ids = Vec::new();
    for number in 0..4 {
        let (id, data) = event(&mut reply).await;
        assert_eq!(data, notice(number));
        ids.push(id);
    }
    drop(reply);
    let mut back = resume(&session, &ids[1]).await;
    for number in 2..4 {
        let (id, data) = event(&mut back).await;
        assert_eq!((&id, data), (&ids[number as usize], notice(number)));
    }
    stream.send(&notice(4)).await;
    assert_eq!(back.next().await, notice(4));
}

/// The outcome comes while nobody is there, and is kept.
#[tokio::test]
async fn an_outcome_waits_too() {
    let (server, gateway, session) = triple().await;
    let (stream, mut reply) = calling(&server, &session).await;
    let (start, _) = event(&mut reply).await;
    drop(reply);
    stream.result(&json::text_result("done")).await;
    gateway
        .audited("call", |line| {
            line["type"] == "call" && line["outcome"] == "ok"
        })
        .await;
    for _ in 0..2 {
        // Lost a second time: it is still there.
        let mut back = resume(&session, &start).await;
        assert_eq!(json::text_of(&back.next().await), "done");
        back.ends().await;
    }
}

/// A question that its person has answered, or its server withdrawn, is not asked again.
#[tokio::test]
async fn a_question_that_is_over_does_not_come_back() {
    let (server, _gateway, session) = triple().await;
    let (stream, mut reply) = calling(&server, &session).await;
    let (start, _) = event(&mut reply).await;
    elicit(&stream, "7").await;
    let question = reply.question("elicitation/create").await;
    assert_eq!(session.answer(&question, ANSWER).await, 202);
    server.answer_to("7").await;
    drop(reply);
    stream.send(&notice(1)).await;
    let mut back = resume(&session, &start).await;
    assert_eq!(back.next().await, notice(1));
}

/// The standalone stream, too: what its reader missed is there once.
#[tokio::test]
async fn a_standalone_stream_goes_on_after_the_last_event() {
    let (server, _gateway, session) = triple().await;
    let up = server.last_get_stream().await;
    let mut listening = session.listen().await;
    let (start, _) = event(&mut listening).await;
    up.send(&notice(1)).await;
    up.send(&notice(2)).await;
    let (one, _) = event(&mut listening).await;
    event(&mut listening).await;
    drop(listening);
    up.send(&notice(3)).await;
    let mut back = resume(&session, &one).await;
    for number in 2..4 {
        assert_eq!(back.next().await, notice(number));
    }
    let mut again = resume(&session, &start).await;
    for number in 1..4 {
        assert_eq!(again.next().await, notice(number));
    }
    // Whoever comes back takes the place of who read before.
    back.ends().await;
}

/// F40 for streams: an id tells nothing to another session, of the same person or not.
#[tokio::test]
async fn an_event_id_is_good_in_its_own_session_alone() {
    let (server, gateway, session) = triple().await;
    let (stream, mut reply) = calling(&server, &session).await;
    let (start, _) = event(&mut reply).await;
    stream.send(&notice(1)).await;
    event(&mut reply).await;
    let other = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let up = server.last_get_stream().await;
    let mut stranger = resume(&other, &start).await;
    up.send(&notice(2)).await;
    assert_eq!(stranger.next().await, notice(2));
    drop(stream);
}

/// Streams are told apart: what one call sent is not replayed on the stream of another.
/// Reported in modelcontextprotocol/servers#4099, modelcontextprotocol/typescript-sdk#943, `leehack/mcp_dart#137`.
#[tokio::test]
async fn a_stream_carries_its_own_again_and_nothing_else() {
    let (server, _gateway, session) = triple().await;
    let (one, mut first) = calling(&server, &session).await;
    let (start, _) = event(&mut first).await;
    let call = session.start(json::call("2", "ask", "{}"));
    let two = server.called("ask").await.stream();
    let mut second = call.await.unwrap();
    for number in [1, 3] {
        one.send(&notice(number)).await;
        assert_eq!(first.next().await, notice(number));
        two.send(&notice(number + 1)).await;
        assert_eq!(second.next().await, notice(number + 1));
    }
    drop(first);
    let mut back = resume(&session, &start).await;
    for number in [1, 3] {
        assert_eq!(back.next().await, notice(number));
    }
    one.result(&json::text_result("first")).await;
    assert_eq!(json::text_of(&back.next().await), "first");
    back.ends().await;
}

/// Ids came with 2025-03-26; the event that begins a stream with 2025-11-25: older clients can't parse it.
#[tokio::test]
async fn each_version_gets_what_it_can_read() {
    let (server, gateway) = pair().await;
    for (version, ids, priming) in [
        ("2024-11-05", false, false),
        ("2025-03-26", true, false),
        ("2025-06-18", true, false),
        ("2025-11-25", true, true),
    ] {
        let session = Client::new(&gateway, "alpha")
            .open_at(version, EVERYTHING)
            .await;
        let (stream, mut reply) = calling(&server, &session).await;
        stream.send(&notice(1)).await;
        let mut first = reply.event().await.unwrap();
        if priming {
            assert_eq!(first.data.as_deref().unwrap_or_default(), "", "{version}");
            assert!(first.id.is_some() && first.retry.is_some(), "{version}");
            first = reply.event().await.unwrap();
        }
        assert_eq!(first.data, Some(notice(1)), "{version}");
        assert_eq!(first.id.is_some(), ids, "{version}");
        assert_eq!(reply.raw().contains("retry:"), priming, "{version}");
    }
}

/// An id that this session gave out, of a stream that is long over.
#[tokio::test]
async fn a_stream_that_is_not_known_any_more_is_a_clear_error() {
    let (server, _gateway, session) = triple().await;
    let (stream, mut reply) = calling(&server, &session).await;
    let (start, _) = event(&mut reply).await;
    stream.result(&json::text_result("done")).await;
    reply.next().await;
    let never = start.replacen("-c", "-c99", 1);
    let mut back = resume(&session, &never).await;
    assert_eq!(back.status, 400);
    let error = back.json().await;
    assert_eq!(error["error"]["data"]["reason"], "unknown_stream");
    session.works().await;
}

/// F29: who does not come back within the time for it has left for good.
#[tokio::test]
async fn f29_a_call_is_cancelled_when_nobody_comes_back() {
    let server = Server::start().await;
    let setup = Setup::new().server("alpha", &server);
    let gateway = setup.yaml("timeouts: { resume: 200ms }").start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let (stream, mut reply) = calling(&server, &session).await;
    event(&mut reply).await;
    elicit(&stream, "7").await;
    event(&mut reply).await;
    drop(reply);
    let told = server.notice("notifications/cancelled").await;
    assert_eq!(told.raw(&["params", "requestId"]), Some(stream.id.clone()));
    gateway
        .audited("call", |line| {
            line["type"] == "call" && line["outcome"] == "cancelled"
        })
        .await;
    session.works().await;
}

/// A batch of 2025-03-26 has one stream for all its calls.
#[tokio::test]
async fn the_stream_of_a_batch_goes_on_with_what_is_missing() {
    let (server, gateway) = pair().await;
    let session = Client::new(&gateway, "alpha")
        .open_at("2025-03-26", EVERYTHING)
        .await;
    let calls = [json::call("1", "one", "{}"), json::call("2", "two", "{}")];
    let call = session.start(format!("[{}]", calls.join(",")));
    let one = server.called("one").await;
    let two = server.called("two").await;
    one.result(&json::text_result("one"));
    let mut reply = call.await.unwrap();
    let (last, data) = event(&mut reply).await;
    assert_eq!(json::text_of(&data), "one");
    drop(reply);
    let mut back = resume(&session, &last).await;
    two.result(&json::text_result("two"));
    assert_eq!(json::text_of(&back.next().await), "two");
    back.ends().await;
}

/// F33: the stream of a call ends with the token that opened it; with a fresh one its client comes back.
#[tokio::test]
async fn f33_a_stream_ends_with_its_token_and_the_call_goes_on() {
    let server = Server::start().await;
    let setup = Setup::new().server("alpha", &server);
    let key = Key::new("k");
    let (gateway, client) = with_tokens(setup, &key).await;
    let fresh = client.bearer(&key.token("mira"));
    let session = fresh.open(EVERYTHING).await;
    // The clocks of two machines may differ by 30 s: it counts for some 4 s more.
    let mut short = token::claims("mira");
    short["exp"] = (token::now() - 26).into();
    let short = key.sign(&key.header(), &short);
    let call = Session {
        client: session.client.bearer(&short),
        ..session.clone()
    };
    let (stream, mut reply) = calling(&server, &call).await;
    let (last, _) = event(&mut reply).await;
    elicit(&stream, "7").await;
    let (last, question) = {
        let (id, question) = event(&mut reply).await;
        assert_ne!(id, last);
        (id, question)
    };
    reply.ends().await;
    assert_eq!(resume(&call, &last).await.status, 401);
    let mut back = resume(&session, &last).await;
    assert_eq!(session.answer(&question, ANSWER).await, 202);
    server.answer_to("7").await;
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&back.next().await), "done");
    drop(gateway);
}

async fn with_tokens(setup: Setup, key: &Key) -> (Gateway, Client) {
    let path = Key::write(&[key], setup.folder());
    let auth = format!(
        "public_url: {}\nallowed_hosts: [127.0.0.1]\nauth: {{ issuers: [ {{ issuer: \"{}\", jwks_file: \"{}\" }} ] }}",
        token::PUBLIC,
        token::ISSUER,
        path.display()
    );
    let gateway = setup.yaml(&auth).start().await;
    let client = Client::new(&gateway, "alpha");
    (gateway, client)
}
