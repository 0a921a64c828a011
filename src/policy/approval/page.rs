//! Arguments as a person reads them: a member a line, every letter that can't be seen spelled out, and no
//! more than fits a page. One pass over the JSON text, which was parsed before; memory for the page alone.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use aws_lc_rs::digest::{Context, SHA256};

use crate::protocol::object::{quoted, text};

/// How deep arguments may be nested that a person is to read.
const DEEPEST: usize = 64;

/// Arguments as they are shown.
pub(super) struct Page {
    /// As much as fits.
    pub(super) text: String,
    /// SHA-256 of the whole: what it is headed by, and each part of it, however far apart they are written.
    pub(super) digest: [u8; 32],
    /// Bytes of the whole, as it came.
    pub(super) length: usize,
    most: usize,
    full: bool,
}

/// Why arguments can't be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotShown {
    /// Two servers could read them in two ways.
    #[error("a member is there twice")]
    Twice,
    /// Nobody could read them.
    #[error("it is nested too deep")]
    Deep,
    /// It is no JSON.
    #[error("it can't be read")]
    Unreadable,
}

/// What is open around a part.
enum Around<'a> {
    Array {
        empty: bool,
    },
    /// The names so far, and whether the next string is one.
    Object {
        names: HashSet<Cow<'a, str>>,
        at_name: bool,
    },
}

impl Page {
    /// A page of at most `most` bytes of these arguments (JSON text). `heads` go into the digest before it.
    pub(super) fn of(heads: &[&str], arguments: &str, most: usize) -> Result<Self, NotShown> {
        let mut page = Self {
            text: String::new(),
            digest: [0; 32],
            length: arguments.len(),
            most,
            full: false,
        };
        let mut digest = Context::new(&SHA256);
        for head in heads {
            digest.update(shown(head).as_bytes());
        }
        let mut around: Vec<Around<'_>> = Vec::new();
        let mut rest = arguments.trim_ascii();
        while let Some((part, after)) = split(rest)? {
            rest = after.trim_ascii_start();
            let spelled = spell(part);
            digest.update(spelled.as_bytes());
            page.put(part, &spelled, &mut around)?;
        }
        if let Some(digest) = digest.finish().as_ref().first_chunk() {
            page.digest = *digest;
        }
        Ok(page)
    }

    /// Whether something does not fit.
    pub(super) fn is_cut(&self) -> bool {
        self.full
    }

    fn put<'a>(
        &mut self,
        part: &'a str,
        spelled: &str,
        around: &mut Vec<Around<'a>>,
    ) -> Result<(), NotShown> {
        match part {
            "}" | "]" => {
                let empty = match around.pop() {
                    Some(Around::Object { names, .. }) => names.is_empty(),
                    Some(Around::Array { empty }) => empty,
                    None => return Err(NotShown::Unreadable),
                };
                if !empty {
                    self.line(around.len());
                }
                self.write(part);
            }
            "," => {
                if let Some(Around::Object { at_name, .. }) = around.last_mut() {
                    *at_name = true;
                }
                self.write(part);
                self.line(around.len());
            }
            ":" => self.write(": "),
            _ => {
                self.enter(part, around)?;
                self.write(spelled);
                if around.len() >= DEEPEST {
                    return Err(NotShown::Deep);
                }
                match part {
                    "{" => around.push(Around::Object {
                        names: HashSet::new(),
                        at_name: true,
                    }),
                    "[" => around.push(Around::Array { empty: true }),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// A name or a value comes.
    fn enter<'a>(&mut self, part: &'a str, around: &mut [Around<'a>]) -> Result<(), NotShown> {
        let depth = around.len();
        let is_first = match around.last_mut() {
            Some(Around::Array { empty }) => std::mem::take(empty),
            Some(Around::Object { names, at_name }) if *at_name => {
                *at_name = false;
                let is_first = names.is_empty();
                // A name that has no text is compared as it is spelled.
                if !names.insert(text(part).unwrap_or(Cow::Borrowed(part))) {
                    return Err(NotShown::Twice);
                }
                is_first
            }
            _ => false,
        };
        if is_first {
            self.line(depth);
        }
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        self.write("\n");
        for _ in 0..depth {
            self.write("  ");
        }
    }

    fn write(&mut self, text: &str) {
        let room = self.most.saturating_sub(self.text.len());
        if self.full {
            return;
        }
        self.full = text.len() > room;
        let fitting = text.get(..text.floor_char_boundary(room));
        self.text.push_str(fitting.unwrap_or_default());
    }
}

/// The first part of a JSON text, and what comes after: a mark, a string, or a word.
fn split(text: &str) -> Result<Option<(&str, &str)>, NotShown> {
    let end = match text.bytes().next() {
        None => return Ok(None),
        Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => 1,
        Some(b'"') => string(text).ok_or(NotShown::Unreadable)?,
        Some(_) => {
            let ends = |byte: u8| byte.is_ascii_whitespace() || b"{}[],:\"".contains(&byte);
            text.bytes().position(ends).unwrap_or(text.len())
        }
    };
    text.split_at_checked(end)
        .map(Some)
        .ok_or(NotShown::Unreadable)
}

/// Where the string ends that a text begins with.
fn string(text: &str) -> Option<usize> {
    let mut escaped = false;
    let ends = |(_, byte): &(usize, u8)| {
        let quote = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        quote
    };
    let (at, _) = text.bytes().enumerate().skip(1).find(ends)?;
    Some(at + 1)
}

/// A part as it is written: a string in one spelling, everything else as it is.
fn spell(part: &str) -> Cow<'_, str> {
    if !part.starts_with('"') {
        return visible(part);
    }
    match text(part) {
        Some(text) => Cow::Owned(shown(&text)),
        // Half of a pair, which is no text, but JSON.
        None => visible(part),
    }
}

/// A text as JSON in which every letter can be seen.
pub(super) fn shown(text: &str) -> String {
    visible(&quoted(text)).into_owned()
}

/// A shown text, cut to so many bytes.
pub(super) fn within(shown: &str, most: usize) -> String {
    if shown.len() <= most {
        return shown.to_owned();
    }
    let cut = shown.get(..shown.floor_char_boundary(most));
    format!("{}…", cut.unwrap_or_default())
}

/// Spells out the letters that can't be seen, or change what is seen of others.
fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_plain(letter) {
            all.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _infallible = write!(all, "\\u{unit:04x}");
        }
    }
    Cow::Owned(all)
}

/// Whether a letter moves no cursor and hides nothing: no control character, no direction mark, nothing
/// that takes no room or is an empty one (Unicode 16, `Default_Ignorable_Code_Point` and `Cc`, `Zl`, `Zp`).
pub(super) fn is_plain(letter: char) -> bool {
    !letter.is_control()
        && !matches!(
            letter,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}
