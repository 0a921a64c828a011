//! The checked, ready-to-use configuration that the rest of the crate reads.
//!
//! Two forms exist, as in a parser: `file` reads the YAML as people write it, this page is what it
//! means. Only [`Config::load`] and [`Config::parse`] turn one into the other, and they report
//! every problem at once. Nothing here is half valid: a `Config` can be served as it is.
//!
//! # Invariants
//! - What came from the environment appears in no `Debug` output and in no problem.
//! - The defaults that the documentation of the fields gives are those of the `Default` impls here,
//!   and those that `config/gateway.yaml` shows.

mod access;
mod address;
mod bounds;
pub mod condition;
mod doubt;
mod file;
mod interpolate;
mod named;
mod place;
mod problem;
mod program;
mod quantity;
pub mod questions;
mod read;
mod server;
mod spelling;
mod yaml;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderMap;
use url::Url;

pub use self::bounds::{
    LimitAnswer, Limits, PrincipalLimits, Rate, RateLimits, ServerTimeouts, Sessions, Timeouts,
};
pub use self::named::KeySetTest;
pub use self::place::{At, Stdio};
pub use self::problem::{Position, Problem, Problems};
pub use self::program::Program;
pub use self::questions::Questions;

/// Looks up a variable of the environment: what a `${NAME}` in the file stands for.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything that one gateway process is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the gateway listens.
    pub listen: SocketAddr,
    /// What clients see, without a trailing slash. Every absolute URL that the gateway writes
    /// starts with it, whatever `Host` a client sends.
    pub public_url: PublicUrl,
    /// The servers behind the gateway, by the name in their path `/mcp/{server}`.
    pub servers: BTreeMap<ServerName, Arc<Server>>,
    /// Who gets in.
    pub access: Access,
    /// What one may ask of the gateway, and what it keeps for them.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How long and how many legacy sessions live.
    pub sessions: Sessions,
    /// Names that a `Host` header may carry (lower case, without port), beside those that the
    /// bind address and `public_url` give.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call the gateway, exactly as browsers send them.
    pub allowed_origins: Vec<String>,
    /// Whether clients may use HTTP+SSE, the transport of 2024-11-05, at `/mcp/{server}/sse` (default no).
    pub legacy_sse: bool,
    /// Where decisions are recorded; `None` switches the audit log off.
    pub audit: Option<AuditLog>,
}

/// The public base URL in its canonical form: scheme and host lower case, no trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(pub(crate) String);

/// A server's name: 1 to 64 of `a-z A-Z 0-9 - _ .`, starting with a letter or digit, as in `/mcp/{server}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(pub(crate) Arc<str>);

/// One MCP server behind the gateway.
#[derive(Clone)]
pub struct Server {
    /// Its name in the path and in the audit log.
    pub name: ServerName,
    /// How it is reached.
    pub at: At,
    /// Headers sent to it with every request; values are marked sensitive and never shown.
    pub headers: HeaderMap,
    /// What all callers together may ask of it.
    pub limits: RateLimits,
    /// Which protocol era it speaks.
    pub era: ServerEra,
    /// Who shares a session at a legacy server; `None`: what [`Config::session_scope`] says.
    pub session_scope: Option<SessionScope>,
    /// What such a session is opened with.
    pub profile: Profile,
    /// What becomes of a session that it no longer knows.
    pub on_session_lost: OnSessionLost,
    /// How long it may take.
    pub timeouts: ServerTimeouts,
    /// What it may ask of people.
    pub questions: Questions,
    /// Its tools that the gateway asks about before they run: names, `*` for any text.
    pub approve: Vec<String>,
}

impl Server {
    /// A server over Streamable HTTP, of which nothing is said but where it is.
    pub fn at(name: ServerName, url: Url) -> Self {
        Self {
            name,
            at: At::Http(vec![url]),
            headers: HeaderMap::new(),
            limits: RateLimits::default(),
            era: ServerEra::default(),
            session_scope: None,
            profile: Profile::default(),
            on_session_lost: OnSessionLost::default(),
            timeouts: ServerTimeouts::default(),
            questions: Questions::default(),
            approve: Vec::new(),
        }
    }
}

/// Which protocol era a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerEra {
    /// It is found out, and found out again now and then.
    #[default]
    Auto,
    /// Sessions, until 2025-11-25.
    Legacy,
    /// No sessions, from 2026-07-28 on.
    Modern,
}

/// Which requests of clients without sessions share one at a legacy server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionScope {
    /// All of one principal.
    Principal,
    /// None: each call has its own.
    Call,
    /// Those of one principal that name the same lane.
    Lane,
}

/// Which capabilities a shared session at a legacy server is opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Exactly those of the request; requests with others get another session.
    #[default]
    Exact,
    /// Those of the first request; requests with others use it too.
    Pinned,
}

/// What becomes of a session that its legacy server no longer knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnSessionLost {
    /// The gateway opens another one at the server, and goes on.
    #[default]
    Renew,
    /// It ends, and its client is told to begin anew: what it had at the server is lost.
    Tell,
}

/// Who gets in.
#[derive(Clone, Debug)]
pub enum Access {
    /// No `auth` in the file: loopback only, everybody is the principal `local`.
    Local,
    /// `auth: open`: anybody; each session is its own anonymous principal.
    Open,
    /// Tokens of the listed issuers, and the listed API keys.
    Required(Auth),
}

/// The credentials that give access.
#[derive(Clone, Debug, Default)]
pub struct Auth {
    /// OAuth authorization servers whose access tokens are accepted.
    pub issuers: Vec<Issuer>,
    /// Keys for programs that can't log in.
    pub api_keys: Vec<ApiKey>,
}

/// An OAuth authorization server.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The exact `iss` of its tokens.
    pub issuer: String,
    /// Where its signing keys are found.
    pub keys: KeySource,
    /// Token audiences accepted from it; empty: each server's own, `public_url` + `/mcp/{name}`.
    /// One that is the endpoint of a server opens that server alone, any other opens all.
    pub audiences: Vec<String>,
}

/// Where an issuer's JWKS is found.
#[derive(Clone)]
pub enum KeySource {
    /// Through the issuer's metadata (RFC 8414, then `OpenID` Connect Discovery).
    Discovery,
    /// At this URL.
    Url(Url),
    /// In this file, read at start.
    File(PathBuf),
}

/// An API key: a name and the SHA-256 of the key; the key itself is never stored.
#[derive(Clone)]
pub struct ApiKey {
    /// Its name in the audit log; the principal is `key:<name>`.
    pub name: String,
    /// SHA-256 of the key's bytes.
    pub sha256: [u8; 32],
    /// The servers it opens; `None`: every one.
    pub servers: Option<BTreeSet<ServerName>>,
    /// Whether nobody sits there who could be asked something.
    pub headless: bool,
}

/// Where decisions are recorded.
#[derive(Clone, Debug)]
pub struct AuditLog {
    /// The file, JSON Lines, appended to.
    pub file: PathBuf,
    /// What happens when records come faster than the disk takes them, or it takes none.
    pub when_full: WhenFull,
}

/// What happens when the audit log takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Requests wait.
    #[default]
    Block,
    /// Requests are refused with an error.
    Refuse,
    /// Records are dropped and counted; the count becomes a record when there is room again.
    Drop,
}

impl Config {
    /// Reads and checks a configuration file, and the files that it names.
    ///
    /// # Errors
    /// Everything that is wrong with them, or that the file can't be read.
    pub fn load(
        path: &Path,
        environment: Environment<'_>,
        is_key_set: KeySetTest<'_>,
    ) -> Result<Self, Problems> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => file::load(&name, &text, environment, is_key_set),
            Err(error) => Err(file::unreadable(&name, &error)),
        }
    }

    /// Checks the text of a configuration file, and no other file. `name` is what problems call the file.
    ///
    /// # Errors
    /// Everything that is wrong with the text.
    ///
    /// ```
    /// use contraflow::config::Config;
    ///
    /// let text = "servers: { booking: { url: 'http://${BOOKING}/mcp' } }";
    /// let environment = |name: &str| (name == "BOOKING").then(|| "127.0.0.1:3001".to_owned());
    /// let config = Config::parse("gateway.yaml", text, &environment).unwrap();
    /// assert_eq!(config.servers["booking"].at.shown(), "http://127.0.0.1:3001");
    ///
    /// let problems = Config::parse("gateway.yaml", text, &|_| None).unwrap_err();
    /// assert!(problems.to_string().starts_with("gateway.yaml:1:36: `${BOOKING}`"));
    /// ```
    pub fn parse(name: &str, text: &str, environment: Environment<'_>) -> Result<Self, Problems> {
        file::parse(name, text, environment)
    }

    /// Who shares a session at a legacy server. Without authentication nobody can be told apart, so
    /// nothing is shared.
    pub fn session_scope(&self, server: &Server) -> SessionScope {
        server.session_scope.unwrap_or(match self.access {
            Access::Open => SessionScope::Call,
            Access::Local | Access::Required(_) => SessionScope::Principal,
        })
    }

    /// The server whose name is nearest to one that no server has.
    pub fn nearest_server(&self, name: &str) -> Option<&ServerName> {
        let names: Vec<_> = self.servers.keys().map(ServerName::as_str).collect();
        let nearest = spelling::nearest(name, &names)?;
        self.servers.keys().find(|name| name.as_str() == nearest)
    }

    /// The same configuration once the listener is bound to `address`: with port 0 in the file
    /// only the system knows the port, which the default `public_url` needs.
    #[must_use]
    pub fn bound_to(mut self, address: SocketAddr) -> Self {
        if self.public_url == PublicUrl::of(self.listen) {
            self.public_url = PublicUrl::of(address);
        }
        self.listen = address;
        self
    }
}

impl ServerName {
    /// The name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PublicUrl {
    /// The default: the address on which the gateway listens.
    fn of(address: SocketAddr) -> Self {
        let port = if address.port() == 80 {
            String::new()
        } else {
            format!(":{}", address.port())
        };
        Self(match address.ip() {
            std::net::IpAddr::V4(ip) => format!("http://{ip}{port}"),
            std::net::IpAddr::V6(ip) => format!("http://[{ip}]{port}"),
        })
    }

    /// Its path, which is empty or starts with a slash.
    pub fn path(&self) -> &str {
        self.split().1
    }

    /// Its origin and its path.
    pub(crate) fn split(&self) -> (&str, &str) {
        let authority = self.0.find("://").map_or(0, |colon| colon + "://".len());
        let path = self.0.bytes().skip(authority).position(|byte| byte == b'/');
        self.0
            .split_at(path.map_or(self.0.len(), |path| authority + path))
    }

    /// The URL without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The endpoint of a server, which is also its resource identifier (RFC 9728) and its default
    /// token audience: `<public_url>/mcp/<name>`.
    pub fn endpoint(&self, server: &ServerName) -> String {
        format!("{}/mcp/{server}", self.0)
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("at", &self.at.shown())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("era", &self.era)
            .field("session_scope", &self.session_scope)
            .field("profile", &self.profile)
            .field("on_session_lost", &self.on_session_lost)
            .field("timeouts", &self.timeouts)
            .field("questions", &self.questions)
            .field("approve", &self.approve)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovery => f.write_str("Discovery"),
            Self::Url(url) => f
                .debug_tuple("Url")
                .field(&url.origin().ascii_serialization())
                .finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
