//! What browsers need to be told before a page of another origin may talk to the gateway.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::reply::{self, Response};

const HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, x-api-key, x-contraflow-headless",
);
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("mcp-protocol-version, mcp-session-id, retry-after, www-authenticate");

/// What the headers begin with into which a modern client copies arguments of a tool (2026-07-28
/// server/tools, `x-mcp-header`).
const ARGUMENT: &str = "mcp-param-";

/// The answer to a preflight of an allowed page, which wants to send the headers that `asked` has.
pub(super) fn preflight(origin: &HeaderValue, asked: &HeaderMap) -> Response {
    let mut response = allow(reply::empty(StatusCode::NO_CONTENT), origin);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    for name in arguments(asked) {
        headers.append(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from(name));
    }
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
    response
}

/// The headers for arguments that a page wants to send: only the tool knows their names.
fn arguments(asked: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    let wanted = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = wanted.flat_map(|names| names.as_bytes().split(|byte| *byte == b','));
    let names = names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    names.filter(|name| name.as_str().starts_with(ARGUMENT))
}

/// Lets an allowed page read the answer, errors and the headers that it must know included.
pub(super) fn allow(mut response: Response, origin: &HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.insert(VARY, HeaderValue::from_static("origin"));
    response
}

/// Lets every page read a public document.
pub(super) fn anybody(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, OPTIONS"),
    );
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    response
}
