//! Who is asking: the identity that sessions, questions, limits and the audit log are bound to.

use std::fmt;
use std::sync::Arc;

/// An authenticated caller. Two are equal when issuer and subject are: a refreshed token, or one
/// got through another client application, is the same person.
#[derive(Clone)]
pub struct Principal(Arc<Inner>);

struct Inner {
    issuer: String,
    subject: String,
    client: Option<String>,
}

impl Principal {
    /// The holder of a token: its `iss`, `sub` and, where it has one, `client_id` or `azp`.
    pub fn token(issuer: &str, subject: &str, client: Option<&str>) -> Self {
        Self::new(issuer, subject, client)
    }

    /// The holder of the API key with this name.
    pub fn api_key(name: &str) -> Self {
        Self::new("key", name, None)
    }

    /// Everybody, on a gateway without `auth`.
    pub fn local() -> Self {
        Self::new("", "local", None)
    }

    /// Nobody in particular (`auth: open`), before a session gives them a name.
    pub fn anonymous() -> Self {
        Self::new("anonymous", "", None)
    }

    /// The unknown holder of one session (`auth: open`). `tag` tells it from others and is not a secret.
    pub fn anonymous_session(tag: &str) -> Self {
        Self::new("anonymous", tag, None)
    }

    /// Who this is in a session that `tag` tells from others: the unknown holder of it, or who they are
    /// anyway.
    #[must_use]
    pub fn in_session(&self, tag: &str) -> Self {
        if self.is_anonymous() {
            Self::anonymous_session(tag)
        } else {
            self.clone()
        }
    }

    /// Whether what `owner` opened is this caller's. Without authentication the id itself is all there is
    /// to show.
    pub fn holds_of(&self, owner: &Self) -> bool {
        self == owner || (self.is_anonymous() && self.issuer() == owner.issuer())
    }

    fn new(issuer: &str, subject: &str, client: Option<&str>) -> Self {
        Self(Arc::new(Inner {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            client: client.map(str::to_owned),
        }))
    }

    /// Whether this is the caller of `auth: open` who has no session yet.
    pub fn is_anonymous(&self) -> bool {
        self.0.issuer == "anonymous" && self.0.subject.is_empty()
    }

    /// The issuer; `key` for API keys, empty for `local`.
    pub fn issuer(&self) -> &str {
        &self.0.issuer
    }

    /// The subject: `sub` of the token, the name of the key, or `local`.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The OAuth client that the token was issued to.
    pub fn client(&self) -> Option<&str> {
        self.0.client.as_deref()
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.issuer == other.0.issuer && self.0.subject == other.0.subject)
    }
}

impl Eq for Principal {}

impl std::hash::Hash for Principal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.issuer.hash(state);
        self.0.subject.hash(state);
    }
}

/// As logs name it: `local`, `key:ci`, `alice@https://login.example.com`.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.issuer.as_str(), self.0.subject.as_str()) {
            ("", subject) => f.write_str(subject),
            ("key", name) => write!(f, "key:{name}"),
            ("anonymous", "") => f.write_str("anonymous"),
            ("anonymous", tag) => write!(f, "anonymous:{tag}"),
            (issuer, subject) => write!(f, "{subject}@{issuer}"),
        }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({self})")
    }
}
