//! An issuer's signing keys (RFC 7517), each pinned to the algorithms it may be used with.
//!
//! # Invariants
//! A key that can't be used is skipped and harms no other key. A key with `alg` checks that
//! algorithm alone, any other the ones of its type. Symmetric keys are never used: whoever can read
//! the set could sign with them.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::jwt::{Token, algorithm};
use super::refusal::Refusal;

/// The usable keys of one issuer.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<Key>,
    skipped: usize,
    fingerprint: [u8; 32],
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    public: DecodingKey,
}

#[derive(Deserialize)]
struct JwkSet<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

/// One key as published. Members of private keys are not read.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a key set; `None` when the text is none, or has no key that can be used.
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        let set: JwkSet<'_> = serde_json::from_slice(json).ok()?;
        let published = set.keys.len();
        let keys: Vec<Key> = set
            .keys
            .into_iter()
            .take(MAX_KEYS)
            .filter_map(Key::parse)
            .collect();
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest(&SHA256, json).as_ref());
        let skipped = published - keys.len();
        (!keys.is_empty()).then_some(Self {
            keys,
            skipped,
            fingerprint,
        })
    }

    /// Tells this set from others: equal for the same published text.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// How many keys can be used.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// How many keys can't.
    pub(super) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Checks the signature. [`Refusal::UnknownSigningKey`] means that a newer set may know better.
    pub(super) fn verify(&self, token: &Token<'_>) -> Result<(), Refusal> {
        let signed_by = |key: &&Key| {
            crypto::verify(
                token.signature,
                token.signed.as_bytes(),
                &key.public,
                token.algorithm,
            )
            .unwrap_or(false)
        };
        let fits = |key: &&Key| key.algorithms.contains(&token.algorithm);
        let Some(id) = &token.key_id else {
            let found = self
                .keys
                .iter()
                .filter(fits)
                .take(MAX_TRIES)
                .find(signed_by);
            return found.map(|_| ()).ok_or(Refusal::UnknownSigningKey);
        };
        let mut named = self
            .keys
            .iter()
            .filter(|key| key.id.as_ref() == Some(id))
            .peekable();
        if named.peek().is_none() {
            return Err(Refusal::UnknownSigningKey);
        }
        let mut named = named.filter(fits).take(MAX_TRIES).peekable();
        if named.peek().is_none() {
            return Err(Refusal::AlgorithmNotAllowed);
        }
        named
            .find(signed_by)
            .map(|_| ())
            .ok_or(Refusal::BadSignature)
    }
}

impl Key {
    fn parse(json: &RawValue) -> Option<Self> {
        let jwk: Jwk = serde_json::from_str(json.get()).ok()?;
        let for_signatures = jwk.usage.as_deref().is_none_or(|usage| usage == "sig")
            && jwk
                .key_ops
                .as_ref()
                .is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !for_signatures {
            return None;
        }
        let (public, mut algorithms) = jwk.material()?;
        if let Some(name) = &jwk.alg {
            let only = algorithm(name)?;
            algorithms.retain(|algorithm| *algorithm == only);
        }
        (!algorithms.is_empty()).then_some(Self {
            id: jwk.kid,
            algorithms,
            public,
        })
    }
}

impl Jwk {
    /// The key itself and the algorithms of its type (RFC 7518, section 6; RFC 8037, section 2).
    /// Sizes are checked here, so that a bad key is skipped instead of failing every token.
    fn material(&self) -> Option<(DecodingKey, Vec<Algorithm>)> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (decode(self.n.as_ref())?, decode(self.e.as_ref())?);
                let bytes = n.iter().skip_while(|byte| **byte == 0).count();
                let usable = RSA_BYTES.contains(&bytes) && !e.is_empty();
                usable.then(|| (DecodingKey::from_rsa_raw_components(&n, &e), RSA.to_vec()))
            }
            ("EC", Some("P-256")) => Some((self.point(32)?, vec![Algorithm::ES256])),
            ("EC", Some("P-384")) => Some((self.point(48)?, vec![Algorithm::ES384])),
            ("OKP", Some("Ed25519")) => {
                let x = decode(self.x.as_ref())?;
                (x.len() == 32).then(|| (DecodingKey::from_ed_der(&x), vec![Algorithm::EdDSA]))
            }
            _ => None,
        }
    }

    /// An uncompressed point of a curve whose coordinates have this many bytes (SEC 1, section
    /// 2.3.3).
    fn point(&self, bytes: usize) -> Option<DecodingKey> {
        let (x, y) = (decode(self.x.as_ref())?, decode(self.y.as_ref())?);
        let point = [&[4], x.as_slice(), y.as_slice()].concat();
        (x.len() == bytes && y.len() == bytes).then(|| DecodingKey::from_ec_der(&point))
    }
}

fn decode(text: Option<&String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}

/// Keys beyond this number are not looked at.
const MAX_KEYS: usize = 100;
/// Keys that one token is tried with.
const MAX_TRIES: usize = 4;
/// 2048 to 8192 bits: the sizes that the cryptography checks signatures with.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
const RSA: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];
