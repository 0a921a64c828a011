//! Why a caller was refused, and what that looks like on the wire.
//!
//! Two audiences, two texts: the log gets a token that names the very check, the caller learns
//! which kind of mistake it was and no more.
//!
//! # Invariants
//! A refusal never carries a part of the credential. Every 401 has a challenge, no 403 and no 503
//! has one: a login would not help there, and clients drop their tokens on a 401.

use std::fmt;
use std::time::Duration;

use http::{HeaderValue, StatusCode};

/// A refused request: what the log says, and the HTTP answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Denied {
    refusal: Refusal,
    challenge: Option<HeaderValue>,
}

impl Denied {
    pub(super) fn new(refusal: Refusal, challenge: Option<HeaderValue>) -> Self {
        Self { refusal, challenge }
    }

    /// Which check refused, for the audit log and the log; never for the caller.
    pub fn reason(&self) -> &'static str {
        self.refusal.reason()
    }

    /// The HTTP status: 400, 401, 403 or 503.
    pub fn status(&self) -> StatusCode {
        self.refusal.kind().status()
    }

    /// The `WWW-Authenticate` header, on 400 and 401 (RFC 6750, section 3).
    pub fn www_authenticate(&self) -> Option<&HeaderValue> {
        self.challenge.as_ref()
    }

    /// The `Retry-After` header, on 503.
    pub fn retry_after(&self) -> Option<Duration> {
        (self.refusal.kind() == Kind::Unavailable).then_some(RETRY_AFTER)
    }

    /// The body, `application/json`: a JSON-RPC error without an id, for nothing of the request was
    /// read yet. The codes are outside the range that JSON-RPC and MCP reserve.
    pub fn body(&self) -> String {
        let kind = self.refusal.kind();
        let code = if kind == Kind::Forbidden {
            FORBIDDEN
        } else {
            UNAUTHENTICATED
        };
        let message = match kind {
            Kind::Missing => {
                "authentication is required: send Authorization: Bearer <token or key>"
            }
            Kind::Forbidden => "this credential does not open this server",
            Kind::Unavailable => "tokens cannot be checked at the moment, try again",
            Kind::Ambiguous | Kind::Invalid => self.refusal.description(),
        };
        let reason = self.refusal.told();
        let data = format!(r#"{{"source":"gateway","reason":"{reason}"}}"#);
        format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"{message}","data":{data}}}}}"#
        )
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl fmt::Debug for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Denied({})", self.reason())
    }
}

impl std::error::Error for Denied {}

/// The check that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NoCredentials,
    UnsupportedScheme,
    SeveralCredentials,
    MalformedCredentials,
    UnknownApiKey,
    ApiKeyNotForServer,
    TokenTooLarge,
    MalformedToken,
    AlgorithmNotAllowed,
    CriticalHeader,
    WrongTokenType,
    UnknownIssuer,
    UnknownSigningKey,
    BadSignature,
    MissingClaim,
    MalformedClaim,
    TokenExpired,
    TokenNotYetValid,
    TokenIssuedInFuture,
    WrongAudience,
    KeysUnavailable,
}

/// What a caller may know about a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing to check was sent.
    Missing,
    /// More than one credential was sent, and none is preferred.
    Ambiguous,
    /// The credential counts for nothing here.
    Invalid,
    /// The credential is good, but not for this server.
    Forbidden,
    /// Nobody can tell at the moment.
    Unavailable,
}

impl Kind {
    fn status(self) -> StatusCode {
        match self {
            Self::Ambiguous => StatusCode::BAD_REQUEST,
            Self::Missing | Self::Invalid => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl Refusal {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::NoCredentials | Self::UnsupportedScheme => Kind::Missing,
            Self::SeveralCredentials => Kind::Ambiguous,
            Self::ApiKeyNotForServer => Kind::Forbidden,
            Self::KeysUnavailable => Kind::Unavailable,
            _ => Kind::Invalid,
        }
    }

    /// The `error_description` of the challenge. It names what a client can act on and nothing
    /// else; characters are those that RFC 6750, section 3 allows there.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::SeveralCredentials => "more than one credential was sent",
            Self::TokenExpired => "the token has expired",
            Self::WrongAudience => "the token was not issued for this server",
            _ => "the credential is not valid",
        }
    }

    /// The word for the caller, `data.reason`: as much as the description tells, and no more.
    fn told(self) -> &'static str {
        match (self, self.kind()) {
            (Self::TokenExpired | Self::WrongAudience, _)
            | (_, Kind::Ambiguous | Kind::Unavailable) => self.reason(),
            (_, Kind::Missing) => "no_credentials",
            (_, Kind::Forbidden) => "forbidden",
            (_, Kind::Invalid) => "invalid_credentials",
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::NoCredentials => "no_credentials",
            Self::UnsupportedScheme => "unsupported_scheme",
            Self::SeveralCredentials => "several_credentials",
            Self::MalformedCredentials => "malformed_credentials",
            Self::UnknownApiKey => "unknown_api_key",
            Self::ApiKeyNotForServer => "api_key_not_for_server",
            Self::TokenTooLarge => "token_too_large",
            Self::MalformedToken => "malformed_token",
            Self::AlgorithmNotAllowed => "algorithm_not_allowed",
            Self::CriticalHeader => "critical_header",
            Self::WrongTokenType => "wrong_token_type",
            Self::UnknownIssuer => "unknown_issuer",
            Self::UnknownSigningKey => "unknown_signing_key",
            Self::BadSignature => "bad_signature",
            Self::MissingClaim => "missing_claim",
            Self::MalformedClaim => "malformed_claim",
            Self::TokenExpired => "token_expired",
            Self::TokenNotYetValid => "token_not_yet_valid",
            Self::TokenIssuedInFuture => "token_issued_in_future",
            Self::WrongAudience => "wrong_audience",
            Self::KeysUnavailable => "issuer_keys_unavailable",
        }
    }
}

/// JSON-RPC code of 400, 401 and 503.
const UNAUTHENTICATED: i32 = -31008;
/// JSON-RPC code of 403: the same as for any other refusal by policy.
const FORBIDDEN: i32 = -31005;
/// A failed fetch of keys is repeated within this time.
const RETRY_AFTER: Duration = Duration::from_secs(30);
