//! How a client learns where to log in: the document about each protected server (RFC 9728) and the
//! challenges that point to it (RFC 6750, section 3).
//!
//! # Invariants
//! Every URL is made from the configured public URL, never from a request. Each server is a
//! resource of its own. Without issuers there is nowhere to log in: then there is no document, and
//! no challenge names one.

use http::HeaderValue;
use serde::Serialize;

use super::refusal::{Kind, Refusal};
use crate::config::{Access, Config, PublicUrl, ServerName};

/// The path of a server's metadata on the gateway's host: the well-known name goes between the host
/// and the path of the resource (RFC 9728, section 3.1), so a path in `public_url` comes after it.
pub fn path(public_url: &PublicUrl, server: &ServerName) -> String {
    format!("{WELL_KNOWN}{}/mcp/{server}", public_url.path())
}

/// The address of a server's metadata.
pub fn url(public_url: &PublicUrl, server: &ServerName) -> String {
    let (origin, _) = public_url.split();
    format!("{origin}{}", path(public_url, server))
}

/// A server's metadata as JSON; `None` when access does not take tokens, for a client that finds
/// such a document goes and logs in.
pub fn document(config: &Config, server: &ServerName) -> Option<String> {
    let Access::Required(auth) = &config.access else {
        return None;
    };
    if auth.issuers.is_empty() || !config.servers.contains_key(server) {
        return None;
    }
    let document = Document {
        resource: config.public_url.endpoint(server),
        authorization_servers: auth
            .issuers
            .iter()
            .map(|issuer| issuer.issuer.as_str())
            .collect(),
        bearer_methods_supported: ["header"],
        resource_name: server.as_str(),
    };
    serde_json::to_string(&document).ok()
}

/// The members that RFC 9728, section 2 gives, as far as the gateway has something to say.
#[derive(Serialize)]
struct Document<'a> {
    resource: String,
    authorization_servers: Vec<&'a str>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'a str,
}

/// The `WWW-Authenticate` value for a refusal; `metadata` is the address of the server's document.
pub(super) fn challenge(refusal: Refusal, metadata: Option<&str>) -> Option<HeaderValue> {
    let error = match refusal.kind() {
        Kind::Missing => None,
        Kind::Invalid => Some("invalid_token"),
        Kind::Ambiguous => Some("invalid_request"),
        Kind::Forbidden | Kind::Unavailable => return None,
    };
    let parameters = [
        error.map(|error| ("error", error)),
        error.map(|_| ("error_description", refusal.description())),
        metadata.map(|url| ("resource_metadata", url)),
    ];
    let parameters: Vec<String> = parameters
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}=\"{}\"", quotable(value)))
        .collect();
    let challenge = format!("Bearer {}", parameters.join(", "));
    HeaderValue::from_str(challenge.trim_end()).ok()
}

/// The text with everything percent-encoded that can't stand in a quoted string as it is.
fn quotable(text: &str) -> String {
    let mut quotable = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | ..=0x1f | 0x7f.. => {
                quotable.extend(['%', hex(byte >> 4), hex(byte & 15)]);
            }
            _ => quotable.push(char::from(byte)),
        }
    }
    quotable
}

fn hex(digit: u8) -> char {
    char::from_digit(digit.into(), 16).map_or('0', |digit| digit.to_ascii_uppercase())
}

/// The name that RFC 9728 registers.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
