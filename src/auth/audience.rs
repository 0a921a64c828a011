//! Which token audiences open which server.
//!
//! # Invariants
//! There is no empty set that admits everything: without configured audiences a server admits its
//! own endpoint. Two audiences are the same when they are equal byte for byte, except that scheme
//! and host of a web address count without case and a bare root counts with and without its slash
//! (RFC 3986, section 6.2). Nothing looser: no prefixes, no default ports, no other slash.

use std::collections::HashSet;

use crate::config::{Config, Issuer, ServerName};

/// The audiences of one issuer's tokens that open one server.
#[derive(Debug)]
pub(super) struct Audiences(HashSet<String>);

impl Audiences {
    /// The rule of [`Issuer::audiences`]: an endpoint of a server opens that server alone, any
    /// other audience opens all, and no audience at all means each server's own endpoint.
    pub(super) fn of(issuer: &Issuer, config: &Config, server: &ServerName) -> Self {
        let own = canonical(&config.public_url.endpoint(server));
        if issuer.audiences.is_empty() {
            return Self(HashSet::from([own]));
        }
        let endpoints: HashSet<String> = config
            .servers
            .keys()
            .map(|name| canonical(&config.public_url.endpoint(name)))
            .collect();
        let opens = |audience: &String| *audience == own || !endpoints.contains(audience);
        Self(
            issuer
                .audiences
                .iter()
                .map(|audience| canonical(audience))
                .filter(opens)
                .collect(),
        )
    }

    /// Whether a token with these audiences, each in canonical form, opens the server.
    pub(super) fn admit(&self, claimed: &[String]) -> bool {
        claimed.iter().any(|audience| self.0.contains(audience))
    }
}

/// The form in which audiences are compared.
pub(super) fn canonical(audience: &str) -> String {
    let Some((scheme, rest)) = audience.split_once("://") else {
        return audience.to_owned();
    };
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // A name before `@` has case, and is nothing that a gateway would be called by.
    if !matches!(scheme.as_str(), "http" | "https") || authority.contains('@') {
        return audience.to_owned();
    }
    let path = if path == "/" { "" } else { path };
    format!("{scheme}://{}{path}", authority.to_ascii_lowercase())
}
