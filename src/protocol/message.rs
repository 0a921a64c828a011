//! One JSON-RPC message: the bytes as they came, and where in them the few parts are that a
//! gateway looks at.
//!
//! # Invariants
//! - The bytes are never re-serialised. An edit replaces one named value and copies the rest, so
//!   unknown members, key order and the spelling of numbers survive.
//! - An id is compared and returned as the JSON text it was: `1`, `1.0` and `"1"` differ.
//! - A message whose envelope could be read in two ways is no message ([`object`]).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::object::{self, members};

/// The most messages in a batch.
pub const MAX_BATCH: usize = 100;

/// The longest id that is accepted, in bytes of JSON.
pub const MAX_ID: usize = 512;

/// One message, sharing the buffer it was received in.
#[derive(Clone)]
pub struct Message {
    bytes: Bytes,
    kind: Kind,
    method: Method,
    id: Option<Range<usize>>,
    /// The parameters, the result or the error, as the kind says.
    body: Option<Range<usize>>,
}

/// The name of a method.
#[derive(Clone)]
enum Method {
    /// Spelled as it is, here.
    Plain(Range<usize>),
    /// Spelled with escapes, which nobody does.
    Unescaped(Box<str>),
    /// A response has none.
    None,
}

/// What kind of message it is (JSON-RPC 2.0, §4 and §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A method and an id: to be answered.
    Request,
    /// A method without an id: never answered.
    Notification,
    /// A result.
    Result,
    /// An error; its id may be missing when the request's could not be read.
    Error,
}

/// Why some bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not JSON in UTF-8 (code -32700).
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    /// JSON, but no JSON-RPC message (code -32600).
    #[error("the body is not a JSON-RPC message: {0}")]
    NotAMessage(String),
}

/// What a body holds: one message, or the members of a batch.
#[derive(Debug)]
pub enum Body {
    /// A message alone.
    Single(Message),
    /// An array (allowed at 2025-03-26 only); members are parsed one by one.
    Batch(Vec<Bytes>),
}

/// Whether a body is an array: a batch, which 2025-03-26 alone has.
pub fn is_array(bytes: &Bytes) -> bool {
    bytes.trim_ascii_start().starts_with(b"[")
}

/// The messages of a batch.
///
/// # Errors
/// When it is empty, has more than [`MAX_BATCH`] members, or one of them is no message.
pub fn batch(bytes: &Bytes) -> Result<Vec<Message>, Malformed> {
    let members = members_of(bytes, utf8(bytes)?)?;
    if members.is_empty() {
        return Err(Malformed::NotAMessage(
            "a batch must not be empty".to_owned(),
        ));
    }
    members.iter().map(Message::parse).collect()
}

fn members_of(bytes: &Bytes, text: &str) -> Result<Vec<Bytes>, Malformed> {
    let members = object::elements(text, MAX_BATCH).map_err(|error| malformed(&error))?;
    Ok(members
        .into_iter()
        .map(|raw| bytes.slice_ref(raw.as_bytes()))
        .collect())
}

impl Body {
    /// Reads a body.
    ///
    /// # Errors
    /// When it is neither a message nor an array. The members of an array are not looked at.
    pub fn parse(bytes: &Bytes) -> Result<Self, Malformed> {
        let text = utf8(bytes)?;
        if is_array(bytes) {
            return members_of(bytes, text).map(Self::Batch);
        }
        Message::read(bytes.clone(), text).map(Self::Single)
    }
}

impl Message {
    /// Reads one message.
    ///
    /// # Errors
    /// When the bytes are not JSON, or JSON but no message.
    pub fn parse(bytes: &Bytes) -> Result<Self, Malformed> {
        Self::read(bytes.clone(), utf8(bytes)?)
    }

    fn read(bytes: Bytes, text: &str) -> Result<Self, Malformed> {
        let names = ["jsonrpc", "id", "method", "params", "result", "error"];
        let [version, id, method, params, result, error] =
            members(text, names).map_err(|error| malformed(&error))?;
        let refuse = |why: &str| Err(Malformed::NotAMessage(why.to_owned()));
        if version.and_then(object::text).as_deref() != Some("2.0") {
            return refuse("`jsonrpc` must be \"2.0\"");
        }
        if id.is_some_and(|id| id.len() > MAX_ID) {
            return refuse("`id` is too long");
        }
        let null_id = id == Some("null");
        if id.is_some_and(|id| !null_id && !is_id(id)) {
            return refuse("`id` must be a string or a number");
        }
        let kind = match (method, id, result, error) {
            (Some(_), Some(_), None, None) if null_id => return refuse("`id` must not be null"),
            (Some(_), Some(_), None, None) => Kind::Request,
            (Some(_), None, None, None) => Kind::Notification,
            (None, Some(_), Some(_), None) if !null_id => Kind::Result,
            (None, _, None, Some(_)) => Kind::Error,
            (None, _, Some(_), None) => return refuse("a result needs an `id`"),
            (None, _, None, None) => return refuse("it has no `method`, `result` or `error`"),
            _ => return refuse("it is a request and a response at once"),
        };
        let at = |raw: &str| {
            let start = raw.as_ptr().addr() - text.as_ptr().addr();
            start..start + raw.len()
        };
        let method = match method.map(object::text) {
            Some(Some(Cow::Borrowed(plain))) => Method::Plain(at(plain)),
            Some(Some(Cow::Owned(unescaped))) => Method::Unescaped(unescaped.into()),
            Some(None) => return refuse("`method` must be a string"),
            None => Method::None,
        };
        let body = match kind {
            Kind::Request | Kind::Notification => params,
            Kind::Result => result,
            Kind::Error => error,
        };
        Ok(Self {
            kind,
            method,
            id: id.filter(|_| !null_id).map(at),
            body: body.map(at),
            bytes,
        })
    }

    /// The message as it came.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What kind of message it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it is a result or an error.
    pub fn is_response(&self) -> bool {
        matches!(self.kind, Kind::Result | Kind::Error)
    }

    /// The method; empty for a response.
    pub fn method(&self) -> &str {
        match &self.method {
            Method::Plain(span) => self.part(Some(span)).unwrap_or_default(),
            Method::Unescaped(text) => text,
            Method::None => "",
        }
    }

    /// The id as JSON text, exactly as it was spelled.
    pub fn id(&self) -> Option<&str> {
        self.part(self.id.as_ref())
    }

    /// The parameters of a request or notification as JSON text.
    pub fn params(&self) -> Option<&str> {
        self.body(matches!(self.kind, Kind::Request | Kind::Notification))
    }

    /// The result as JSON text.
    pub fn result(&self) -> Option<&str> {
        self.body(self.kind == Kind::Result)
    }

    /// The error object as JSON text.
    pub fn error(&self) -> Option<&str> {
        self.body(self.kind == Kind::Error)
    }

    fn body(&self, asked: bool) -> Option<&str> {
        self.part(self.body.as_ref().filter(|_| asked))
    }

    /// Named members of `params`; all absent when there are no params or they are no object.
    ///
    /// # Errors
    /// When one of the names occurs twice or in another case.
    pub fn param<'a, const N: usize>(
        &'a self,
        names: [&str; N],
    ) -> Result<[Option<&'a str>; N], Malformed> {
        match self.params().filter(|params| object::is_object(params)) {
            None => Ok([None; N]),
            Some(params) => members(params, names)
                .map_err(|error| Malformed::NotAMessage(format!("in `params`: {error}"))),
        }
    }

    /// The same message under another id.
    pub fn with_id(&self, id: &str) -> Bytes {
        match &self.id {
            Some(span) => self.with(span.clone(), id),
            None => self.bytes.clone(),
        }
    }

    /// The same message under another id, with another body: the parameters of a request or
    /// notification, the result or the error of a response. A request without parameters gets them.
    pub fn with_body(&self, id: &str, body: &str) -> Bytes {
        let place = self.body.clone();
        let last = self.bytes.iter().rposition(|byte| *byte == b'}');
        let (place, body) = match (place, last) {
            (Some(place), _) => (place, Cow::Borrowed(body)),
            (None, Some(end)) => (end..end, Cow::Owned(format!(r#","params":{body}"#))),
            (None, None) => return self.bytes.clone(),
        };
        let mut edits = vec![(place, &*body)];
        edits.extend(self.id.clone().map(|span| (span, id)));
        edits.sort_by_key(|(span, _)| span.start);
        let mut bytes = BytesMut::with_capacity(self.bytes.len() + body.len());
        let mut done = 0;
        for (span, new) in edits {
            bytes.extend_from_slice(self.bytes.get(done..span.start).unwrap_or_default());
            bytes.extend_from_slice(new.as_bytes());
            done = span.end;
        }
        bytes.extend_from_slice(self.bytes.get(done..).unwrap_or_default());
        bytes.freeze()
    }

    /// The same message with `old`, a value inside it that was got from it, replaced.
    pub fn replacing(&self, old: &str, new: &str) -> Bytes {
        let start = old.as_ptr().addr().wrapping_sub(self.bytes.as_ptr().addr());
        self.with(start..start.saturating_add(old.len()), new)
    }

    fn with(&self, span: Range<usize>, new: &str) -> Bytes {
        let (Some(head), Some(tail)) = (self.bytes.get(..span.start), self.bytes.get(span.end..))
        else {
            return self.bytes.clone();
        };
        let mut bytes = BytesMut::with_capacity(head.len() + new.len() + tail.len());
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(new.as_bytes());
        bytes.extend_from_slice(tail);
        bytes.freeze()
    }

    fn part(&self, span: Option<&Range<usize>>) -> Option<&str> {
        // The whole was checked to be UTF-8, and a span is a value cut at JSON's own delimiters.
        std::str::from_utf8(self.bytes.get(span?.clone())?).ok()
    }
}

/// Messages are the same when their bytes are.
impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Message {}

impl fmt::Debug for Message {
    /// Names kind, method and id; never the payload, which may hold what must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("kind", &self.kind)
            .field("method", &self.method())
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

/// An error response: `id` is JSON text, or none when the request's id is unknown.
pub fn error(
    id: Option<&str>,
    code: i32,
    message: &str,
    data: Option<&serde_json::Value>,
) -> Bytes {
    let mut error = serde_json::json!({ "code": code, "message": message });
    if let (Some(data), Some(object)) = (data, error.as_object_mut()) {
        object.insert("data".to_owned(), data.clone());
    }
    let id = id.unwrap_or("null");
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

/// A request of ours; `id` and `params` are JSON text.
pub fn request(id: &str, method: &str, params: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
    ))
}

/// A result of ours; `id` and `result` are JSON text.
pub fn result(id: &str, result: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ))
}

/// A notification of ours; `params` is JSON text.
pub fn notification(method: &str, params: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#
    ))
}

/// The id (JSON text) of something that is nearly a request, but ambiguous or otherwise no message: who
/// sent it may wait for an answer.
pub fn id_of_unreadable(bytes: &Bytes) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    value.get("method")?;
    let id = value
        .get("id")
        .filter(|id| id.is_string() || id.is_number())?
        .to_string();
    (id.len() <= MAX_ID).then_some(id)
}

fn malformed(error: &serde_json::Error) -> Malformed {
    match error.classify() {
        serde_json::error::Category::Data => Malformed::NotAMessage(error.to_string()),
        _ => Malformed::NotJson(error.to_string()),
    }
}

fn utf8(bytes: &Bytes) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|error| Malformed::NotJson(error.to_string()))
}

fn is_id(raw: &str) -> bool {
    raw.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, Malformed> {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn tells_the_four_kinds_apart() {
        let table = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, Kind::Request),
            (
                r#"{"jsonrpc":"2.0","method":"m","params":[]}"#,
                Kind::Notification,
            ),
            (r#"{"jsonrpc":"2.0","id":"a","result":null}"#, Kind::Result),
            (r#"{"jsonrpc":"2.0","id":"a","error":{}}"#, Kind::Error),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, Kind::Error),
            (r#"{"jsonrpc":"2.0","error":{}}"#, Kind::Error),
        ];
        for (text, kind) in table {
            assert_eq!(parse(text).unwrap().kind(), kind, "{text}");
        }
    }

    #[test]
    fn refuses_json_that_is_no_message() {
        for text in [
            "{}",
            "3",
            "null",
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"{"id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            r#"{"jsonrpc":"2.0","result":1}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#,
        ] {
            assert!(
                matches!(parse(text), Err(Malformed::NotAMessage(_))),
                "{text}"
            );
        }
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#,
            "x".repeat(MAX_ID)
        );
        assert!(matches!(parse(&long), Err(Malformed::NotAMessage(_))));
    }

    #[test]
    fn refuses_what_is_not_json() {
        for text in [
            "",
            "{",
            "nope",
            r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#,
            "\u{feff}{}",
        ] {
            assert!(matches!(parse(text), Err(Malformed::NotJson(_))), "{text}");
        }
        assert!(matches!(
            Message::parse(&Bytes::from_static(b"\xff{}")),
            Err(Malformed::NotJson(_))
        ));
    }

    #[test]
    fn an_id_is_the_text_it_was() {
        for id in [
            r#""1""#,
            "1",
            "1.0",
            "1e0",
            "0",
            "-5",
            r#""""#,
            "12345678901234567890",
            r#""\u0041""#,
        ] {
            let message =
                parse(&format!(r#"{{"id" : {id},"jsonrpc":"2.0","method":"m"}}"#)).unwrap();
            assert_eq!(message.id(), Some(id));
        }
    }

    #[test]
    fn a_method_is_what_its_spelling_means() {
        for (spelled, method) in [
            (r#""tools/call""#, "tools/call"),
            (r#""tools\/call""#, "tools/call"),
            (r#""\u0074ools/call""#, "tools/call"),
            (r#""é""#, "é"),
            (r#""""#, ""),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":{spelled},"id":1}}"#);
            let message = parse(&text).unwrap();
            assert_eq!(
                (message.method(), message.clone().method()),
                (method, method)
            );
        }
    }

    #[test]
    fn an_edit_leaves_every_other_byte() {
        let text = r#" {"x": 1.10, "id" :"old" , "params":{"requestId": 7, "z":1,"a":2},"method":"m","jsonrpc":"2.0"} "#;
        let message = parse(text).unwrap();
        assert_eq!(message.with_id("41"), text.replace(r#""old""#, "41"));
        let [id] = message.param(["requestId"]).unwrap();
        assert_eq!(
            message.replacing(id.unwrap(), "99"),
            text.replace('7', "99")
        );
    }

    #[test]
    fn another_body_leaves_the_envelope() {
        let table = [
            (
                r#"{"x":1.0,"params":{"a":1}, "id":7,"method":"m","jsonrpc":"2.0"}"#,
                r#"{"x":1.0,"params":[], "id":"n","method":"m","jsonrpc":"2.0"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"m" } "#,
                r#"{"jsonrpc":"2.0","id":"n","method":"m" ,"params":[]} "#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{},"y":2}"#,
                r#"{"jsonrpc":"2.0","id":"n","result":[],"y":2}"#,
            ),
            (
                r#"{"error":{"code":1},"jsonrpc":"2.0","id":7}"#,
                r#"{"error":[],"jsonrpc":"2.0","id":"n"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"m","params":{}}"#,
                r#"{"jsonrpc":"2.0","method":"m","params":[]}"#,
            ),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).unwrap().with_body("\"n\"", "[]"), expected);
        }
    }

    #[test]
    fn deep_nesting_inside_a_payload_passes() {
        let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
        let message = parse(&format!(
            r#"{{"jsonrpc":"2.0","method":"m","params":{deep}}}"#
        ));
        assert_eq!(message.unwrap().params().map(str::len), Some(deep.len()));
    }

    #[test]
    fn a_batch_is_told_by_its_bracket() {
        let bytes = Bytes::from_static(b" [ {\"a\":1} , 2 ]");
        let Ok(Body::Batch(members)) = Body::parse(&bytes) else {
            panic!("no batch")
        };
        assert_eq!(members, ["{\"a\":1}", "2"]);
    }
}
