//! A text in words: identifiers taken apart, masks taken off.
//!
//! `dbPassword`, `db_password` and `DB password` are the same two words; so are `p a s s w o r d`,
//! `p4ssw0rd` and a `pаsswоrd` with two Cyrillic letters the same one.
//!
//! # Invariants
//! - The work is linear in the text.
//! - A mask is taken off only where a word of [`words::COMPOUNDS`] is under it: other words keep the
//!   letters and digits that they have.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::grammar::{self, Part};
use super::letters::{is_unspaced, latin, plain, small, unleeted};
use super::lexicon::{Excuses, Parts, meaning};
use super::words;

/// A text, ready to be searched.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// Its words.
    pub(super) words: Vec<Word>,
    /// The same without spaces, for scripts that have none; a line break where a clause ends.
    pub(super) flow: String,
}

/// One word, in small letters without accents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether a clause ends before it.
    pub(super) starts: bool,
    /// Whether that is only by a comma.
    pub(super) listed: bool,
    /// What it can be in a sentence.
    parts: Parts,
    /// What it excuses.
    excuses: Excuses,
}

impl Word {
    fn new(text: String, starts: bool) -> Self {
        let (parts, excuses) = meaning(&text);
        Self {
            text,
            starts,
            listed: false,
            parts,
            excuses,
        }
    }

    /// Whether it has this part.
    pub(super) fn is(&self, part: Part) -> bool {
        self.parts.has(part)
    }
}

/// The words under which no mask is looked for: they are themselves what masks are worn for.
static KNOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let apart = words::COMPOUNDS
        .iter()
        .flat_map(|(_, apart)| apart.split(' '));
    apart.collect()
});

/// How many single letters in a row may be one word.
const SPELLED: usize = 4;

impl Text {
    pub(super) fn read(text: &str) -> Self {
        let letters: Vec<char> = plain(text).collect();
        let mut read = Self::default();
        let mut chunk: Vec<char> = Vec::new();
        let (mut starts, mut comma) = (true, false);
        let mut before = ' ';
        for (place, &letter) in letters.iter().enumerate() {
            let next = letters.get(place + 1).copied().unwrap_or(' ');
            // Inside of a word these are letters in disguise.
            let sign = |letter: char| matches!(letter, '@' | '$');
            let inside =
                sign(letter) && !chunk.is_empty() && (next.is_alphanumeric() || sign(next));
            if letter.is_alphanumeric() || inside {
                chunk.push(letter);
                small(letter, &mut read.flow);
            } else {
                read.take(&mut chunk, &mut starts, &mut comma);
                if ends_clause(before, letter, next) {
                    comma = letter == ',' && (comma || !starts);
                    starts = true;
                    read.flow.push('\n');
                }
            }
            before = letter;
        }
        read.take(&mut chunk, &mut starts, &mut comma);
        read.join_spelled();
        read
    }

    /// What its words excuse.
    pub(super) fn excuses(&self) -> Excuses {
        let words = self.words.iter();
        words.fold(Excuses::default(), |all, word| all | word.excuses)
    }

    /// Takes a run of letters and digits apart into words.
    fn take(&mut self, chunk: &mut Vec<char>, starts: &mut bool, comma: &mut bool) {
        if chunk.is_empty() {
            return;
        }
        let pieces = pieces(chunk);
        chunk.clear();
        for text in pieces {
            let mut word = Word::new(text, std::mem::take(starts));
            word.listed = std::mem::take(comma);
            self.words.push(word);
        }
    }

    /// Makes one word of letters that stand alone, if they hide one.
    fn join_spelled(&mut self) {
        let words = std::mem::take(&mut self.words);
        let mut run: Vec<Word> = Vec::new();
        for word in words {
            let single = word.text.chars().count() == 1;
            if !single || (word.starts && !run.is_empty()) {
                self.end_run(&mut run);
            }
            if single {
                run.push(word);
            } else {
                self.words.push(word);
            }
        }
        self.end_run(&mut run);
    }

    fn end_run(&mut self, run: &mut Vec<Word>) {
        let whole: String = run.iter().map(|word| word.text.as_str()).collect();
        let hidden = if run.len() < SPELLED {
            None
        } else {
            unmasked(&whole)
        };
        let Some(hidden) = hidden else {
            self.words.append(run);
            return;
        };
        let mut starts = run.first().is_some_and(|word| word.starts);
        run.clear();
        for text in hidden {
            self.words
                .push(Word::new(text, std::mem::take(&mut starts)));
        }
    }
}

/// Whether a sign between two words ends a clause, where the letters beside it are these.
fn ends_clause(before: char, sign: char, next: char) -> bool {
    match sign {
        '.' | ',' | ':' => {
            let inside = |letter: char| letter.is_alphanumeric() && !is_unspaced(letter);
            !(inside(before) && inside(next))
        }
        '-' => before.is_whitespace() && next.is_whitespace(),
        '!' | '?' | ';' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '\n' | '–' | '—' | '•'
        | '·' | '…' | '¿' | '¡' | '。' | '、' | '「' | '」' | '・' => true,
        _ => false,
    }
}

/// The words in a run of letters and digits.
fn pieces(chunk: &[char]) -> Vec<String> {
    let mut whole = String::new();
    for letter in chunk {
        small(*letter, &mut whole);
    }
    let mut apart = Vec::new();
    for piece in split(chunk) {
        let piece = if is_masked(&piece) {
            latin(&piece)
        } else {
            piece
        };
        match compound(&piece) {
            Some(words) => apart.extend(words),
            None => apart.push(piece),
        }
    }
    let known = |words: &[String]| words.iter().any(|word| KNOWN.contains(word.as_str()));
    if known(&apart) {
        return apart;
    }
    unmasked(&whole).unwrap_or(apart)
}

/// Takes an identifier apart: at capitals, at digits, and where a script without spaces begins.
fn split(chunk: &[char]) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for (place, &letter) in chunk.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| chunk.get(place));
        let next = chunk.get(place + 1);
        let cut = before.is_some_and(|&before| {
            let capital = letter.is_uppercase()
                && (before.is_lowercase()
                    || (before.is_uppercase() && next.is_some_and(|next| next.is_lowercase())));
            capital
                || before.is_numeric() != letter.is_numeric()
                || is_unspaced(before) != is_unspaced(letter)
        });
        if cut {
            pieces.push(std::mem::take(&mut piece));
        }
        small(letter, &mut piece);
    }
    pieces.push(piece);
    pieces
}

/// The words under the masks of one, if there is one that masks are worn for.
fn unmasked(word: &str) -> Option<Vec<String>> {
    let latin = latin(word);
    compound(&latin).or_else(|| compound(&unleeted(&latin)))
}

/// Whether a word is to look like another: nobody writes one in two alphabets, except to hide it.
fn is_masked(word: &str) -> bool {
    if word.is_ascii() {
        return false;
    }
    let latin = latin(word);
    let mixed = word.contains(|letter: char| letter.is_ascii_lowercase()) && latin.is_ascii();
    mixed || grammar::MASKED.contains(&latin.as_str())
}

/// A word that is, begins or ends with one that people write together, taken apart.
fn compound(word: &str) -> Option<Vec<String>> {
    words::COMPOUNDS.iter().find_map(|(joined, apart)| {
        let (before, after) = if let Some(end) = joined.strip_prefix('*') {
            (word.strip_suffix(end)?, "")
        } else if let Some(after) = word.strip_prefix(joined) {
            ("", after)
        } else {
            (word.strip_suffix(joined)?, "")
        };
        let words = apart.split(' ');
        let all = std::iter::once(before).chain(words).chain([after]);
        Some(
            all.filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    })
}
