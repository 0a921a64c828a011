//! Texts from outside as a record keeps them: short, and without the parts in which secrets travel.

use std::fmt;

use serde::Serialize;

/// Bytes of one text in a record; what is longer ends in `…`.
pub const TEXT_MAX: usize = 256;

/// A text of at most [`TEXT_MAX`] bytes.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub(super) struct Text(Box<str>);

impl Text {
    pub(super) fn new(text: &str) -> Self {
        Self(capped(text).into())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

pub(super) fn capped(text: &str) -> std::borrow::Cow<'_, str> {
    const MARK: &str = "…";
    if text.len() <= TEXT_MAX {
        return text.into();
    }
    let end = text.floor_char_boundary(TEXT_MAX - MARK.len());
    let (kept, _) = text.split_at(end);
    format!("{kept}{MARK}").into()
}

/// A URI up to its query or fragment, without what stands before an `@` in its authority.
pub(super) fn without_secrets(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = path.split_once("://") else {
        return path.to_owned();
    };
    let (authority, tail) = rest
        .find('/')
        .map_or((rest, ""), |slash| rest.split_at(slash));
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{tail}")
}
