//! Whether a person may be sent to a URL that a server names.
//!
//! "The `url` parameter MUST contain a valid URL" (2025-11-25 and 2026-07-28 client/elicitation, "URL
//! Mode Elicitation Requests"); clients show it whole and open it after consent. A gateway sees more
//! servers than a person knows, so an operator says where it may lead.
//!
//! # Invariants
//! - The URL is read as browsers read it (WHATWG URL Standard), and what another reader could take for
//!   another place is refused before.
//! - It is never rewritten, and nothing of it but the host is repeated: the rest can hold secrets.

mod host;

use url::{Host, Url};

pub use self::host::{HostPattern, NotAPattern};

/// The longest URL that is looked at, in bytes.
pub const MAX_URL: usize = 8192;

/// Where a URL that may be opened leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The host as a browser looks it up: in lower case, an international name in its ASCII form, an
    /// address in its usual notation.
    pub host: String,
    /// Whether the host has letters beyond ASCII (a label `xn--…`, RFC 5890 §2.3.2.1), which can look
    /// like those of another name: there should be "warnings for ambiguous/suspicious URIs (i.e.,
    /// containing Punycode)" (2025-11-25 client/elicitation, "Safe URL Handling").
    pub punycode: bool,
}

/// Why a URL may not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// More bytes than [`MAX_URL`].
    #[error("the URL has more than {MAX_URL} bytes")]
    TooLong,
    /// White space, control characters or such that turn the direction of text.
    #[error("the URL has invisible characters")]
    Invisible,
    /// No absolute URL with a host, or one that readers take for different places.
    #[error("the URL is not valid, or can be read in two ways")]
    Invalid,
    /// A user name or a password before the host.
    #[error("the URL has a user name or password in front of its host")]
    UserInfo,
    /// A scheme that is not allowed.
    #[error("the scheme {0} is not allowed")]
    Scheme(String),
    /// `http` to a host that is not this machine.
    #[error("http is allowed to this machine only, and {0} is another")]
    Plain(String),
    /// A host that is not allowed.
    #[error("the host {0} is not allowed")]
    Host(String),
}

/// Checks a URL against the schemes that are allowed, such as `https`, and the hosts; no hosts means
/// any. `http` must be among the schemes, and even then leads to this machine only: servers "SHOULD use
/// HTTPS URLs for non-development environments" (2025-11-25 client/elicitation, "Safe URL Handling").
///
/// # Errors
/// [`Refused`], with the first reason.
///
/// ```
/// use contraflow::policy::urls::{HostPattern, Refused, check};
/// let hosts = [HostPattern::read("*.example.com").unwrap()];
/// let seen = check("https://login.Example.com/?state=1", &["https"], &hosts).unwrap();
/// assert_eq!((seen.host.as_str(), seen.punycode), ("login.example.com", false));
/// let evil = check("https://evilexample.com/", &["https"], &hosts);
/// assert_eq!(evil, Err(Refused::Host("evilexample.com".to_owned())));
/// ```
pub fn check<S: AsRef<str>>(
    url: &str,
    schemes: &[S],
    hosts: &[HostPattern],
) -> Result<Seen, Refused> {
    if url.len() > MAX_URL {
        return Err(Refused::TooLong);
    }
    if url.contains(is_invisible) {
        return Err(Refused::Invisible);
    }
    let authority = authority(url).ok_or(Refused::Invalid)?;
    let read = Url::parse(url).map_err(|_| Refused::Invalid)?;
    if authority.contains('@') || !read.username().is_empty() || read.password().is_some() {
        return Err(Refused::UserInfo);
    }
    let scheme = read.scheme();
    if !schemes
        .iter()
        .any(|allowed| allowed.as_ref().eq_ignore_ascii_case(scheme))
    {
        return Err(Refused::Scheme(scheme.to_owned()));
    }
    let host = read.host().ok_or(Refused::Invalid)?;
    let name = host.to_string();
    if scheme == "http" && !is_loopback(&host) {
        return Err(Refused::Plain(name));
    }
    let port = read.port_or_known_default();
    if !hosts.is_empty() && !hosts.iter().any(|pattern| pattern.matches(&name, port)) {
        return Err(Refused::Host(name));
    }
    let punycode = matches!(host, Host::Domain(domain) if domain.split('.').any(is_punycode));
    Ok(Seen {
        host: name,
        punycode,
    })
}

/// What stands between the slashes and the path; none where a browser would mend the URL before it
/// reads it, which others don't.
fn authority(url: &str) -> Option<&str> {
    // A browser takes `\` for `/`, and unescapes what is escaped in a host.
    if url.contains('\\') {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let plain = !scheme.is_empty()
        && scheme
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
    (plain && !authority.is_empty() && !authority.contains('%')).then_some(authority)
}

/// Characters that are not seen, and change what is: those that a browser drops, and those that turn
/// or join text.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || letter.is_whitespace()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        // RFC 6761 §6.3.
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

fn is_punycode(label: &str) -> bool {
    label.starts_with("xn--")
}

#[cfg(test)]
mod tests;
