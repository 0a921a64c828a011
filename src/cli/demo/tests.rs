//! The demo's two programs, directly against each other over real HTTP: what they say and keep
//! without a gateway in between is what a gateway must not change. And the whole demo.

use std::net::TcpListener;
use std::sync::{Arc, Barrier};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};

use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::client::{Answer, Client, Question, TalkError};
use super::server::DemoServer;
use super::story::tests::Kept;
use super::*;
use crate::upstream::client::Incoming;

/// A server of a test's own, and what reaches it by HTTP.
struct Demo {
    server: DemoServer,
    http: HttpClient,
}

impl Demo {
    fn url(&self) -> Uri {
        self.server.url().parse().unwrap()
    }
}

async fn server() -> Demo {
    let server = DemoServer::start(Kept::default().story()).await.unwrap();
    Demo {
        server,
        http: HttpClient::new(CONNECT).unwrap(),
    }
}

async fn client(server: &Demo, capabilities: Value) -> Client {
    Client::connect(server.http.clone(), server.url(), capabilities)
        .await
        .unwrap()
        .0
}

fn asked() -> Value {
    json!({ "elicitation": {} })
}

fn table(restaurant: &str) -> Value {
    json!({ "restaurant": restaurant, "date": "Friday" })
}

fn four_outside(_: &Question) -> Answer {
    Answer::Accept(json!({ "party_size": 4, "seating": "terrace" }))
}

fn nobody(_: &Question) -> Answer {
    panic!("nobody is to be asked")
}

async fn list(client: &mut Client) -> String {
    client
        .call("list_bookings", json!({}), nobody)
        .await
        .unwrap()
}

/// One request as it is, without a client's help.
async fn send(
    server: &Demo,
    method: Method,
    headers: &[(&'static str, &str)],
    body: &str,
) -> Response<Incoming> {
    let mut request = Request::new(Full::new(Bytes::from(body.to_owned())));
    *request.method_mut() = method;
    *request.uri_mut() = server.url();
    for (name, value) in headers {
        request
            .headers_mut()
            .insert(*name, HeaderValue::from_str(value).unwrap());
    }
    server.http.send(request).await.unwrap()
}

async fn post(
    server: &Demo,
    headers: &[(&'static str, &str)],
    body: &str,
) -> (StatusCode, HeaderMap, String) {
    let (head, body) = send(server, Method::POST, headers, body).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (
        head.status,
        head.headers,
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

/// A new session at `version`; returns its id and the version that the server chose.
async fn open(server: &Demo, version: &str, elicitation: &str) -> (String, String) {
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{{elicitation}}},"clientInfo":{{"name":"t","version":"0"}}}}}}"#
    );
    let (status, headers, body) = post(server, &[], &hello).await;
    assert_eq!(status, StatusCode::OK);
    let welcome: Value = serde_json::from_str(&body).unwrap();
    let chosen = welcome["result"]["protocolVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    (
        headers["mcp-session-id"].to_str().unwrap().to_owned(),
        chosen,
    )
}

#[tokio::test]
async fn a_table_is_booked_with_what_the_person_answered() {
    let server = server().await;
    let mut client = client(&server, asked()).await;
    let booked = client
        .call("book_table", table("Lina"), four_outside)
        .await
        .unwrap();
    assert_eq!(booked, "Booked B1: Lina, Friday, 4 people, terrace.");
    assert_eq!(
        list(&mut client).await,
        "B1: Lina, Friday, 4 people, terrace"
    );
}

#[tokio::test]
async fn a_booking_goes_only_when_the_person_confirms() {
    let server = server().await;
    let mut client = client(&server, asked()).await;
    client
        .call("book_table", table("Lina"), four_outside)
        .await
        .unwrap();
    let mut cancel = async |answer: fn(&Question) -> Answer| {
        client
            .call("cancel_booking", json!({ "booking": "B1" }), answer)
            .await
            .unwrap()
    };
    assert!(
        cancel(|_| Answer::Decline)
            .await
            .starts_with("B1 stays booked")
    );
    assert!(
        cancel(|_| Answer::Cancel)
            .await
            .starts_with("B1 stays booked")
    );
    assert!(
        cancel(|_| Answer::Accept(json!({ "confirm": false })))
            .await
            .starts_with("B1 stays")
    );
    assert!(
        cancel(|_| Answer::Accept(json!({})))
            .await
            .starts_with("B1 stays booked")
    );
    assert!(
        cancel(|_| Answer::Accept(json!({ "confirm": true })))
            .await
            .starts_with("Cancelled B1")
    );
    assert_eq!(list(&mut client).await, "There are no bookings.");
}

#[tokio::test]
async fn nothing_is_booked_when_the_person_says_no_or_nonsense() {
    let server = server().await;
    let mut client = client(&server, asked()).await;
    let answers: [fn(&Question) -> Answer; 3] = [
        |_| Answer::Decline,
        |_| Answer::Cancel,
        |_| Answer::Accept(json!({ "party_size": 400, "seating": "roof" })),
    ];
    for answer in answers {
        let told = client
            .call("book_table", table("Lina"), answer)
            .await
            .unwrap();
        assert!(told.starts_with("Nothing was booked"), "{told}");
    }
    assert_eq!(list(&mut client).await, "There are no bookings.");
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_so_and_not_asked() {
    let server = server().await;
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let mut client = client(&server, capabilities).await;
        let told = client
            .call("book_table", table("Lina"), nobody)
            .await
            .unwrap();
        assert!(told.contains("did not say that it can be asked"), "{told}");
    }
}

#[tokio::test]
async fn a_call_that_makes_no_sense_is_an_error() {
    let server = server().await;
    let mut client = client(&server, asked()).await;
    for (tool, arguments) in [("book_table", json!({})), ("fly", json!({}))] {
        let error = client.call(tool, arguments, nobody).await.unwrap_err();
        assert!(
            matches!(&error, TalkError::Failed(_, e) if e["code"] == -32602),
            "{error}"
        );
    }
}

/// Both questions have the same id and wait at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_sessions_at_once_get_their_own_questions_answers_and_bookings() {
    let server = server().await;
    let both = Arc::new(Barrier::new(2));
    let tasks = TaskTracker::new();
    let people = ["Lina", "Momo"].map(|name| {
        let (http, url, both) = (server.http.clone(), server.url(), Arc::clone(&both));
        tasks.spawn(async move {
            let (mut client, _) = Client::connect(http, url, asked()).await.unwrap();
            let party = if name == "Lina" { 2 } else { 5 };
            let answer = |question: &Question| {
                assert!(question.message.starts_with(name), "{}", question.message);
                both.wait();
                Answer::Accept(json!({ "party_size": party, "seating": "inside" }))
            };
            let booked = client
                .call("book_table", table(name), answer)
                .await
                .unwrap();
            assert_eq!(
                booked,
                format!("Booked B1: {name}, Friday, {party} people, inside.")
            );
            assert_eq!(list(&mut client).await.lines().count(), 1);
        })
    });
    for person in people {
        person.await.unwrap();
    }
}

#[tokio::test]
async fn the_version_is_the_clients_where_the_server_speaks_it_and_the_newest_otherwise() {
    let server = server().await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(open(&server, version, "").await.1, version);
    }
    assert_eq!(open(&server, "2024-11-05", "").await.1, "2025-11-25");
    let (session, _) = open(&server, "2025-06-18", "").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let other = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    assert_eq!(post(&server, &other, ping).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn ids_come_back_as_they_were_written() {
    let server = server().await;
    let (session, _) = open(&server, "2025-11-25", "").await;
    for id in [
        "0",
        "-1",
        "7.0",
        "12345678901234567890123",
        r#""seven""#,
        r#""\u0041""#,
    ] {
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let (_, _, body) = post(&server, &[("mcp-session-id", &session)], &ping).await;
        assert_eq!(
            body,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        );
    }
}

#[tokio::test]
async fn unknown_and_ended_sessions_are_404_and_no_session_is_400() {
    let server = server().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(post(&server, &[], ping).await.0, StatusCode::BAD_REQUEST);
    let (ended, _) = open(&server, "2025-11-25", "").await;
    let known = [("mcp-session-id", ended.as_str())];
    assert_eq!(
        send(&server, Method::DELETE, &known, "").await.status(),
        StatusCode::NO_CONTENT
    );
    for session in ["forged", ended.as_str()] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let response = send(&server, method, &[("mcp-session-id", session)], ping).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
        }
    }
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_calls_and_streams() {
    let server = server().await;
    let (session, _) = open(&server, "2025-11-25", r#""elicitation":{}"#).await;
    let known = [("mcp-session-id", session.as_str())];
    let get = send(&server, Method::GET, &known, "").await;
    let mut call = send(&server, Method::POST, &known, &book(1)).await;
    let question = call.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&question).contains("elicitation/create"));
    send(&server, Method::DELETE, &known, "").await;
    assert!(call.frame().await.is_none());
    assert_eq!(
        get.into_body().collect().await.unwrap().to_bytes(),
        ": open\n\n"
    );
}

#[tokio::test]
async fn a_cancelled_call_ends_without_an_answer_and_its_question_with_it() {
    let server = server().await;
    let (session, _) = open(&server, "2025-11-25", r#""elicitation":{}"#).await;
    let known = [("mcp-session-id", session.as_str())];
    let mut call = send(&server, Method::POST, &known, &book(1)).await;
    call.frame().await.unwrap().unwrap();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(post(&server, &known, cancel).await.0, StatusCode::ACCEPTED);
    assert!(call.frame().await.is_none());
    let late = r#"{"jsonrpc":"2.0","id":"question-1","result":{"action":"accept","content":{"party_size":1,"seating":"inside"}}}"#;
    assert_eq!(post(&server, &known, late).await.0, StatusCode::ACCEPTED);
    let list =
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_bookings"}}"#;
    assert!(
        post(&server, &known, list)
            .await
            .2
            .contains("There are no bookings")
    );
}

fn book(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"book_table","arguments":{{"restaurant":"Lina","date":"Friday"}}}}}}"#
    )
}

#[tokio::test]
async fn a_new_get_stream_takes_the_place_of_the_old_one() {
    let server = server().await;
    let (session, _) = open(&server, "2025-11-25", "").await;
    let known = [("mcp-session-id", session.as_str())];
    let old = send(&server, Method::GET, &known, "").await;
    let _new = send(&server, Method::GET, &known, "").await;
    old.into_body().collect().await.unwrap();
}

#[tokio::test]
async fn batches_are_for_the_oldest_version_only() {
    let server = server().await;
    let batch =
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    let (session, _) = open(&server, "2025-03-26", "").await;
    let (status, _, body) = post(&server, &[("mcp-session-id", &session)], batch).await;
    assert_eq!(
        (status, body.matches("result").count()),
        (StatusCode::OK, 2)
    );
    let (session, _) = open(&server, "2025-11-25", "").await;
    let (status, ..) = post(&server, &[("mcp-session-id", &session)], batch).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_pages_of_other_sites_are_too() {
    let server = server().await;
    for (body, code) in [
        ("{", "-32700"),
        ("{}", "-32600"),
        ("[]", "-32600"),
        ("7", "-32600"),
    ] {
        let (status, _, told) = post(&server, &[], body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(told.contains(code), "{body}: {told}");
    }
    let origin = [("origin", "https://evil.example")];
    assert_eq!(post(&server, &origin, "{}").await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_session_that_was_unused_longest_makes_room() {
    let server = server().await;
    let (first, _) = open(&server, "2025-11-25", "").await;
    let (second, _) = open(&server, "2025-11-25", "").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let alive = async |session: &str| {
        post(&server, &[("mcp-session-id", session)], ping).await.0 == StatusCode::OK
    };
    assert!(alive(&first).await);
    for _ in 0..99 {
        open(&server, "2025-11-25", "").await;
    }
    assert!(!alive(&second).await);
    assert!(alive(&first).await);
}

#[tokio::test]
async fn the_whole_demo_plays_and_ends() {
    let kept = Kept::default();
    show(
        &Options {
            port: 0,
            once: true,
        },
        &kept.story(),
    )
    .await
    .unwrap();
    let text = kept.text();
    let mut rest = text.as_str();
    for step in [
        "client ──▶ gateway              call book_table",
        "gateway ──▶ server   the call of book_table arrives",
        "gateway ◀── server   a question",
        "client ◀── gateway              question: Trattoria Lina",
        "client ──▶ gateway              answer: party_size 4",
        "gateway ──▶ server   the answer arrives: party_size 4",
        "gateway ◀── server   result",
        "client ◀── gateway              result: Booked B1",
        "answer: no",
        "result: B1 stays booked",
        "the session ends",
        "audit log",
    ] {
        let (_, after) = rest
            .split_once(step)
            .unwrap_or_else(|| panic!("{step} in {text}"));
        rest = after;
    }
    let (_, audit) = text.split_once("audit log").unwrap();
    for record in [
        "session.opened     local → demo",
        "question.asked     local → demo   elicitation/create, party_size, seating",
        "question.answered  local → demo   elicitation/create, party_size, seating, accept, ok",
        "question.answered  local → demo   elicitation/create, confirm, decline",
        "call               local → demo   tools/call, book_table, ok",
        "session.closed     local → demo",
    ] {
        assert!(audit.contains(record), "{record} in {audit}");
    }
    assert!(
        !audit.contains("terrace") && !audit.contains("Lina"),
        "{audit}"
    );
}

#[tokio::test]
async fn the_readme_shows_what_the_demo_prints() {
    let kept = Kept::default();
    show(
        &Options {
            port: 0,
            once: true,
        },
        &kept.story(),
    )
    .await
    .unwrap();
    let readme = include_str!("../../../README.md");
    let shown = readme
        .split("```text\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert!(kept.text().contains(shown), "{shown}");
}

#[tokio::test]
async fn a_port_in_use_is_told_with_its_number_and_the_option_that_changes_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let options = Options { port, once: true };
    let told = show(&options, &Kept::default().story())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        told.contains(&format!("port {port}")) && told.contains("--port"),
        "{told}"
    );
}
