//! URLs as hooks, at a real listener.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::post;
use contraflow::policy::hook::{Endpoint, Hook, HookError, Junk, Opinion, Target};
use contraflow::upstream::client::HttpClient;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::logs;
use crate::support::{PATIENCE, SOON, after, before, content};

/// A listener with an answer of each kind, which keeps what it was told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<(HeaderMap, Value)>>>);

const ACCEPT: &str = r#"{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{"name": "Ada"}}}"#;

async fn listen() -> (String, Told) {
    let told = Told::default();
    let keep = told.clone();
    let routes = Router::new()
        .route(
            "/accept",
            post(move |headers: HeaderMap, body: Bytes| async move {
                let body = serde_json::from_slice(&body).unwrap();
                keep.0.lock().push((headers, body));
                ACCEPT
            }),
        )
        .route("/empty", post(async || ""))
        .route("/none", post(async || StatusCode::NO_CONTENT))
        .route("/created", post(async || (StatusCode::CREATED, ACCEPT)))
        .route("/remark", post(async || "fine"))
        .route(
            "/failing",
            post(async || (StatusCode::INTERNAL_SERVER_ERROR, ACCEPT)),
        )
        .route("/refusing", post(async || (StatusCode::FORBIDDEN, "")))
        .route(
            "/moved",
            post(async || Redirect::temporary("/accept").into_response()),
        )
        .route("/slow", post(std::future::pending::<()>))
        .route("/endless", post(async || Body::from_stream(endless())))
        .route(
            "/dripping",
            post(async || Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>())),
        );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    (format!("http://{address}"), told)
}

fn endless() -> impl stream::Stream<Item = Result<Bytes, std::io::Error>> {
    stream::repeat_with(|| Ok(Bytes::from_static(&[b' '; 4096])))
}

fn hook(url: &str, within: Duration) -> Hook {
    with_headers(url, within, HeaderMap::new())
}

fn with_headers(url: &str, within: Duration, headers: HeaderMap) -> Hook {
    logs::listen();
    let client = HttpClient::new(Duration::from_secs(5)).unwrap();
    let endpoint = Endpoint::new(client, url.parse().unwrap(), headers);
    Hook::new(Target::Url(Box::new(endpoint)), within, &TaskTracker::new())
}

#[tokio::test]
async fn a_url_gets_the_question_in_a_post_with_its_headers() {
    let (base, told) = listen().await;
    let mut headers = HeaderMap::new();
    headers.insert(
        HeaderName::from_static("x-hook-key"),
        HeaderValue::from_static("k-123"),
    );
    let hook = with_headers(&format!("{base}/accept?tenant=1"), PATIENCE, headers);
    assert_eq!(content(before(&hook).await), r#"{"name": "Ada"}"#);
    let (headers, body) = told.0.lock().pop().unwrap();
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["x-hook-key"], "k-123");
    assert_eq!(body["hook_event_name"], "Elicitation");
    assert_eq!(body["tool_name"], "mcp__booking__book_table");
    // Where the gateway runs is nobody's business there.
    assert_eq!(body["cwd"], "");
    let shown = format!("{hook:?}");
    assert!(
        !shown.contains("k-123") && !shown.contains("tenant"),
        "{shown}"
    );
}

#[tokio::test]
async fn any_success_is_an_answer_and_without_a_body_no_opinion() {
    let (base, _) = listen().await;
    for path in ["/empty", "/none"] {
        let opinion = before(&hook(&format!("{base}{path}"), PATIENCE)).await;
        assert_eq!(opinion.unwrap(), Opinion::Pass, "{path}");
    }
    let created = before(&hook(&format!("{base}/created"), PATIENCE)).await;
    assert_eq!(content(created), r#"{"name": "Ada"}"#);
}

#[tokio::test]
async fn a_status_that_is_no_success_is_a_failure_whatever_the_body_says() {
    let (base, told) = listen().await;
    for (path, status) in [
        ("/failing", StatusCode::INTERNAL_SERVER_ERROR),
        ("/refusing", StatusCode::FORBIDDEN),
        ("/moved", StatusCode::TEMPORARY_REDIRECT),
        ("/nowhere", StatusCode::NOT_FOUND),
    ] {
        match before(&hook(&format!("{base}{path}"), PATIENCE)).await {
            Err(HookError::Status(found)) => assert_eq!(found, status, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
    assert!(told.0.lock().is_empty(), "a redirect was followed");
}

#[tokio::test]
async fn a_url_that_does_not_answer_in_time_is_not_waited_for() {
    let (base, _) = listen().await;
    for path in ["/slow", "/dripping"] {
        let error = before(&hook(&format!("{base}{path}"), SOON)).await;
        let error = error.unwrap_err();
        assert!(matches!(error, HookError::Timeout(SOON)), "{path}: {error}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_not_read_to_its_end() {
    let (base, _) = listen().await;
    let error = before(&hook(&format!("{base}/endless"), PATIENCE)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, HookError::TooMuch("the answer")), "{error}");
}

#[tokio::test]
async fn a_remark_and_an_answer_to_another_event_are_failures() {
    let (base, _) = listen().await;
    let error = before(&hook(&format!("{base}/remark"), PATIENCE)).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, HookError::Junk(Junk::NoObject(..))),
        "{error}"
    );
    let hook = hook(&format!("{base}/accept"), PATIENCE);
    let error = after(&hook, r#"{"action":"decline"}"#).await.unwrap_err();
    assert!(
        matches!(error, HookError::Junk(Junk::Event("ElicitationResult"))),
        "{error}"
    );
}

#[tokio::test]
async fn a_url_where_nobody_listens_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = before(&hook(&format!("http://{address}/"), PATIENCE)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, HookError::Unreachable(_)), "{error}");
}
