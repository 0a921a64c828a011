//! The wire of legacy clients (Streamable HTTP of 2025-03-26 … 2025-11-25, basic/transports): what
//! a client may send, read liberally, and what each message is.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use super::media;
use super::message::{Kind, Malformed, Message};
use super::object::is_object;
use super::version::{VERSION_HEADER, Version};

/// The forms of answer that a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// `application/json`.
    pub json: bool,
    /// `text/event-stream`.
    pub events: bool,
}

impl Accept {
    /// Reads the `Accept` headers. Clients must list both types; wildcards and no header at all
    /// count as both, since many send them.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut accept = Self {
            json: false,
            events: false,
        };
        let mut any = false;
        for value in headers.get_all(ACCEPT) {
            for range in value.as_bytes().split(|byte| *byte == b',') {
                any = true;
                let is = |names: [&str; 3]| names.iter().any(|name| media::is(range, name));
                accept.json |= is(["application/json", "application/*", "*/*"]);
                accept.events |= is(["text/event-stream", "text/*", "*/*"]);
            }
        }
        if any {
            accept
        } else {
            Self {
                json: true,
                events: true,
            }
        }
    }
}

/// Whether the body is said to be JSON. Parameters and case don't matter; saying nothing is no JSON,
/// so that a web page's form can't be a message.
pub fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let only = types.next().filter(|_| types.next().is_none());
    only.is_some_and(|it| media::is(it.as_bytes(), "application/json"))
}

/// Whether the version header fits the session. Absent fits always: the session knows.
pub fn version_fits(headers: &HeaderMap, version: &Version) -> bool {
    headers
        .get_all(VERSION_HEADER)
        .iter()
        .all(|it| it.as_bytes() == version.as_str().as_bytes())
}

/// What a client posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted<'a> {
    /// It wants a session.
    Initialize,
    /// It has read the answer to `initialize`.
    Initialized,
    /// Any other request.
    Request,
    /// A request that only servers may send: a question put the wrong way round.
    Question,
    /// It gives up the request with this id (JSON text).
    Cancelled(&'a str),
    /// Any other notification.
    Notification,
    /// The answer to a question.
    Answer,
}

impl<'a> Posted<'a> {
    /// Tells what a message is.
    ///
    /// # Errors
    /// When a notification of cancelling is ambiguous.
    pub fn read(message: &'a Message) -> Result<Self, Malformed> {
        Ok(match (message.kind(), message.method()) {
            (Kind::Request, "initialize") => Self::Initialize,
            (Kind::Request, "elicitation/create" | "sampling/createMessage" | "roots/list") => {
                Self::Question
            }
            (Kind::Request, _) => Self::Request,
            (Kind::Notification, "notifications/initialized") => Self::Initialized,
            (Kind::Notification, "notifications/cancelled") => {
                match message.param(["requestId"])? {
                    [Some(id)] => Self::Cancelled(id),
                    [None] => Self::Notification,
                }
            }
            (Kind::Notification, _) => Self::Notification,
            (Kind::Result | Kind::Error, _) => Self::Answer,
        })
    }
}

/// What a gateway looks at in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// What it is about: the name of the tool or prompt, or the URI of the resource (JSON text).
    pub target: Option<&'a str>,
    /// The progress token (JSON text).
    pub token: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// When what decides could be read in two ways.
    pub fn read(request: &'a Message) -> Result<Self, Malformed> {
        let (target, meta) = match request.method() {
            "tools/call" | "prompts/get" => {
                let [name, meta] = request.param(["name", "_meta"])?;
                (name, meta)
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                let [uri, meta] = request.param(["uri", "_meta"])?;
                (uri, meta)
            }
            _ => {
                let [meta] = request.param(["_meta"])?;
                (None, meta)
            }
        };
        let token = match meta.filter(|meta| is_object(meta)) {
            None => None,
            Some(meta) => {
                let [token] = super::object::members(meta, ["progressToken"])
                    .map_err(|error| Malformed::NotAMessage(format!("in `_meta`: {error}")))?;
                token
            }
        };
        Ok(Self { target, token })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: &http::HeaderName, values: &[&'static str]) -> HeaderMap {
        values
            .iter()
            .map(|value| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn accept_is_read_liberally() {
        let table: [(&[&str], bool, bool); 8] = [
            (&[], true, true),
            (&["*/*"], true, true),
            (&["application/json, text/event-stream"], true, true),
            (&["text/event-stream", "application/json"], true, true),
            (&["application/*, TEXT/event-stream;q=0.5"], true, true),
            (&["application/json;q=0.9"], true, false),
            (&["text/event-stream"], false, true),
            (&["text/html"], false, false),
        ];
        for (values, json, events) in table {
            assert_eq!(
                Accept::read(&headers(&ACCEPT, values)),
                Accept { json, events },
                "{values:?}"
            );
        }
    }

    #[test]
    fn content_type_is_read_liberally_but_must_be_json() {
        for value in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
        ] {
            assert!(is_json(&headers(&CONTENT_TYPE, &[value])), "{value}");
        }
        for value in [
            "text/plain",
            "application/jsonp",
            "application/x-www-form-urlencoded",
            "",
        ] {
            assert!(!is_json(&headers(&CONTENT_TYPE, &[value])), "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn a_version_header_must_be_the_sessions() {
        let version = Version::new("2025-06-18");
        assert!(version_fits(&HeaderMap::new(), &version));
        assert!(version_fits(
            &headers(&VERSION_HEADER, &["2025-06-18"]),
            &version
        ));
        assert!(!version_fits(
            &headers(&VERSION_HEADER, &["2025-11-25"]),
            &version
        ));
        assert!(!version_fits(
            &headers(&VERSION_HEADER, &["2025-06-18", "x"]),
            &version
        ));
    }

    #[test]
    fn a_request_tells_its_target_and_token() {
        let parse = |text: &str| Message::parse(&text.to_owned().into_bytes().into()).unwrap();
        let message = parse(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"book","arguments":{"name":"x"},"_meta":{"progressToken":0}}}"#,
        );
        let asked = Asked::read(&message).unwrap();
        assert_eq!((asked.target, asked.token), (Some(r#""book""#), Some("0")));
        for params in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","Name":"b"}"#,
            r#"{"name":"a","_meta":{"progressToken":1,"progressToken":2}}"#,
        ] {
            let message = parse(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#
            ));
            assert!(Asked::read(&message).is_err(), "{params}");
        }
    }
}
