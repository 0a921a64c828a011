//! Answers as HTTP responses.

use std::pin::Pin;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};

use super::stream::EventBody;
use crate::auth::Denied;
use crate::config::LimitAnswer;
use crate::error::Error;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What the front answers.
pub(super) type Response = http::Response<Body>;

/// The body of an answer.
pub(super) enum Body {
    Empty,
    Full(Bytes),
    Events(Pin<Box<EventBody>>),
}

/// A status and nothing else.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response
}

/// A JSON body.
pub(super) fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::Full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A plain text.
pub(super) fn text(status: StatusCode, text: &'static str) -> Response {
    let mut response = json(status, Bytes::from_static(text.as_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}

/// An event stream. The headers keep proxies from holding events back.
pub(super) fn events(body: EventBody) -> Response {
    let mut response = Response::new(Body::Events(Box::pin(body)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// 405 with the methods that there are.
pub(super) fn not_allowed(methods: &'static str) -> Response {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(methods));
    response
}

/// An error, for the request with this id (JSON text) to this server.
pub(super) fn error(
    error: &Error,
    id: Option<&str>,
    server: Option<&str>,
    answer: LimitAnswer,
) -> Response {
    let status = match answer {
        LimitAnswer::JsonRpc => error.status(),
        LimitAnswer::Http => error.strict_status(),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, error.body(id, server));
    if let Some(wait) = error.retry_after() {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The answer to a caller who may not come in.
pub(super) fn denied(denied: &Denied) -> Response {
    let mut response = json(denied.status(), denied.body().into());
    let headers = response.headers_mut();
    if let Some(challenge) = denied.www_authenticate() {
        headers.insert(WWW_AUTHENTICATE, challenge.clone());
    }
    if let Some(wait) = denied.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
    }
    response
}
