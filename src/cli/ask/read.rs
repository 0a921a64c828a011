//! The files of a dry run: what is asked, in which call, and what is answered.
//!
//! # Invariant
//! What a file says stays the bytes it was: the policy sees what it would see on the wire.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::value::RawValue;

use crate::protocol::object::{is_object, members, text};

/// Bytes of the largest file, as of the largest message of a server where nothing else is configured.
const LARGEST: u64 = 16 << 20;

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    /// There is none, or it can't be read.
    #[error("{0} can't be read")]
    File(String, #[source] io::Error),
    /// It is no question's.
    #[error("{0} is larger than {LARGEST} bytes")]
    Large(String),
    /// It is no JSON.
    #[error("{0} is not JSON")]
    NotJson(String, #[source] serde_json::Error),
    /// It is JSON of another kind.
    #[error("{0} is not a JSON object")]
    NoObject(String),
    /// It is an object that asks nothing.
    #[error(
        "{0} is no question: write the `params` of an `elicitation/create`, as \
         `{{\"message\":\"…\",\"requestedSchema\":{{…}}}}`, or a JSON Schema of type object"
    )]
    NoQuestion(String),
}

/// The `params` of a question (JSON text). A form alone asks without a word.
pub(super) fn params(path: &Path) -> Result<String, Unread> {
    let raw = if path == Path::new("-") {
        raw("standard input", io::stdin().lock())?
    } else {
        object(path)?
    };
    if !is_object(&raw) {
        return Err(Unread::NoObject(name(path)));
    }
    let names = ["message", "mode", "requestedSchema", "url", "type"];
    match members(&raw, names) {
        Ok([None, None, None, None, kind]) => {
            if kind.and_then(text).as_deref() != Some("object") {
                return Err(Unread::NoQuestion(name(path)));
            }
            Ok(format!(r#"{{"message":"","requestedSchema":{raw}}}"#))
        }
        // What can be read in two ways is for the policy to judge.
        Ok(_) | Err(_) => Ok(raw),
    }
}

/// A JSON object.
pub(super) fn object(path: &Path) -> Result<String, Unread> {
    let raw = json(path)?;
    if is_object(&raw) {
        Ok(raw)
    } else {
        Err(Unread::NoObject(name(path)))
    }
}

/// Any JSON text.
pub(super) fn json(path: &Path) -> Result<String, Unread> {
    let name = name(path);
    match File::open(path) {
        Ok(file) => raw(&name, file),
        Err(error) => Err(Unread::File(name, error)),
    }
}

/// What a person calls a file.
fn name(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    path.display().to_string()
}

fn raw(name: &str, from: impl Read) -> Result<String, Unread> {
    let mut text = String::new();
    let read = from.take(LARGEST + 1).read_to_string(&mut text);
    read.map_err(|error| Unread::File(name.to_owned(), error))?;
    if text.len() as u64 > LARGEST {
        return Err(Unread::Large(name.to_owned()));
    }
    let raw: Box<RawValue> =
        serde_json::from_str(&text).map_err(|error| Unread::NotJson(name.to_owned(), error))?;
    Ok(raw.get().to_owned())
}
