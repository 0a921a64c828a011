//! The lists of words, ready to be looked up.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::Secret;
use super::grammar;
use super::text::{Text, Word};
use super::words::{self, Strength};

/// A phrase that names a secret.
#[derive(Debug)]
pub(super) struct Phrase {
    pub(super) what: Secret,
    pub(super) strength: Strength,
    pub(super) length: usize,
    /// What excuses it, if something can.
    pub(super) excuses: Option<Set>,
    words: Vec<Pattern>,
}

/// A word, or the beginning of one.
#[derive(Debug)]
struct Pattern {
    text: String,
    open: bool,
}

/// A list of words.
#[derive(Debug, Default)]
pub(super) struct Set {
    whole: HashSet<&'static str>,
    open: Vec<&'static str>,
}

/// The lists of [`grammar`].
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) heads: Set,
    pub(super) trailers: Set,
    pub(super) stops: Set,
    pub(super) finite: Set,
    pub(super) lost: Set,
    pub(super) breakers: Set,
    pub(super) void: Set,
    pub(super) and: Set,
    pub(super) verbs: Set,
    pub(super) never: Set,
    pub(super) ordinary: Set,
    pub(super) making: Set,
    pub(super) examples: Set,
    pub(super) any: Set,
    pub(super) leads: Set,
    pub(super) why: Set,
    pub(super) questions: Vec<Vec<Word>>,
    pub(super) bare: Vec<(&'static [Secret], Set)>,
}

pub(super) static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| Grammar {
    heads: Set::read(grammar::HEADS),
    trailers: Set::read(grammar::TRAILERS),
    stops: Set::read(grammar::STOPS),
    finite: Set::read(grammar::FINITE),
    lost: Set::read(grammar::LOST),
    breakers: Set::read(grammar::BREAKERS),
    void: Set::read(grammar::VOID),
    and: Set::read(grammar::AND),
    verbs: Set::read(grammar::VERBS),
    never: Set::read(grammar::NEVER),
    ordinary: Set::read(grammar::ORDINARY),
    making: Set::read(grammar::MAKING),
    examples: Set::read(grammar::EXAMPLES),
    any: Set::read(grammar::ANY),
    leads: Set::read(grammar::LEADS),
    why: Set::read(grammar::WHY),
    questions: grammar::QUESTIONS
        .split(',')
        .map(|text| Text::read(text).words)
        .collect(),
    bare: grammar::BARE
        .iter()
        .map(|(secrets, list)| (*secrets, Set::read(list)))
        .collect(),
});

/// The phrases by the first letter of their first word, the longest first.
static PHRASES: LazyLock<HashMap<char, Vec<Phrase>>> = LazyLock::new(|| {
    let mut phrases: HashMap<char, Vec<Phrase>> = HashMap::new();
    for (what, strength, list) in words::PHRASES {
        for text in list.split(',') {
            let phrase = Phrase::read(*what, *strength, text);
            let first = phrase
                .words
                .first()
                .and_then(|word| word.text.chars().next());
            if let Some(first) = first {
                phrases.entry(first).or_default().push(phrase);
            }
        }
    }
    for phrases in phrases.values_mut() {
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.length));
    }
    phrases
});

/// The names in scripts without spaces by their first letter, the longest first.
static UNSPACED: LazyLock<HashMap<char, Vec<(Secret, &str)>>> = LazyLock::new(|| {
    let mut names: HashMap<char, Vec<(Secret, &str)>> = HashMap::new();
    for (what, list) in words::UNSPACED {
        for name in list.split(',').map(str::trim) {
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

/// The name of a secret with which a text without spaces begins; the longest, if there are several.
pub(super) fn unspaced(text: &str) -> Option<(Secret, &'static str)> {
    let names = UNSPACED.get(&text.chars().next()?)?;
    names
        .iter()
        .find(|(_, name)| text.starts_with(name))
        .copied()
}

/// The phrase that begins with the first of these words; the longest, if there are several.
pub(super) fn phrase(words: &[Word]) -> Option<&'static Phrase> {
    let first = words.first()?.text.chars().next()?;
    PHRASES
        .get(&first)?
        .iter()
        .find(|phrase| phrase.begins(words))
}

impl Phrase {
    fn read(what: Secret, strength: Strength, text: &str) -> Self {
        // The same reading as that of a form, so that what is the same looks the same.
        let words: Vec<Pattern> = text
            .split_whitespace()
            .flat_map(|word| {
                let open = word.ends_with('*');
                Text::read(word).words.into_iter().map(move |word| Pattern {
                    text: word.text,
                    open,
                })
            })
            .collect();
        let excuses = match (what, strength) {
            (Secret::CardNumber, _) => Some(Set::read(grammar::OTHER_CARDS)),
            (_, Strength::Strong) => None,
            _ => grammar::EXCUSES
                .iter()
                .find(|(word, _)| words.iter().any(|part| part.text == *word))
                .map(|(_, list)| Set::read(list)),
        };
        Self {
            what,
            strength,
            length: words.len(),
            excuses,
            words,
        }
    }

    fn begins(&self, words: &[Word]) -> bool {
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

impl Set {
    fn read(list: &'static str) -> Self {
        let mut set = Self::default();
        for word in list.split_whitespace() {
            match word.strip_suffix('*') {
                Some(open) => set.open.push(open),
                None => {
                    set.whole.insert(word);
                }
            }
        }
        set
    }

    pub(super) fn has(&self, word: &Word) -> bool {
        self.whole.contains(word.text.as_str())
            || self.open.iter().any(|open| word.text.starts_with(open))
    }

    /// Whether a text has one of the whole words.
    pub(super) fn meets(&self, text: &Text) -> bool {
        self.whole
            .iter()
            .any(|word| text.vocabulary.contains(*word))
    }
}
