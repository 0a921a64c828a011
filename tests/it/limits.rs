//! Limits: who asks too much is told so in a way that every client survives; nobody else notices.

use crate::support::client::initialize;
use crate::support::token::sha256;
use crate::support::{Client, EVERYTHING, Gateway, NOTHING, Server, Session, Setup, json};

/// F11: the burst is used up, the next call is refused without reaching the server, and the session
/// lives. The answer to a question is never refused: somebody waits for it.
/// Reported in stacklok/toolhive#4550 and #4551, openstatusHQ/openstatus#2689.
#[tokio::test]
async fn the_rate_of_a_server() {
    let (server, gateway) = limited("{ limits: { requests: 5/h } }", "").await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    let passed = until_refused(&session, "per server").await;
    assert!(passed < 5, "{passed}");
    assert_eq!(
        server.seen_method("tools/call").len(),
        passed + 1,
        "refused calls stay here"
    );

    stream
        .send(&json::request("1", "elicitation/create", &json::form("?")))
        .await;
    let question = reply.question("elicitation/create").await;
    assert_eq!(
        session.answer(&question, r#"{"action":"decline"}"#).await,
        202
    );
    server.answer_to("1").await;
    assert_eq!(
        session
            .notify("notifications/cancelled", r#"{"requestId":1}"#)
            .await,
        202
    );
    stream.result("{}").await;
    drop(reply.maybe_next().await);
    assert!(session.delete().await.is_success());
    gateway
        .audited("the refusal", |line| line["type"] == "refused")
        .await;
}

/// A burst of its own.
#[tokio::test]
async fn the_burst_of_a_server() {
    let (server, gateway) = limited("{ limits: { requests: 1/h, burst: 8 } }", "").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let passed = until_refused(&session, "burst").await;
    assert!((5..=8).contains(&passed), "{passed}");
    assert_eq!(server.seen_method("tools/call").len(), passed);
}

/// F11: a limit of one person is no limit of another, and the rate holds over all their sessions.
/// Reported in stacklok/toolhive#4550 and #4551, openstatusHQ/openstatus#2689.
#[tokio::test]
async fn the_rate_of_a_principal() {
    let keys = format!(
        "limits: {{ per_principal: {{ requests: 6/h }} }}\nauth: {{ api_keys: [ {{ name: mira, sha256: \"{}\" }}, {{ name: joris, sha256: \"{}\" }} ] }}",
        sha256("mira-0123456789abcdef"),
        sha256("joris-0123456789abcdef")
    );
    let (_server, gateway) = limited("{}", &keys).await;
    let client = Client::new(&gateway, "alpha");
    let mira = client.bearer("mira-0123456789abcdef").open(NOTHING).await;
    until_refused(&mira, "mira").await;
    let joris = client.bearer("joris-0123456789abcdef").open(NOTHING).await;
    joris.works().await;
    let line = gateway
        .audited("the refusal", |line| line["type"] == "refused")
        .await;
    assert_eq!(line["principal"]["subject"], "mira");
}

/// One server's limit is not another's.
#[tokio::test]
async fn other_servers_are_not_touched() {
    let (alpha, beta) = (Server::start().await, Server::start().await);
    let gateway = Setup::new()
        .server_with("alpha", &alpha, "{ limits: { requests: 4/h } }")
        .server("beta", &beta)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    until_refused(&session, "alpha").await;
    let other = Client::new(&gateway, "beta").open(NOTHING).await;
    for _ in 0..10 {
        other.works().await;
    }
}

/// Calls at once, per server: the third waits for nobody, it is told; when one ends there is room.
#[tokio::test]
async fn calls_at_once_at_a_server() {
    let (server, gateway) = limited("{ limits: { concurrent: 2 } }", "").await;
    at_once(&server, &gateway).await;
}

/// The same per person.
#[tokio::test]
async fn calls_at_once_of_a_principal() {
    let (server, gateway) = limited("{}", "limits: { per_principal: { concurrent: 2 } }").await;
    at_once(&server, &gateway).await;
}

async fn at_once(server: &Server, gateway: &Gateway) {
    let first_session = Client::new(gateway, "alpha").open(NOTHING).await;
    let second_session = Client::new(gateway, "alpha").open(NOTHING).await;
    let first = first_session.start(json::call("1", "slow", "{}"));
    let second = second_session.start(json::call("1", "slow", "{}"));
    let first_held = server.called("slow").await;
    let second_held = server.called("slow").await;
    refused(&first_session, "concurrent").await;
    refused(&second_session, "concurrent").await;
    first_held.result("{}");
    second_held.result("{}");
    assert_eq!(first.await.unwrap().json().await["id"], 1);
    assert_eq!(second.await.unwrap().json().await["id"], 1);
    first_session.works().await;
    second_session.works().await;
}

/// A call that is cancelled, or whose server fails, or whose client left, gives its place back.
#[tokio::test]
async fn places_are_given_back() {
    let (server, gateway) = limited("{ limits: { concurrent: 1 } }", "").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    for round in 0..4 {
        let call = session.start(json::call("1", "slow", "{}"));
        let held = server.called("slow").await;
        match round {
            0 => held.respond(500, "text/plain", "no"),
            1 => held.stream().abort().await,
            2 => drop(held.stream()),
            _ => {
                let stream = held.stream();
                drop(call.await.unwrap());
                stream.result("{}").await;
                gateway
                    .audited_times("the calls", 7, |line| line["type"] == "call")
                    .await;
                break;
            }
        }
        let mut reply = call.await.unwrap();
        while reply.maybe_next().await.is_some_and(|_| reply.is_stream()) {}
        session.works().await;
    }
    session.works().await;
}

/// `answer: http` is for those whose clients read statuses.
#[tokio::test]
async fn answered_by_status_if_wanted() {
    let (_server, gateway) =
        limited("{ limits: { requests: 4/h } }", "limits: { answer: http }").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    for _ in 0..5 {
        let mut reply = session.call("\"mine\"", "echo", "{}").await;
        if reply.status == 200 {
            reply.next().await;
            continue;
        }
        assert_eq!(reply.status, 429);
        let seconds: u64 = reply.header("retry-after").parse().unwrap();
        assert!(seconds > 0);
        let error = reply.json().await;
        assert_eq!(error["error"]["code"], -31004);
        assert_eq!(error["id"], "mine");
        return;
    }
    panic!("never refused");
}

/// Too many sessions are another limit: the client hears when to come back, and with `answer: http`
/// the status says that there is no room, not that it asked too fast.
#[tokio::test]
async fn sessions_at_once() {
    for (answer, status) in [("jsonrpc", 200), ("http", 503)] {
        let yaml = format!("limits: {{ answer: {answer}, per_principal: {{ sessions: 1 }} }}");
        let (_server, gateway) = limited("{}", &yaml).await;
        let _first = Client::new(&gateway, "alpha").open(NOTHING).await;
        let mut second = Client::new(&gateway, "alpha")
            .post(initialize("2025-11-25", NOTHING))
            .await;
        assert_eq!(second.status, status, "{answer}");
        assert_eq!(second.header("retry-after"), "10", "{answer}");
        let error = second.json().await["error"].clone();
        assert_eq!(error["code"], -31006, "{error}");
        assert_eq!(error["data"]["reason"], "capacity", "{error}");
        assert_eq!(error["data"]["retryAfterMs"], 10_000, "{error}");
    }
}

/// The word for the limit tells a rate from calls at once.
#[tokio::test]
async fn which_limit_it_was() {
    let (server, gateway) = limited("{ limits: { concurrent: 1 } }", "").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let call = session.start(json::call("1", "slow", "{}"));
    let held = server.called("slow").await;
    let crowded = session.call("2", "echo", "{}").await.json().await;
    assert_eq!(crowded["error"]["data"]["reason"], "concurrency_limited");
    held.result("{}");
    call.await.unwrap().next().await;

    let (_server, gateway) = limited("{ limits: { requests: 1/h, burst: 2 } }", "").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let mut answer = session.call("1", "echo", "{}").await.json().await;
    while answer["error"].is_null() {
        answer = session.call("1", "echo", "{}").await.json().await;
    }
    assert_eq!(answer["error"]["data"]["reason"], "rate_limited");
}

/// An escape in the name of a method does not get a call past its limit, or past the record.
#[tokio::test]
async fn calls_in_disguise() {
    let (server, gateway) = limited("{ limits: { concurrent: 1 } }", "").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let call = session.start(json::call("1", "slow", "{}"));
    let held = server.called("slow").await;
    for body in [
        r#"{"jsonrpc":"2.0","id":"mine","method":"tools\/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","id":"mine","m\u0065thod":"tools/call","params":{"name":"echo"}}"#,
    ] {
        let mut reply = session.post(body).await;
        is_refusal(&reply.json().await, body);
    }
    held.result("{}");
    call.await.unwrap().next().await;
    let disguised =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools\u002fcall","params":{"n\u0061me":"ech\u006f"}}"#;
    session.post(disguised).await.next().await;
    gateway
        .audited("the call by its name", |line| {
            line["type"] == "call" && line["method"] == "tools/call" && line["target"] == "echo"
        })
        .await;
}

/// Rates that nobody named are unlimited.
#[tokio::test]
async fn no_limit_is_no_limit() {
    let (_server, gateway) = limited("{}", "").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    for _ in 0..200 {
        session.works().await;
    }
}

async fn limited(of_server: &str, yaml: &str) -> (Server, Gateway) {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server_with("alpha", &server, of_server)
        .yaml(yaml)
        .start()
        .await;
    (server, gateway)
}

/// Calls until a call is refused, and gives how many passed before.
async fn until_refused(session: &Session, case: &str) -> usize {
    for passed in 0..20 {
        let mut reply = session.call("\"mine\"", "echo", r#"{"x":1}"#).await;
        assert_eq!(reply.status, 200, "{case}");
        let answer = reply.json().await;
        assert_eq!(answer["id"], "mine", "{case}");
        if answer["error"].is_object() {
            is_refusal(&answer, case);
            // And again: the session goes on being told.
            refused(session, case).await;
            return passed;
        }
    }
    panic!("{case}: never refused");
}

async fn refused(session: &Session, case: &str) {
    let mut reply = session.call("\"mine\"", "echo", "{}").await;
    assert_eq!(reply.status, 200, "{case}");
    is_refusal(&reply.json().await, case);
}

fn is_refusal(answer: &serde_json::Value, case: &str) {
    let error = &answer["error"];
    assert_eq!(error["code"], -31004, "{case}: {answer}");
    assert_eq!(error["data"]["source"], "gateway", "{case}: {answer}");
    assert!(
        error["data"]["retryAfterMs"]
            .as_u64()
            .is_some_and(|ms| ms > 0),
        "{case}: {answer}"
    );
}
