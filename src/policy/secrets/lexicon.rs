//! The lists of words, ready to be looked up.

use std::collections::HashMap;
use std::ops::BitOr;
use std::sync::LazyLock;

use super::Secret;
use super::grammar::{self, Part};
use super::text::{Text, Word};
use super::words::{self, Strength};

/// A phrase that names a secret.
#[derive(Debug)]
pub(super) struct Phrase {
    pub(super) what: Secret,
    pub(super) strength: Strength,
    pub(super) length: usize,
    /// The lists of words that excuse it.
    pub(super) excuses: Excuses,
    words: Vec<Pattern>,
}

/// A word, or the beginning of one.
#[derive(Debug)]
struct Pattern {
    text: String,
    open: bool,
}

/// The parts that a word has in a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts(u32);

/// Lists of words that tell that a phrase means something else: those of [`grammar::EXCUSES`], and
/// [`grammar::OTHER_CARDS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Excuses(u32);

const _: () = assert!(
    grammar::EXCUSES.len() < 32,
    "each list has a bit of its own"
);

/// The words of [`grammar::PARTS`] and of the excuses, and the beginnings of words.
#[derive(Debug, Default)]
struct Grammar {
    whole: HashMap<&'static str, (Parts, Excuses)>,
    /// By the first letter.
    open: HashMap<u8, Vec<(&'static str, Parts)>>,
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    let mut grammar = Grammar::default();
    for (part, list) in grammar::PARTS {
        let one = Parts::one(*part);
        for word in list.split_whitespace() {
            match word.strip_suffix('*') {
                Some(open) => {
                    if let Some(first) = open.bytes().next() {
                        grammar.open.entry(first).or_default().push((open, one));
                    }
                }
                None => grammar.whole.entry(word).or_default().0.0 |= one.0,
            }
        }
    }
    let known = words::COMPOUNDS
        .iter()
        .flat_map(|(_, apart)| apart.split(' '));
    for word in known {
        grammar.whole.entry(word).or_default().0.0 |= Parts::one(Part::Known).0;
    }
    let lists = grammar::EXCUSES.iter().map(|(_, list)| *list);
    for (place, list) in lists.chain([grammar::OTHER_CARDS]).enumerate() {
        for word in list.split_whitespace() {
            grammar.whole.entry(word).or_default().1.0 |= 1 << place;
        }
    }
    grammar
});

/// Questions that are answered with the thing itself.
pub(super) static QUESTIONS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let questions = grammar::QUESTIONS.split(',');
    let words = |text| Text::read(text).words.into_iter();
    questions
        .map(|text| words(text).map(|word| word.text.into_owned()).collect())
        .collect()
});

/// The phrases, the longest first, and where those are that can begin with a word.
#[derive(Debug, Default)]
struct Phrases {
    all: Vec<Phrase>,
    /// By the word with which they begin, those too that begin with a beginning of it.
    whole: HashMap<String, Vec<usize>>,
    /// By the first letter, those of which the first word has open ends.
    open: HashMap<u8, Vec<usize>>,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let mut phrases = Phrases::default();
    for (what, strength, list) in words::PHRASES {
        let list = list.split(',');
        let list = list.map(|text| Phrase::read(*what, *strength, text));
        phrases.all.extend(list);
    }
    phrases
        .all
        .sort_by_key(|phrase| std::cmp::Reverse(phrase.length));
    for (place, phrase) in phrases.all.iter().enumerate() {
        let Some(first) = phrase.words.first() else {
            continue;
        };
        if !first.open {
            let places = phrases.whole.entry(first.text.clone());
            places.or_default().push(place);
        } else if let Some(letter) = first.text.bytes().next() {
            phrases.open.entry(letter).or_default().push(place);
        }
    }
    for (word, places) in &mut phrases.whole {
        let letter = word.bytes().next();
        let open = letter.and_then(|letter| phrases.open.get(&letter));
        let begins = |place: &&usize| {
            let phrase = phrases.all.get(**place);
            let first = phrase.and_then(|phrase| phrase.words.first());
            first.is_some_and(|first| first.is(word))
        };
        places.extend(open.into_iter().flatten().filter(begins));
        places.sort_unstable();
    }
    phrases
});

/// The names in scripts without spaces by their first letter, the longest first.
static UNSPACED: LazyLock<HashMap<char, Vec<(Secret, String)>>> = LazyLock::new(|| {
    let mut names: HashMap<char, Vec<(Secret, String)>> = HashMap::new();
    for (what, list) in words::UNSPACED {
        for name in list.split(',').map(|name| Text::read_any(name).flow) {
            if let Some(first) = name.chars().next() {
                names.entry(first).or_default().push((*what, name));
            }
        }
    }
    for names in names.values_mut() {
        names.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
    }
    names
});

/// The name of a secret with which a text without spaces begins, and its length; the longest, if there
/// are several.
pub(super) fn unspaced(text: &str) -> Option<(Secret, usize)> {
    let names = UNSPACED.get(&text.chars().next()?)?;
    let (what, name) = names.iter().find(|(_, name)| text.starts_with(name))?;
    Some((*what, name.len()))
}

/// The phrase that begins with the first of these words; the longest, if there are several.
pub(super) fn phrase(words: &[Word<'_>]) -> Option<&'static Phrase> {
    let phrases = &*PHRASES;
    let first = words.first()?;
    let places = phrases.whole.get(&*first.text);
    let places = places.or_else(|| phrases.open.get(&first.text.bytes().next()?))?;
    let mut begun = places.iter().filter_map(|place| phrases.all.get(*place));
    begun.find(|phrase| phrase.begins(words))
}

impl Phrase {
    fn read(what: Secret, strength: Strength, text: &str) -> Self {
        // The same reading as that of a form, so that what is the same looks the same.
        let words: Vec<Pattern> = text
            .split_whitespace()
            .flat_map(|word| {
                let open = word.ends_with('*');
                Text::read(word).words.into_iter().map(move |word| Pattern {
                    text: word.text.into_owned(),
                    open,
                })
            })
            .collect();
        let excuses = match (what, strength) {
            (Secret::CardNumber, _) => Excuses::nth(grammar::EXCUSES.len()),
            (_, Strength::Strong) => Excuses::default(),
            _ => grammar::EXCUSES
                .iter()
                .position(|(word, _)| words.iter().any(|part| part.text == *word))
                .map_or_else(Excuses::default, Excuses::nth),
        };
        Self {
            what,
            strength,
            length: words.len(),
            excuses,
            words,
        }
    }

    fn begins(&self, words: &[Word<'_>]) -> bool {
        words.len() >= self.length
            && self
                .words
                .iter()
                .zip(words)
                .enumerate()
                .all(|(place, (pattern, word))| {
                    (place == 0 || !word.starts) && pattern.is(&word.text)
                })
    }
}

impl Pattern {
    fn is(&self, word: &str) -> bool {
        if self.open {
            word.starts_with(&self.text)
        } else {
            word == self.text
        }
    }
}

impl Parts {
    fn one(part: Part) -> Self {
        Self(1 << part as u32)
    }

    pub(super) fn has(self, part: Part) -> bool {
        self.0 & Self::one(part).0 != 0
    }
}

impl Excuses {
    fn nth(place: usize) -> Self {
        Self(1 << place)
    }

    /// Whether they have a list in common.
    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Excuses {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The parts that a word has in a sentence, and what it excuses.
pub(super) fn meaning(word: &str) -> (Parts, Excuses) {
    let (whole, excuses) = GRAMMAR.whole.get(word).copied().unwrap_or_default();
    let first = word.bytes().next();
    let open = first.and_then(|first| GRAMMAR.open.get(&first));
    let open = open.into_iter().flatten();
    let open = open.filter(|(open, _)| word.starts_with(open));
    let parts = open.fold(whole.0, |parts, (_, more)| parts | more.0);
    (Parts(parts), excuses)
}
