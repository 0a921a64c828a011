//! Whom the questions of a session or a request are for, as far as that says.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::auth::Principal;
use crate::config::{Access, Config};
use crate::policy::{Kind, Person, Policy};
use crate::protocol::capability::{ClientCapabilities, Need, Undeclared};
use crate::protocol::message::Message;
use crate::protocol::object::{members, text};

/// Bytes of a client's name or version that are looked at.
const LONGEST: usize = 128;

/// A client, and whether somebody sits behind it.
#[derive(Debug)]
pub(super) struct Caller {
    can: ClientCapabilities,
    headless: bool,
    name: String,
    version: String,
}

impl Caller {
    /// A client that can be asked this, and describes itself so (JSON text).
    pub(super) fn new(can: ClientCapabilities, info: Option<&str>, headless: bool) -> Self {
        let [name, version] = info
            .and_then(|info| members(info, ["name", "version"]).ok())
            .unwrap_or_default();
        let short = |value: Option<&str>| {
            let value = value.and_then(text).unwrap_or_default();
            let end = value.floor_char_boundary(LONGEST);
            value.get(..end).unwrap_or_default().to_owned()
        };
        Self {
            can,
            headless,
            name: short(name),
            version: short(version),
        }
    }

    /// What it said that it can be asked.
    pub(super) fn can(&self) -> ClientCapabilities {
        self.can
    }

    /// Whether somebody can be asked this.
    ///
    /// # Errors
    /// What the server is told if not.
    pub(super) fn can_be_asked(&self, question: &Message) -> Result<(), Undeclared> {
        self.meets(Need::of(question))
    }

    /// The same, of a question of which it is known what it needs.
    pub(super) fn meets(&self, need: Need) -> Result<(), Undeclared> {
        self.reachable(self.can).meet(need)
    }

    fn reachable(&self, can: ClientCapabilities) -> ClientCapabilities {
        if self.headless {
            ClientCapabilities::default()
        } else {
            can
        }
    }

    /// What a server sees of what a client can be asked, which a policy may add to, and take from.
    pub(super) fn declared(&self, can: ClientCapabilities, policy: &Policy) -> ClientCapabilities {
        let can = self.reachable(can);
        ClientCapabilities {
            form: policy.declares(Kind::Form, can.form),
            url: policy.declares(Kind::Url, can.url),
            sampling: policy.declares(Kind::Sampling, can.sampling),
            roots: policy.declares(Kind::Roots, can.roots),
            ..can
        }
    }

    /// What policy is told of the one who is to answer a question that needs this.
    pub(super) fn person<'p>(
        &'p self,
        need: Need,
        (principal, named): (&'p Principal, &'p str),
        session: &'p str,
    ) -> Person<'p> {
        Person {
            name: named,
            issuer: principal.issuer(),
            subject: principal.subject(),
            oauth_client: principal.client().unwrap_or_default(),
            session,
            client: (&self.name, &self.version),
            headless: self.meets(need).is_err(),
        }
    }
}

/// The header by which a client says that nobody sits there.
const HEADLESS: HeaderName = HeaderName::from_static("x-contraflow-headless");

/// Whether a client says that nobody sits there who could be asked something.
pub fn says_headless(headers: &HeaderMap) -> bool {
    let said = headers.get(HEADLESS).map(HeaderValue::as_bytes);
    said.is_some_and(|said| said == b"1" || said.eq_ignore_ascii_case(b"true"))
}

/// Whether the configuration says that nobody sits behind this principal's programs.
pub(super) fn is_headless(config: &Config, principal: &Principal) -> bool {
    let Access::Required(auth) = &config.access else {
        return false;
    };
    principal.issuer() == "key"
        && auth
            .api_keys
            .iter()
            .any(|key| key.headless && key.name == principal.subject())
}
