//! The `requestState` that a modern client holds while its call is parked: sealed, so that it tells
//! nothing, can't be changed, and opens only for the one it was given to.
//!
//! The call itself stays here; the state names it, and binds it to principal, server, request and
//! round (2026-07-28 basic/patterns/mrtr, "Security").

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;

/// The longest state that is looked at, in characters.
const MAX: usize = 8 * 1024;

/// What it begins with: the version of its form.
const FORM: &str = "cf1.";

/// Seals and opens states of this process.
pub(crate) struct Seal(RandomizedNonceKey);

/// A parked call, for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallId([u8; 16]);

/// What a state says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) struct State {
    pub(in crate::relay) call: CallId,
    pub(super) round: u32,
    /// What the request was ([`fingerprint`]).
    pub(in crate::relay) request: [u8; 32],
    expires: u64,
}

const SIZE: usize = 16 + 4 + 32 + 8;

impl Seal {
    /// With a key of its own: what another process sealed does not open here.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).map_err(|_| no_randomness())?;
        RandomizedNonceKey::new(&AES_256_GCM, &key)
            .map(Self)
            .map_err(|_| no_randomness())
    }

    /// The state as a client holds it.
    pub(in crate::relay) fn seal(&self, state: &State, bound: &[u8]) -> Result<String, Error> {
        let mut bytes = Vec::with_capacity(SIZE + 32);
        bytes.extend_from_slice(&state.call.0);
        bytes.extend_from_slice(&state.round.to_be_bytes());
        bytes.extend_from_slice(&state.request);
        bytes.extend_from_slice(&state.expires.to_be_bytes());
        let nonce = self
            .0
            .seal_in_place_append_tag(Aad::from(bound), &mut bytes)
            .map_err(|_| no_randomness())?;
        let mut sealed = nonce.as_ref().to_vec();
        sealed.extend_from_slice(&bytes);
        Ok(format!("{FORM}{}", BASE64_URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// What a client's state says, if it is one of ours and given to this caller.
    pub(in crate::relay) fn open(&self, text: &str, bound: &[u8]) -> Option<State> {
        let encoded = text.strip_prefix(FORM).filter(|_| text.len() <= MAX)?;
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let plain = self.0.open_in_place(nonce, Aad::from(bound), sealed).ok()?;
        let (call, rest) = plain.split_first_chunk()?;
        let (round, rest) = rest.split_first_chunk()?;
        let (request, rest) = rest.split_first_chunk()?;
        let (expires, _) = rest.split_first_chunk()?;
        Some(State {
            call: CallId(*call),
            round: u32::from_be_bytes(*round),
            request: *request,
            expires: u64::from_be_bytes(*expires),
        })
    }
}

impl CallId {
    /// A new one.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(in crate::relay) fn random() -> Result<Self, Error> {
        let mut bytes = [0; 16];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| no_randomness())?;
        Ok(Self(bytes))
    }
}

impl State {
    pub(in crate::relay) fn new(
        call: CallId,
        round: u32,
        request: [u8; 32],
        now: SystemTime,
        life: Duration,
    ) -> Self {
        Self {
            call,
            round,
            request,
            expires: seconds(now + life),
        }
    }

    pub(in crate::relay) fn is_expired(&self, now: SystemTime) -> bool {
        seconds(now) > self.expires
    }
}

/// Whom the state of a parked call is given to: another caller can't open it. Without authentication,
/// whoever holds it.
pub(super) fn bound_to(server: &ServerName, principal: &Principal) -> Vec<u8> {
    bound_as("parked call", server, principal)
}

/// Whom a state of this kind is given to. What is sealed as one kind does not open as another.
pub(in crate::relay) fn bound_as(
    kind: &str,
    server: &ServerName,
    principal: &Principal,
) -> Vec<u8> {
    let (issuer, subject) = if principal.is_anonymous() {
        ("", "")
    } else {
        (principal.issuer(), principal.subject())
    };
    format!("contraflow {kind}\0{server}\0{issuer}\0{subject}").into_bytes()
}

/// What a request is: its method, its target and its arguments, however they are spelled.
pub(in crate::relay) fn fingerprint(
    method: &str,
    target: &str,
    arguments: Option<&str>,
) -> [u8; 32] {
    let arguments = arguments.unwrap_or("{}");
    let spelled = match serde_json::from_str::<Value>(arguments) {
        Ok(value) => {
            let mut spelled = String::new();
            spell(&value, &mut spelled);
            spelled
        }
        // Nested deeper than can be looked at: then every byte counts.
        Err(_) => arguments.to_owned(),
    };
    exactly(format!("{method}\0{target}\0{spelled}").as_bytes())
}

/// What a request is to the last byte.
pub(in crate::relay) fn exactly(bytes: &[u8]) -> [u8; 32] {
    let hash = digest(&SHA256, bytes);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

/// One spelling for equal values: members in order, `1.0` as `1`.
fn spell(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push('{');
            for (name, value) in members {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                spell(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for value in elements {
                spell(value, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => match (number.is_f64(), number.as_f64()) {
            (true, Some(float)) => out.push_str(&float.to_string()),
            _ => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

fn no_randomness() -> Error {
    Error::Capacity("no randomness to seal a state with".into())
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State::new(
            CallId([7; 16]),
            3,
            [9; 32],
            UNIX_EPOCH,
            Duration::from_mins(10),
        )
    }

    #[test]
    fn a_state_opens_for_whom_it_was_sealed_and_for_nobody_else() {
        let seal = Seal::new().unwrap();
        let server = ServerName("booking".into());
        let mira = bound_to(&server, &Principal::token("https://a", "mira", None));
        let sealed = seal.seal(&state(), &mira).unwrap();
        assert_eq!(seal.open(&sealed, &mira), Some(state()));
        for other in [
            bound_to(&server, &Principal::token("https://a", "joris", None)),
            bound_to(&server, &Principal::token("https://b", "mira", None)),
            bound_to(
                &ServerName("other".into()),
                &Principal::token("https://a", "mira", None),
            ),
        ] {
            assert_eq!(seal.open(&sealed, &other), None);
        }
        assert_eq!(Seal::new().unwrap().open(&sealed, &mira), None);
    }

    #[test]
    fn a_changed_state_does_not_open() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(&state(), b"x").unwrap();
        assert!(sealed.len() < 600);
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_ne!(seal.open(&changed, b"x"), Some(state()), "{at}");
        }
        for junk in ["", "cf1.", "cf1.AAAA", "x", &"cf1.A".repeat(4000)] {
            assert_eq!(seal.open(junk, b"x"), None);
        }
    }

    #[test]
    fn a_state_ends() {
        assert!(!state().is_expired(UNIX_EPOCH + Duration::from_mins(10)));
        assert!(state().is_expired(UNIX_EPOCH + Duration::from_secs(601)));
    }

    #[test]
    fn arguments_are_compared_by_what_they_mean() {
        let of = |arguments| fingerprint("tools/call", "order", Some(arguments));
        assert_eq!(of(r#"{"a":1,"b":[2.0]}"#), of(r#"{ "b":[2],"a":1e0 }"#));
        assert_eq!(of("{}"), fingerprint("tools/call", "order", None));
        for other in [r#"{"a":2,"b":[2]}"#, r#"{"a":"1","b":[2]}"#, r#"{"b":[2]}"#] {
            assert_ne!(of(r#"{"a":1,"b":[2]}"#), of(other), "{other}");
        }
        assert_ne!(of("{}"), fingerprint("tools/call", "other", None));
        assert_ne!(of("{}"), fingerprint("prompts/get", "order", None));
    }
}
