//! A text in words: identifiers taken apart, masks taken off.
//!
//! `dbPassword`, `db_password` and `DB password` are the same two words; so are `p a s s w o r d`,
//! `p4ssw0rd` and a `pаsswоrd` with two Cyrillic letters the same one.
//!
//! # Invariants
//! - The work is linear in the text. What is ASCII, as most of it is, is read where it stands: nothing can look
//!   like something else there but digits and signs, and no letter has an accent.
//! - A mask is taken off only where a word of [`COMPOUNDS`](super::words::COMPOUNDS) is under it: other words keep the
//!   letters and digits that they have.

use std::borrow::Cow;

use super::grammar::Part;
use super::letters::{is_leeted, is_unspaced, latin, plain, small};
use super::lexicon::{Excuses, Parts, meaning};
use super::masks::{compound, is_masked, unmasked};

/// A text, ready to be searched.
#[derive(Debug, Default)]
pub(super) struct Text<'t> {
    /// Its words.
    pub(super) words: Vec<Word<'t>>,
    /// The same without spaces, for scripts that have none; a line break where a clause ends. Empty where all is
    /// ASCII.
    pub(super) flow: String,
}

/// One word, in small letters without accents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: Cow<'t, str>,
    /// Whether a clause ends before it.
    pub(super) starts: bool,
    /// Whether that is only by a comma.
    pub(super) listed: bool,
    /// What it can be in a sentence.
    parts: Parts,
    /// What it excuses.
    excuses: Excuses,
}

impl<'t> Word<'t> {
    fn new(text: impl Into<Cow<'t, str>>, starts: bool) -> Self {
        let text = text.into();
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

/// How many single letters in a row may be one word.
const SPELLED: usize = 4;

impl<'t> Text<'t> {
    pub(super) fn read(text: &'t str) -> Self {
        if text.is_ascii() {
            Self::read_ascii(text)
        } else {
            Self::read_any(text)
        }
    }

    fn read_ascii(text: &'t str) -> Self {
        let mut read = Self::default();
        let mut chunk = None;
        let (mut starts, mut comma) = (true, false);
        let mut before = ' ';
        let mut letters = text.char_indices().peekable();
        while let Some((place, letter)) = letters.next() {
            let next = letters.peek().map_or(' ', |(_, next)| *next);
            if letter.is_ascii_alphanumeric() || is_inside(letter, chunk.is_none(), next) {
                chunk.get_or_insert(place);
            } else {
                if let Some(from) = chunk.take() {
                    let chunk = text.get(from..place).unwrap_or_default();
                    read.take_ascii(chunk, &mut starts, &mut comma);
                }
                if ends_clause(before, letter, next) {
                    comma = letter == ',' && (comma || !starts);
                    starts = true;
                }
            }
            before = letter;
        }
        if let Some(chunk) = chunk.and_then(|from| text.get(from..)) {
            read.take_ascii(chunk, &mut starts, &mut comma);
        }
        read.join_spelled();
        read
    }

    /// Reads what may be in any script.
    pub(super) fn read_any(text: &str) -> Self {
        let letters: Vec<char> = plain(text).collect();
        let mut read = Self::default();
        let mut chunk: Vec<char> = Vec::new();
        let (mut starts, mut comma) = (true, false);
        let mut before = ' ';
        for (place, &letter) in letters.iter().enumerate() {
            let next = letters.get(place + 1).copied().unwrap_or(' ');
            if letter.is_alphanumeric() || is_inside(letter, chunk.is_empty(), next) {
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

    /// The same with one that is ASCII.
    fn take_ascii(&mut self, chunk: &'t str, starts: &mut bool, comma: &mut bool) {
        let first = self.words.len();
        let mut rest = chunk;
        let mut pieces = 0;
        while !rest.is_empty() {
            let (piece, after) = rest
                .split_at_checked(first_piece(rest))
                .unwrap_or((rest, ""));
            rest = after;
            pieces += 1;
            let piece = lower(piece);
            if let Some(words) = compound(&piece) {
                let words = words.map(|word| Word::new(word.to_owned(), false));
                self.words.extend(words);
            } else {
                self.words.push(Word::new(piece, false));
            }
        }
        let known = self
            .words
            .iter()
            .skip(first)
            .any(|word| word.is(Part::Known));
        if !known
            && (pieces > 1 || is_leeted(chunk))
            && let Some(hidden) = unmasked(&lower(chunk))
        {
            self.words.truncate(first);
            let hidden = hidden.into_iter().map(|word| Word::new(word, false));
            self.words.extend(hidden);
        }
        if let Some(word) = self.words.get_mut(first) {
            word.starts = std::mem::take(starts);
            word.listed = std::mem::take(comma);
        }
    }

    /// Makes one word of letters that stand alone, if they hide one.
    fn join_spelled(&mut self) {
        let single = |word: &Word<'_>| {
            let mut letters = word.text.chars();
            letters.next().is_some() && letters.next().is_none()
        };
        let mut windows = self.words.windows(SPELLED);
        if !windows.any(|words| words.iter().all(single)) {
            return;
        }
        let words = std::mem::take(&mut self.words);
        let mut run: Vec<Word<'t>> = Vec::new();
        for word in words {
            let single = single(&word);
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

    fn end_run(&mut self, run: &mut Vec<Word<'t>>) {
        let whole: String = run.iter().map(|word| &*word.text).collect();
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

/// Whether a sign belongs to the word in which it stands, as a letter in disguise.
fn is_inside(sign: char, first: bool, next: char) -> bool {
    let is = |letter: char| matches!(letter, '@' | '$');
    is(sign) && !first && (next.is_alphanumeric() || is(next))
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
        if let Some(words) = compound(&piece) {
            apart.extend(words.map(str::to_owned));
        } else {
            apart.push(piece);
        }
    }
    // No mask is looked for over words that masks are worn for.
    let known = |word: &String| meaning(word).0.has(Part::Known);
    if apart.iter().any(known) {
        return apart;
    }
    unmasked(&whole).unwrap_or(apart)
}

/// A text that is ASCII in small letters.
fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|letter| letter.is_ascii_uppercase()) {
        text.to_ascii_lowercase().into()
    } else {
        text.into()
    }
}

/// Where the first word of an identifier that is ASCII ends: before a capital, a digit, or what is none.
fn first_piece(identifier: &str) -> usize {
    let letters = identifier.as_bytes();
    let mut pairs = letters.windows(2).enumerate();
    let cut = pairs.find(|(place, pair)| {
        let [before, letter] = pair else { return false };
        let capital = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || (before.is_ascii_uppercase()
                    && letters.get(place + 2).is_some_and(u8::is_ascii_lowercase)));
        capital || before.is_ascii_digit() != letter.is_ascii_digit()
    });
    cut.map_or(letters.len(), |(place, _)| place + 1)
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
