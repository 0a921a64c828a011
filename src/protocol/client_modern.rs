//! The wire of modern clients (Streamable HTTP of 2026-07-28, basic/transports/streamable-http):
//! every request stands alone and carries its version, its capabilities and mirrored headers.
//!
//! # Invariants
//! - What decides is the body; a header only has to agree with it.
//! - Nothing is remembered from one request to the next: capabilities are those of this request.

use std::borrow::Cow;
use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem::Finder;

use super::capability::ClientCapabilities;
use super::message::{Malformed, Message};
use super::mirror::{self, METHOD_HEADER, NAME_HEADER};
use super::modern::{META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL, META_VERSION};
use super::object::{edit, is_object, members, text};
use super::version::{SESSION_HEADER, V2026_07_28, VERSION_HEADER};

/// A valid modern request, and what a gateway looks at in it.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// What the client can be asked in the course of this request.
    pub capabilities: ClientCapabilities,
    /// The client's own description (JSON text). Self-declared: nothing depends on it.
    pub info: Option<&'a str>,
    /// The log level that it wants notifications from.
    pub level: Option<Level>,
    /// The progress token (JSON text).
    pub token: Option<&'a str>,
    /// The name of the tool or prompt, or the URI of the resource.
    pub target: Option<Cow<'a, str>>,
    /// The arguments (JSON text).
    pub arguments: Option<&'a str>,
    /// Answers to the questions of the round before (JSON text).
    pub responses: Option<&'a str>,
    /// What the round before left with the client (JSON text).
    pub state: Option<&'a str>,
}

/// The levels of log notifications, least severe first (RFC 5424).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

/// Why a modern request is refused, with the HTTP status and code that the revision demands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// A header is missing, or differs from the body (400, -32020).
    #[error("{0}")]
    Header(String),
    /// The version is not spoken here (400, -32022).
    #[error("unsupported protocol version")]
    Version(String),
    /// The envelope or the parameters are incomplete (400, -32602).
    #[error("{0}")]
    Params(&'static str),
    /// There is no such method in this revision, or at this server (404, -32601).
    #[error("method not found")]
    Method,
    /// The request needs a capability that the client did not declare (400, -32021). Holds the
    /// capabilities object as JSON text.
    #[error("the request needs a client capability that was not declared")]
    Capability(&'static str),
    /// The retry does not fit what it continues (200, -32602), and why in a word.
    #[error("{1}")]
    State(&'static str, &'static str),
    /// An answer in a retry can't be one (200, -32602).
    #[error("{0}")]
    Answer(String),
}

impl Rejected {
    /// The HTTP status (2026-07-28 transports/streamable-http, "Server Validation").
    pub fn status(&self) -> u16 {
        match self {
            Self::Header(_) | Self::Version(_) | Self::Params(_) | Self::Capability(_) => 400,
            Self::Method => 404,
            Self::State(..) | Self::Answer(_) => 200,
        }
    }

    /// The JSON-RPC code (2026-07-28 basic/index, "Error Codes").
    pub fn code(&self) -> i32 {
        match self {
            Self::Header(_) => -32020,
            Self::Capability(_) => -32021,
            Self::Version(_) => -32022,
            Self::Method => -32601,
            Self::Params(_) | Self::State(..) | Self::Answer(_) => -32602,
        }
    }

    /// A short word for records and `data.reason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Header(_) => "header_mismatch",
            Self::Version(_) => "unsupported_version",
            Self::Params(_) => "invalid_params",
            Self::Method => "method_not_found",
            Self::Capability(_) => "capability_missing",
            Self::State(reason, _) => reason,
            Self::Answer(_) => "invalid_answer",
        }
    }
}

/// Whether a message says of itself that it is modern.
pub fn is_modern(message: &Message) -> bool {
    // Cheap first: nearly every message of a legacy client ends here.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(META_VERSION));
    NAME.find(message.bytes()).is_some()
        && message.param(["_meta"]).is_ok_and(|[meta]| {
            meta.is_some_and(|meta| matches!(members(meta, [META_VERSION]), Ok([Some(_)]) | Err(_)))
        })
}

/// Whether the headers are those of a modern client: a modern revision, and no session, since from
/// 2026-07-28 on there are none.
pub fn names_modern(headers: &HeaderMap) -> bool {
    !headers.contains_key(SESSION_HEADER)
        && headers
            .get(VERSION_HEADER)
            .is_some_and(|value| value.as_bytes() >= V2026_07_28.as_bytes())
}

impl<'a> Request<'a> {
    /// Checks and reads a request. `headers` are those that came with it.
    ///
    /// # Errors
    /// What the client has to be told, in the order in which the revision checks.
    pub fn read(message: &'a Message, headers: &HeaderMap) -> Result<Self, ReadError> {
        let member = mirror::named_by(message.method());
        let names = [
            "_meta",
            member.unwrap_or("name"),
            "arguments",
            "inputResponses",
            "requestState",
        ];
        let [meta, target, arguments, responses, state] = message.param(names)?;
        let meta = meta.filter(|meta| is_object(meta));
        let Some(meta) = meta else {
            return Err(Rejected::Params("`params._meta` is missing").into());
        };
        let [version, capabilities, info, level, token] = members(
            meta,
            [
                META_VERSION,
                META_CAPABILITIES,
                META_CLIENT,
                META_LOG_LEVEL,
                "progressToken",
            ],
        )
        .map_err(|error| Malformed::NotAMessage(format!("in `_meta`: {error}")))?;
        let version = version.and_then(text).ok_or(Rejected::Params(
            "the protocol version in `_meta` is missing",
        ))?;
        check_header(headers, &VERSION_HEADER, &version)?;
        if version != V2026_07_28 {
            return Err(Rejected::Version(version.into_owned()).into());
        }
        check_header(headers, &METHOD_HEADER, message.method())?;
        let target = target.filter(|_| member.is_some()).and_then(text);
        if member.is_some() {
            let target = target
                .as_deref()
                .ok_or(Rejected::Params("the name or uri is missing"))?;
            check_header(headers, &NAME_HEADER, target)?;
        }
        let capabilities = capabilities
            .filter(|it| is_object(it))
            .ok_or(Rejected::Params(
                "the client capabilities in `_meta` are missing",
            ))?;
        let level = match level {
            None => None,
            Some(level) => Some(
                text(level)
                    .and_then(|level| Level::parse(&level))
                    .ok_or(Rejected::Params("no such log level"))?,
            ),
        };
        Ok(Self {
            capabilities: ClientCapabilities::read(Some(capabilities)),
            info,
            level,
            token: token.filter(|token| *token != "null"),
            target,
            arguments,
            responses: responses.filter(|it| *it != "null"),
            state: state.filter(|it| *it != "null"),
        })
    }
}

/// Why a request can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The revision's own refusals.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// It could be read in two ways.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Level {
    const NAMES: [&'static str; 8] = [
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
    ];

    /// The level with this name.
    pub fn parse(name: &str) -> Option<Self> {
        let at = Self::NAMES.iter().position(|it| *it == name)?;
        u8::try_from(at).ok().map(Self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .get(usize::from(self.0))
            .copied()
            .unwrap_or_default()
    }

    /// The level of a log notification.
    pub fn of(notice: &Message) -> Option<Self> {
        let [level] = notice.param(["level"]).ok()?;
        Self::parse(&text(level?)?)
    }
}

/// The methods of the legacy revisions that the modern one does not have.
pub fn is_gone(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe"
    )
}

/// The methods whose result says how long it may be kept (2026-07-28 server/utilities/caching).
pub fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}

/// The parameters as a legacy server takes them: without what only modern servers read. `token` takes
/// the place of the client's progress token, so that two clients can use the same one.
pub fn to_legacy(params: &str, token: Option<&str>) -> Option<String> {
    let [meta] = members(params, ["_meta"]).ok()?;
    let meta = edit(
        meta.unwrap_or("{}"),
        &[
            (META_VERSION, None),
            (META_CAPABILITIES, None),
            (META_CLIENT, None),
            (META_LOG_LEVEL, None),
            ("progressToken", token),
        ],
    )
    .ok()?;
    let meta = Some(&*meta).filter(|meta| meta.trim() != "{}");
    let changes = [
        ("_meta", meta),
        ("inputResponses", None),
        ("requestState", None),
    ];
    Some(edit(params, &changes).ok()?.into_owned())
}

fn check_header(headers: &HeaderMap, name: &HeaderName, body: &str) -> Result<(), Rejected> {
    let mismatch = |what: &str| Err(Rejected::Header(format!("the {name} header {what}")));
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => mismatch("is missing"),
        (Some(_), Some(_)) => mismatch("is there twice"),
        (Some(value), None) => match text_of(value) {
            None => mismatch("is malformed"),
            Some(value) if value == body => Ok(()),
            Some(_) => mismatch("does not match the body"),
        },
    }
}

fn text_of(value: &HeaderValue) -> Option<Cow<'_, str>> {
    let value = std::str::from_utf8(value.as_bytes().trim_ascii()).ok()?;
    mirror::decode(value).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":"p","trace":1.0}"#;

    fn message(method: &str, params: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{params}}}"#);
        Message::parse(&text.into_bytes().into()).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn a_request_is_checked_against_its_headers() {
        let call = message("tools/call", &format!(r#"{{"name":"bestätigen",{META}}}"#));
        let good = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?YmVzdMOkdGlnZW4=?="),
        ];
        let request = Request::read(&call, &headers(&good)).unwrap();
        assert!(request.capabilities.form && !request.capabilities.url);
        assert_eq!(request.target.as_deref(), Some("bestätigen"));
        for broken in [
            &good[1..],
            &good[..2],
            &[good[0], good[2]],
            &[good[0], ("mcp-method", "tools/list"), good[2]],
            &[good[0], good[1], ("mcp-name", "other")],
            &[good[0], good[1], ("mcp-name", "=?base64?%%%?=")],
            &[good[0], good[1], good[2], ("mcp-name", "x")],
        ] {
            let refused = Request::read(&call, &headers(broken)).unwrap_err();
            assert!(
                matches!(refused, ReadError::Rejected(Rejected::Header(_))),
                "{broken:?} {refused:?}"
            );
        }
    }

    #[test]
    fn an_envelope_must_be_complete_and_of_this_revision() {
        let headers = headers(&[
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
        ]);
        let table = [
            ("{}", Rejected::Params("`params._meta` is missing")),
            (
                r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
                Rejected::Params("the client capabilities in `_meta` are missing"),
            ),
        ];
        for (params, expected) in table {
            assert_eq!(
                Request::read(&message("tools/list", params), &headers).unwrap_err(),
                ReadError::Rejected(expected)
            );
        }
        let future = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}"#;
        let headers =
            HeaderMap::from_iter([(VERSION_HEADER, HeaderValue::from_static("2099-01-01"))]);
        assert_eq!(
            Request::read(&message("tools/list", future), &headers).unwrap_err(),
            ReadError::Rejected(Rejected::Version("2099-01-01".into())),
        );
    }

    #[test]
    fn a_message_tells_its_era() {
        assert!(is_modern(&message("tools/list", &format!("{{{META}}}"))));
        assert!(!is_modern(&message("tools/list", "{}")));
        assert!(!is_modern(&message(
            "tools/call",
            r#"{"name":"io.modelcontextprotocol/protocolVersion"}"#
        )));
        assert!(names_modern(&headers(&[(
            "mcp-protocol-version",
            "2026-07-28"
        )])));
        assert!(!names_modern(&headers(&[(
            "mcp-protocol-version",
            "2025-11-25"
        )])));
    }

    #[test]
    fn what_only_modern_servers_read_stays_here() {
        let params = format!(
            r#"{{"name":"x","arguments":{{"n":1.10}},{META},"inputResponses":{{}},"requestState":"s"}}"#
        );
        assert_eq!(
            to_legacy(&params, Some("\"t1\"")).unwrap(),
            r#"{"name":"x","arguments":{"n":1.10},"_meta":{"progressToken":"t1","trace":1.0}}"#
        );
        let only = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"x","progressToken":1},"cursor":""}"#;
        assert_eq!(to_legacy(only, None).unwrap(), r#"{"cursor":""}"#);
    }
}
