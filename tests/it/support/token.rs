//! An authorization server's keys and the access tokens that it signs, good ones and bad ones.
//!
//! Signed with `aws-lc-rs` directly, so that the library which judges tokens in the gateway is not
//! the one that makes them here.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

/// The issuer that the tests configure.
pub(crate) const ISSUER: &str = "https://login.example.test";
/// The public URL that the tests configure.
pub(crate) const PUBLIC: &str = "https://gw.example.test";

/// One signing key of an issuer.
#[derive(Debug)]
pub(crate) struct Key {
    pair: EcdsaKeyPair,
    kid: String,
}

impl Key {
    /// A fresh P-256 key.
    pub(crate) fn new(kid: &str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        Self {
            pair,
            kid: kid.to_owned(),
        }
    }

    /// The public half, as a JWKS has it.
    pub(crate) fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = point[1..].split_at(32);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
            "x": BASE64.encode(x), "y": BASE64.encode(y),
        })
    }

    /// The bytes of the public point, which a confused verifier might take for an HMAC secret.
    pub(crate) fn public_bytes(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// Writes the JWKS of these keys.
    pub(crate) fn write(keys: &[&Self], folder: &Path) -> std::path::PathBuf {
        let path = folder.join("jwks.json");
        std::fs::write(&path, jwks(keys)).unwrap();
        path
    }

    /// An access token for `subject` at the server `alpha`.
    pub(crate) fn token(&self, subject: &str) -> String {
        self.sign(&self.header(), &claims(subject))
    }

    /// The header of an access token (RFC 9068).
    pub(crate) fn header(&self) -> Value {
        json!({ "alg": "ES256", "typ": "at+jwt", "kid": self.kid })
    }

    /// Signs anything.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = unsigned(header, claims);
        let signature = self
            .pair
            .sign(&SystemRandom::new(), signed.as_bytes())
            .unwrap();
        format!("{signed}.{}", BASE64.encode(signature.as_ref()))
    }
}

/// The document with the public halves.
pub(crate) fn jwks(keys: &[&Key]) -> String {
    let keys: Vec<Value> = keys.iter().map(|key| key.public()).collect();
    json!({ "keys": keys }).to_string()
}

/// Header and claims, encoded, without a signature.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// Signed with HMAC under `secret`.
pub(crate) fn hmac(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let signed = unsigned(header, claims);
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret);
    let tag = aws_lc_rs::hmac::sign(&key, signed.as_bytes());
    format!("{signed}.{}", BASE64.encode(tag.as_ref()))
}

/// The claims of a good token for `alpha`.
pub(crate) fn claims(subject: &str) -> Value {
    json!({
        "iss": ISSUER, "sub": subject, "aud": format!("{PUBLIC}/mcp/alpha"),
        "client_id": "raw", "iat": now(), "exp": now() + 600, "jti": format!("{subject}-1"),
    })
}

/// The good claims with some replaced; `null` takes one away.
pub(crate) fn claims_with(subject: &str, change: &Value) -> Value {
    let mut claims = claims(subject);
    for (name, value) in change.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// The SHA-256 of an API key, in hexadecimal.
pub(crate) fn sha256(key: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, key.as_bytes());
    let bytes: Vec<String> = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    bytes.concat()
}
