//! The issuer whose tokens the gateway takes: one key, written to a file, and a token for everybody.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

use crate::Fallible;

pub(crate) const NAME: &str = "https://login.example.test";
pub(crate) const AUDIENCE: &str = "https://gw.example.test";

/// A day: longer than any run.
const VALID: u64 = 24 * 3600;

/// An issuer with a key of its own.
#[derive(Debug)]
pub(crate) struct Issuer(EcdsaKeyPair);

impl Issuer {
    pub(crate) fn new() -> Fallible<Self> {
        Ok(Self(EcdsaKeyPair::generate(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
        )?))
    }

    /// Writes its public key as a key set.
    pub(crate) fn publish(&self, folder: &Path) -> Fallible<PathBuf> {
        // An uncompressed point: a byte that says so, then both coordinates.
        let point = self.0.public_key().as_ref();
        let (x, y) = (point.get(1..33), point.get(33..65));
        let (x, y) = x.zip(y).ok_or("not a point of P-256")?;
        let keys = json!({"keys": [{
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "bench",
            "x": BASE64.encode(x), "y": BASE64.encode(y),
        }]});
        let path = folder.join("jwks.json");
        std::fs::write(&path, keys.to_string())?;
        Ok(path)
    }

    /// An access token (RFC 9068).
    pub(crate) fn token(&self, subject: &str) -> Fallible<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": "bench"});
        let claims = json!({
            "iss": NAME, "sub": subject, "aud": AUDIENCE, "client_id": "bench",
            "iat": now, "exp": now + VALID, "jti": subject, "scope": "mcp:tools",
        });
        let part = |value: &Value| BASE64.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes())?;
        Ok(format!("{signed}.{}", BASE64.encode(signature.as_ref())))
    }
}
