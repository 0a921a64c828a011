//! What a token says, and whether it may say so.
//!
//! The checks that a valid signature leaves open: times, the shape of an access token, and names
//! that can be written into a log or a header.
//!
//! # Invariants
//! Claims are parsed once, and a claim that decides anything may not occur twice. Issuer, subject,
//! audience and expiry are required. Nothing here knows a server: the audience is checked later,
//! for each.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::audience::canonical;
use super::principal::Principal;
use super::refusal::Refusal;

/// The claims that are looked at. All the others are skipped.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<Audience>,
    #[serde(default, deserialize_with = "numeric_date")]
    exp: Option<u64>,
    #[serde(default, deserialize_with = "numeric_date")]
    nbf: Option<u64>,
    #[serde(default, deserialize_with = "numeric_date")]
    iat: Option<u64>,
    client_id: Option<String>,
    azp: Option<String>,
    // Marks of tokens that are not access tokens.
    nonce: Option<IgnoredAny>,
    at_hash: Option<IgnoredAny>,
    c_hash: Option<IgnoredAny>,
    events: Option<IgnoredAny>,
    typ: Option<String>,
    token_use: Option<String>,
}

/// `aud` is one name or a list of them (RFC 7519, section 4.1.3).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// What `typ` in the token's header promises (RFC 8725, section 3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenType {
    /// `at+jwt`: an access token (RFC 9068).
    Access,
    /// `JWT`, or nothing: the shape has to tell.
    Unsaid,
}

/// Who holds a token, and for whom it was made.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) principal: Principal,
    /// In canonical form.
    pub(super) audiences: Vec<String>,
    /// The time from which the token no longer counts, leeway included.
    pub(super) expires: SystemTime,
}

impl Claims {
    /// Parses the decoded payload.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Refusal> {
        if depth(payload) > MAX_DEPTH {
            return Err(Refusal::MalformedClaim);
        }
        serde_json::from_slice(payload).map_err(|_| Refusal::MalformedClaim)
    }

    /// The issuer as claimed; nothing is proved yet.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.iss.as_deref()
    }

    /// Checks everything but signature, issuer and audience.
    pub(super) fn check(self, token_type: TokenType, now: SystemTime) -> Result<Holder, Refusal> {
        self.check_type(token_type)?;
        let expires = self.check_times(now)?;
        let subject = self.sub.as_deref().ok_or(Refusal::MissingClaim)?;
        let client = self.client_id.as_deref().or(self.azp.as_deref());
        if !is_name(subject) || !client.is_none_or(is_name) {
            return Err(Refusal::MalformedClaim);
        }
        let issuer = self.iss.as_deref().ok_or(Refusal::MissingClaim)?;
        let principal = Principal::token(issuer, subject, client);
        let audiences = match self.aud {
            None => return Err(Refusal::MissingClaim),
            Some(Audience::One(audience)) => vec![canonical(&audience)],
            Some(Audience::Several(audiences)) => audiences
                .iter()
                .map(|audience| canonical(audience))
                .collect(),
        };
        Ok(Holder {
            principal,
            audiences,
            expires,
        })
    }

    /// Refuses what the same issuer signs with the same keys for other purposes: ID tokens, logout
    /// tokens, refresh tokens. `events` is in no access token, whatever its header says.
    fn check_type(&self, token_type: TokenType) -> Result<(), Refusal> {
        let is_id_token = self.nonce.is_some() || self.at_hash.is_some() || self.c_hash.is_some();
        // How Keycloak and Amazon Cognito tell their tokens apart.
        let says_other = [&self.typ, &self.token_use]
            .into_iter()
            .flatten()
            .any(|kind| {
                OTHER_TOKENS
                    .iter()
                    .any(|other| kind.eq_ignore_ascii_case(other))
            });
        let other = token_type == TokenType::Unsaid && (is_id_token || says_other);
        if other || self.events.is_some() {
            Err(Refusal::WrongTokenType)
        } else {
            Ok(())
        }
    }

    fn check_times(&self, now: SystemTime) -> Result<SystemTime, Refusal> {
        let now = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let expires = self
            .exp
            .ok_or(Refusal::MissingClaim)?
            .saturating_add(LEEWAY);
        let begun = now.saturating_add(LEEWAY);
        if expires <= now {
            return Err(Refusal::TokenExpired);
        }
        if self.nbf.is_some_and(|nbf| nbf > begun) {
            return Err(Refusal::TokenNotYetValid);
        }
        if self.iat.is_some_and(|iat| iat > begun) {
            return Err(Refusal::TokenIssuedInFuture);
        }
        Ok(UNIX_EPOCH + Duration::from_secs(expires.min(END_OF_TIME)))
    }
}

/// Whether a subject or client id can be shown: 1 to 255 bytes, nothing that moves a cursor, ends a
/// line or turns the direction of writing around.
fn is_name(text: &str) -> bool {
    let turns = |c| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let unprintable = |c: char| c.is_control() || turns(c);
    (1..=MAX_NAME).contains(&text.len()) && !text.chars().any(unprintable)
}

/// Seconds since 1970 as a JSON number, with or without a fraction (RFC 7519, section 2). Text that
/// looks like a number is none.
fn numeric_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let fraction = || {
        Duration::try_from_secs_f64(number.as_f64()?)
            .ok()
            .map(|d| d.as_secs())
    };
    number
        .as_u64()
        .or_else(fraction)
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("a time must be a number of seconds since 1970"))
}

/// How deep arrays and objects are nested. Exact for valid JSON; other bytes are refused
/// afterwards.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Seconds by which clocks may differ.
pub(super) const LEEWAY: u64 = 30;
/// The last second of the year 9999: later expiries mean never.
const END_OF_TIME: u64 = 253_402_300_799;
const MAX_DEPTH: usize = 16;
const MAX_NAME: usize = 255;
/// Values of the `typ` and `token_use` claims that name something else than an access token.
const OTHER_TOKENS: [&str; 5] = ["id", "refresh", "offline", "logout", "logout+jwt"];
