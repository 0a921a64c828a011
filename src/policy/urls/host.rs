//! A host that is allowed, as an operator writes it: `login.example.com`, `*.example.com`,
//! `example.com:8443`, `[::1]`.

use url::Host;

/// A host, or all hosts below a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    /// As a browser writes it.
    host: String,
    /// Whether the hosts below it are meant, and not itself.
    below: bool,
    /// The only port, if one is given.
    port: Option<u16>,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a host, such as `login.example.com`, `*.example.com` or `example.com:8443`")]
pub struct NotAPattern;

impl HostPattern {
    /// Reads a pattern. A `*` stands for one or more whole labels at the beginning, and nowhere else.
    ///
    /// # Errors
    /// [`NotAPattern`].
    ///
    /// ```
    /// use contraflow::policy::urls::HostPattern;
    /// assert!(HostPattern::read("*.example.com").is_ok());
    /// assert!(HostPattern::read("https://example.com").is_err());
    /// assert!(HostPattern::read("*").is_err());
    /// ```
    pub fn read(text: &str) -> Result<Self, NotAPattern> {
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (name, port) = match rest.rsplit_once(':') {
            // The colons of an IPv6 address are inside its brackets.
            Some((name, port)) if !port.ends_with(']') => {
                let digits = port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse().ok().filter(|_| digits);
                (name, Some(port.ok_or(NotAPattern)?))
            }
            _ => (rest, None),
        };
        let strange = |letter: char| letter.is_whitespace() || matches!(letter, '*' | '%' | '@');
        if name.contains(strange) {
            return Err(NotAPattern);
        }
        let host = Host::parse(name).map_err(|_| NotAPattern)?;
        if below && !matches!(host, Host::Domain(_)) {
            return Err(NotAPattern);
        }
        Ok(Self {
            host: without_root(&host.to_string()).to_owned(),
            below,
            port,
        })
    }

    /// Whether it means this host, as a browser writes it, and port.
    pub(super) fn matches(&self, host: &str, port: Option<u16>) -> bool {
        let host = without_root(host);
        let named = if self.below {
            host.strip_suffix(&self.host)
                .and_then(|labels| labels.strip_suffix('.'))
                .is_some_and(|labels| !labels.is_empty())
        } else {
            host == self.host
        };
        named && (self.port.is_none() || self.port == port)
    }
}

/// A name with the dot of the root at its end is the same host (RFC 1034 §3.1).
fn without_root(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}
