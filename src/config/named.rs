//! The files that a configuration names: whether they are there, before anything starts.
//!
//! # Invariants
//! - A file is looked at and never made.
//! - A path that came from the environment is shown as the configuration spells it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::problem::{Position, Problem};

/// Tells whether a text is a key set (JWKS) with a key that can be used.
pub type KeySetTest<'a> = &'a dyn Fn(&[u8]) -> bool;

/// A file that a configuration names.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) at: Position,
    /// The key that names it.
    pub(super) key: String,
    /// The path as the configuration spells it.
    pub(super) written: String,
    pub(super) path: PathBuf,
    pub(super) role: Role,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// An issuer's key set, which must be there.
    KeySet,
    /// The audit log, whose folder must be there.
    Audit,
}

/// Bytes of the largest key set, as when one is fetched.
const KEY_SET_MAX: u64 = 1 << 20;

impl Named {
    /// What is wrong with the file, if something is.
    pub(super) fn problem(&self, is_key_set: KeySetTest<'_>) -> Option<Problem> {
        let (what, instead) = match self.role {
            Role::KeySet => self.key_set(is_key_set)?,
            Role::Audit => self.folder()?,
        };
        Some(Problem {
            at: Some(self.at),
            what: format!("{}: {what}", self.key),
            instead,
        })
    }

    fn key_set(&self, is_key_set: KeySetTest<'_>) -> Option<(String, String)> {
        let usual = "name a file with the key set (JWKS) that the issuer publishes".to_owned();
        let written = self.written.escape_debug();
        match read(&self.path) {
            Err(error) => Some((format!("`{written}` can't be read: {error}"), usual)),
            Ok(json) if !is_key_set(&json) => Some((
                format!("`{written}` is no key set with a key that can be used"),
                usual,
            )),
            Ok(_) => None,
        }
    }

    fn folder(&self) -> Option<(String, String)> {
        let parent = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
        let folder = parent(&self.path);
        if folder.as_os_str().is_empty() || folder.is_dir() {
            return None;
        }
        let shown = parent(Path::new(&self.written)).display().to_string();
        let shown = if shown.is_empty() {
            format!("of {}", self.written)
        } else {
            shown
        };
        Some((
            format!("the folder {} doesn't exist", shown.escape_debug()),
            format!("create it or change {}", self.key),
        ))
    }
}

/// The beginning of a file, one byte more than a key set may have.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(KEY_SET_MAX + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
