//! How the scripted server behaves when it speaks 2026-07-28: no sessions, everything in the request.
//!
//! # Invariants
//! - A request whose headers don't repeat its body, or which does not say all about itself, is
//!   refused: so every test of this server is one of the requests too.

use axum::http::Method;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::habits::{Habits, Shared, answer};
use super::json;
use super::script::{Seen, Stream, response, streaming};

const META: &str = "io.modelcontextprotocol";

impl Shared {
    pub(super) async fn modern(&self, seen: Seen, habits: &Habits) -> Response {
        if seen.http != Method::POST {
            return response(405, "", String::new());
        }
        let method = seen.method().unwrap_or_default();
        if method == "initialize" {
            let id = json::id(seen.text());
            let error = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"unsupported","data":{{"supported":["2026-07-28"],"requested":"old"}}}}}}"#
            );
            return response(400, "application/json", error);
        }
        if let Some(why) = fault(&seen, &method) {
            let error = json::error(&json::id(seen.text()), -32020, &why);
            return response(400, "application/json", error);
        }
        match (method.as_str(), seen.tool().as_deref()) {
            ("server/discover", _) => answer(
                &seen,
                &format!(
                    r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"instructions":"Ask.","ttlMs":0,"cacheScope":"private","_meta":{{"{META}/serverInfo":{{"name":"scripted","version":"2"}}}}}}"#,
                    habits.capabilities
                ),
            ),
            ("tools/list", _) => answer(
                &seen,
                &format!(
                    r#"{{"resultType":"complete","tools":{},"ttlMs":0,"cacheScope":"private"}}"#,
                    habits.tools
                ),
            ),
            ("subscriptions/listen", _) => self.subscription(seen),
            ("tools/call", Some("echo")) => {
                let text = seen.raw(&["params", "arguments", "x"]).unwrap_or_default();
                answer(&seen, &complete(&text))
            }
            _ => self.hold(seen).await,
        }
    }

    /// Agrees to everything but resources that have `declined` in their name.
    fn subscription(&self, seen: Seen) -> Response {
        let (chunks, response) = streaming("text/event-stream");
        let id = json::id(seen.text());
        let filter = seen
            .raw(&["params", "notifications"])
            .unwrap_or_default()
            .replace(r#""shop://declined""#, r#""shop://other""#);
        let params =
            format!(r#"{{"_meta":{{"{META}/subscriptionId":{id}}},"notifications":{filter}}}"#);
        let acknowledged = json::notice("notifications/subscriptions/acknowledged", &params);
        let stream = Stream { id, seen, chunks };
        stream.try_send(&acknowledged).unwrap();
        self.state
            .lock()
            .streams
            .push_back(("subscription".to_owned(), stream));
        self.changed.send_replace(());
        response
    }
}

/// A complete result of a tool with one text.
pub(crate) fn complete(text: &str) -> String {
    let result = json::text_result(text);
    result.replacen('{', r#"{"resultType":"complete","#, 1)
}

/// What is wrong with a request.
fn fault(seen: &Seen, method: &str) -> Option<String> {
    let meta = |name: &str| seen.raw(&["params", "_meta", &format!("{META}/{name}")]);
    if meta("protocolVersion").as_deref() != Some(r#""2026-07-28""#) {
        return Some("no version in _meta".to_owned());
    }
    if meta("clientCapabilities").is_none() {
        return Some("no capabilities in _meta".to_owned());
    }
    let name = match method {
        "tools/call" | "prompts/get" => seen.raw(&["params", "name"]),
        "resources/read" => seen.raw(&["params", "uri"]),
        _ => None,
    };
    let name = name.map(|name| match name.trim_matches('"') {
        plain if plain.is_ascii() => plain.to_owned(),
        other => format!("=?base64?{}?=", BASE64_STANDARD.encode(other)),
    });
    for (header, expected) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
        ("mcp-name", name.as_deref().unwrap_or_default()),
        ("mcp-session-id", ""),
    ] {
        if seen.header(header) != expected {
            return Some(format!("{header} is {:?}", seen.header(header)));
        }
    }
    None
}
