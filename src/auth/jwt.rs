//! A JSON Web Token taken apart (RFC 7515, RFC 7519), before its signature is checked.
//!
//! # Invariants
//! Only asymmetric algorithms have a name here, so neither `none` nor an HMAC can ever be asked
//! for. Header members that bring a key along or say where to find one (`jwk`, `jku`, `x5u`, `x5c`)
//! are not even read. An extension that must be understood (`crit`) is not, and refuses the token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::claims::{Claims, TokenType};
use super::refusal::Refusal;

/// A token whose parts could be read. Nothing in it is proved.
#[derive(Debug)]
pub(super) struct Token<'t> {
    /// What is signed: header and claims as sent.
    pub(super) signed: &'t str,
    /// The signature, in Base64.
    pub(super) signature: &'t str,
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    pub(super) promised: TokenType,
    pub(super) claims: Claims,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<IgnoredAny>,
    /// RFC 7797: `false` would mean that the payload is not Base64.
    b64: Option<bool>,
}

impl<'t> Token<'t> {
    /// Takes the token apart.
    pub(super) fn parse(text: &'t str) -> Result<Self, Refusal> {
        let (signed, signature) = text.rsplit_once('.').ok_or(Refusal::MalformedToken)?;
        let (header, payload) = signed.split_once('.').ok_or(Refusal::MalformedToken)?;
        let header: Header =
            serde_json::from_slice(&decode(header)?).map_err(|_| Refusal::MalformedToken)?;
        let algorithm = algorithm(&header.alg).ok_or(Refusal::AlgorithmNotAllowed)?;
        if header.crit.is_some() || header.b64 == Some(false) {
            return Err(Refusal::CriticalHeader);
        }
        let promised = token_type(header.typ.as_deref()).ok_or(Refusal::WrongTokenType)?;
        let claims = Claims::parse(&decode(payload)?)?;
        Ok(Self {
            signed,
            signature,
            algorithm,
            key_id: header.kid,
            promised,
            claims,
        })
    }
}

/// Whether a bearer credential has the form of a JWT, and so is never an API key.
pub(super) fn looks_like_jwt(credential: &str) -> bool {
    credential.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// The algorithm that goes by this name, if it is one of those allowed.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "RS256" => Algorithm::RS256,
        "RS384" => Algorithm::RS384,
        "RS512" => Algorithm::RS512,
        "PS256" => Algorithm::PS256,
        "PS384" => Algorithm::PS384,
        "PS512" => Algorithm::PS512,
        "ES256" => Algorithm::ES256,
        "ES384" => Algorithm::ES384,
        // RFC 9864 gives EdDSA with this curve a name of its own.
        "EdDSA" | "Ed25519" => Algorithm::EdDSA,
        _ => return None,
    })
}

/// What the `typ` header promises; `None` when it promises something that is no access token. Media
/// types have no case, and `application/` may be left out (RFC 7515, section 4.1.9).
fn token_type(typ: Option<&str>) -> Option<TokenType> {
    let Some(typ) = typ else {
        return Some(TokenType::Unsaid);
    };
    let typ = typ.to_ascii_lowercase();
    match typ.strip_prefix("application/").unwrap_or(&typ) {
        "at+jwt" => Some(TokenType::Access),
        "jwt" => Some(TokenType::Unsaid),
        _ => None,
    }
}

fn decode(part: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| Refusal::MalformedToken)
}
