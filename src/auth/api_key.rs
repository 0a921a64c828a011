//! Keys for programs that can't log in.
//!
//! # Invariants
//! The gateway knows hashes only. A presented key is compared with every configured one, in
//! constant time and without stopping at a match, so that the time of a refusal tells nothing about
//! any key. The keys are random, so a plain SHA-256 is enough: there is nothing to guess.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};

use super::principal::Principal;
use super::refusal::Refusal;
use crate::config::{ApiKey, ServerName};

/// The configured keys.
#[derive(Debug)]
pub(super) struct ApiKeys(Vec<ApiKey>);

impl ApiKeys {
    pub(super) fn new(keys: &[ApiKey]) -> Self {
        Self(keys.to_vec())
    }

    /// The holder of the key, if it opens the server.
    pub(super) fn check(
        &self,
        presented: &[u8],
        server: &ServerName,
    ) -> Result<Principal, Refusal> {
        let hash = digest(&SHA256, presented);
        let mut found = None;
        for key in &self.0 {
            if verify_slices_are_equal(hash.as_ref(), &key.sha256).is_ok() {
                found = Some(key);
            }
        }
        let key = found.ok_or(Refusal::UnknownApiKey)?;
        let opens = key
            .servers
            .as_ref()
            .is_none_or(|servers| servers.contains(server));
        opens
            .then(|| Principal::api_key(&key.name))
            .ok_or(Refusal::ApiKeyNotForServer)
    }
}
