//! Texts from outside as a record keeps them: short, and without the parts in which secrets travel.

use std::borrow::Cow;
use std::fmt;

/// Bytes of one text in a record; what is longer ends in `…`.
pub const TEXT_MAX: usize = 256;

/// A text of at most [`TEXT_MAX`] bytes.
#[derive(Clone)]
pub(super) struct Text(Box<str>);

impl Text {
    pub(super) fn new(text: &str) -> Self {
        Self(capped(text).into())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Up to `N` texts of at most [`TEXT_MAX`] bytes each, in one piece of memory.
#[derive(Clone)]
pub(super) struct Texts<const N: usize> {
    all: String,
    /// Where each one begins and ends.
    spans: [Option<(u32, u32)>; N],
}

/// What the four texts of a call need, nearly always.
const USUAL: usize = 96;

impl<const N: usize> Texts<N> {
    /// Puts a text in its place. What was there is not read again.
    pub(super) fn set(&mut self, place: usize, text: &str) {
        let text = capped(text);
        if self.all.capacity() == 0 {
            self.all.reserve_exact(USUAL.max(text.len()));
        }
        let start = u32::try_from(self.all.len());
        self.all.push_str(&text);
        let end = u32::try_from(self.all.len());
        if let Some(span) = self.spans.get_mut(place) {
            *span = start.ok().zip(end.ok());
        }
    }

    /// The text in a place.
    pub(super) fn at(&self, place: usize) -> Option<&str> {
        let (start, end) = (*self.spans.get(place)?)?;
        self.all.get(start.try_into().ok()?..end.try_into().ok()?)
    }
}

impl<const N: usize> Default for Texts<N> {
    fn default() -> Self {
        Self {
            all: String::new(),
            spans: [None; N],
        }
    }
}

impl<const N: usize> fmt::Debug for Texts<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries((0..N).map(|place| self.at(place)))
            .finish()
    }
}

pub(super) fn capped(text: &str) -> Cow<'_, str> {
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
