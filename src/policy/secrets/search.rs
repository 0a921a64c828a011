//! Finds the names of secrets in a text, and tells whether the text asks for them.
//!
//! `API key` asks for one, `API key name` does not, and `the name of the API key` neither: what counts
//! is what the words around make of it.

use super::Secret;
use super::grammar::{Part, UNSPACED_HEADS, UNSPACED_LOST, UNSPACED_VERBS};
use super::lexicon::{Excuses, Phrase, QUESTIONS, phrase, unspaced};
use super::text::{Text, Word};
use super::words::Strength;

/// The name of a secret in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) what: Secret,
    pub(super) strength: Strength,
    pub(super) said: Said,
    /// The lists of words that excuse it.
    pub(super) excuses: Excuses,
}

/// What a text says of a secret that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is spoken of.
    About,
    /// It is asked for, if this is the name or the description of a field.
    Asked,
    /// It is asked for in so many words, whatever this is.
    Ordered,
}

/// What kind of text it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The name or the title of a field.
    Label,
    /// Sentences: what describes a field, or the message.
    Prose,
}

/// How many words of a sentence may stand before the name of a secret that it asks for without a verb.
const FAR: usize = 6;

/// How many of them, if it is not even about a field.
const NEAR: usize = 3;

/// How many words of a clause are looked at, to either side.
const WINDOW: usize = 24;

/// The names of secrets in a text, each once for what is said of it.
pub(super) fn named(text: &Text<'_>, role: Role) -> Vec<Named> {
    let mut found = Vec::new();
    let mut place = 0;
    while let Some(rest) = text.words.get(place..).filter(|rest| !rest.is_empty()) {
        let Some(phrase) = phrase(rest) else {
            place += 1;
            continue;
        };
        let said = said(&text.words, place, phrase, role);
        let counts = phrase.strength != Strength::Named || role == Role::Label;
        if counts || said == Said::Ordered {
            let named = Named {
                what: phrase.what,
                strength: phrase.strength,
                said,
                excuses: phrase.excuses,
            };
            add(&mut found, named);
        }
        place += phrase.length;
    }
    in_flow(&text.flow, role, &mut found);
    found
}

fn add(found: &mut Vec<Named>, new: Named) {
    if !found.contains(&new) {
        found.push(new);
    }
}

/// What the words around a phrase make of it.
fn said(words: &[Word<'_>], place: usize, phrase: &Phrase, role: Role) -> Said {
    let start = start_of_clause(words, place);
    let before = words.get(start..place).unwrap_or_default();
    let after = rest_of_clause(words, place + phrase.length);
    let lost = before.iter().rev().take(2).any(|word| word.is(Part::Lost));
    let example = role == Role::Prose && is_example(words.get(..start).unwrap_or_default());
    let unwanted = role == Role::Prose && is_unwanted(words, start, place, place + phrase.length);
    if lost || example || unwanted || is_about(after, phrase.strength) {
        return Said::About;
    }
    let verb = before.iter().rposition(|word| word.is(Part::Verb));
    let question = end_of_question(before);
    if question.is_none() && is_elsewhere(before, verb) {
        return Said::About;
    }
    let own = own_words(before, verb.map(|verb| verb + 1).max(question));
    if question.is_some() && is_any(own) {
        return Said::About;
    }
    let making = |word: &Word<'_>| phrase.what == Secret::Password && word.is(Part::Making);
    let breaker = own
        .iter()
        .position(|word| word.is(Part::Breaker) && !making(word));
    if let Some(breaker) = breaker {
        let head = own.get(..breaker).unwrap_or_default();
        if head.is_empty() || !head.iter().all(|word| word.is(Part::Void)) {
            return Said::About;
        }
    }
    if verb.max(question).is_some() || after.iter().any(|word| word.is(Part::Verb)) {
        return Said::Ordered;
    }
    if role == Role::Prose && before.len() > FAR {
        return Said::About;
    }
    let ends = |word: &Word<'_>| word.is(Part::Trailer) || word.is(Part::Stop);
    let alone = before.len() <= NEAR && after.first().is_none_or(ends);
    if alone && phrase.strength == Strength::Strong {
        Said::Ordered
    } else {
        Said::Asked
    }
}

/// Whether it stands in a list of what is not to be given, as in `do not give us your phone number, PIN, or
/// other secrets`. The words of it are those from `place` to `end`, in the clause that begins at `start`.
fn is_unwanted(words: &[Word<'_>], start: usize, place: usize, end: usize) -> bool {
    let and = |word: &Word<'_>| word.is(Part::And);
    let own = words.get(start..place).unwrap_or_default();
    let listed = words.get(start).is_some_and(|word| word.listed) && own.iter().all(and);
    if !listed || !(own.first().is_some_and(and) || words.get(end).is_some_and(and)) {
        return false;
    }
    let mut start = start;
    while start > 0 && words.get(start).is_some_and(|word| word.listed) {
        start = start_of_clause(words, start - 1);
    }
    let list = words.get(start..place).unwrap_or_default();
    let verb = list.iter().rposition(|word| word.is(Part::Verb));
    verb.is_some_and(|verb| {
        let ahead = list.get(..verb).unwrap_or_default();
        ahead.iter().rev().take(2).any(|word| word.is(Part::Never))
    })
}

/// Where the clause begins in which a word is.
fn start_of_clause(words: &[Word<'_>], place: usize) -> usize {
    let from = place.saturating_sub(WINDOW);
    let until = words.get(from..=place).unwrap_or_default();
    from + until.iter().rposition(|word| word.starts).unwrap_or(0)
}

/// What is left of a clause.
fn rest_of_clause<'w, 't>(words: &'w [Word<'t>], place: usize) -> &'w [Word<'t>] {
    let after = words.get(place..).unwrap_or_default();
    let end = after.iter().take(WINDOW).position(|word| word.starts);
    let end = end.unwrap_or_else(|| after.len().min(WINDOW));
    after.get(..end).unwrap_or_default()
}

/// Whether these words end with those that announce an example.
fn is_example(words: &[Word<'_>]) -> bool {
    let eg = || {
        let last = words.iter().rev().take(2).map(|word| &*word.text);
        last.clone().eq(["g", "e"]) || last.eq(["b", "z"])
    };
    words.last().is_some_and(|word| word.is(Part::Example)) || eg()
}

/// Where a question ends to which the answer is what follows.
fn end_of_question(before: &[Word<'_>]) -> Option<usize> {
    let found = |question: &Vec<String>| {
        let mut starts = before.windows(question.len().max(1));
        let same = |window: &[Word<'_>]| window.iter().zip(question).all(|(a, b)| a.text == **b);
        Some(starts.position(same)? + question.len())
    };
    QUESTIONS.iter().filter_map(found).max()
}

/// Whether any thing of the name is meant, and not one that somebody has.
fn is_any(own: &[Word<'_>]) -> bool {
    // In Portuguese the article is that of a thing which is known: `a sua senha`.
    let known = |word: &Word<'_>| matches!(&*word.text, "sua" | "tua");
    own.first().is_some_and(|word| word.is(Part::Any)) && !own.get(1).is_some_and(known)
}

/// Whether the words before the name of a secret, with the last verb at this place, ask for something
/// else, or ask not to type it.
fn is_elsewhere(before: &[Word<'_>], verb: Option<usize>) -> bool {
    let Some(verb) = verb else {
        return before.iter().any(|word| word.is(Part::Never));
    };
    let ahead = before.get(..verb).unwrap_or_default();
    let behind = before.get(verb..).unwrap_or_default();
    let mut close = ahead.iter().rev().take(2);
    // In Portuguese `no` is a preposition, where it follows the verb.
    let mut never = behind.iter().filter(|word| word.text != "no");
    ahead.iter().any(|word| word.is(Part::Why))
        || close.any(|word| word.is(Part::Never))
        || never.any(|word| word.is(Part::Never))
}

/// The words that belong to the name of a secret: after the verb or question that ends at this place,
/// and after what else is asked for.
fn own_words<'w, 't>(before: &'w [Word<'t>], asked: Option<usize>) -> &'w [Word<'t>] {
    let and = before.iter().rposition(|word| word.is(Part::And));
    let from = asked.max(and.map(|and| and + 1));
    match before.get(from.unwrap_or(0)..).unwrap_or_default() {
        // One replies with something, types it in, and has need of it.
        [lead, own @ ..] if asked.is_some() && from == asked && lead.is(Part::Lead) => own,
        own => own,
    }
}

/// Whether what follows the name of a secret is what the text is really about.
fn is_about(after: &[Word<'_>], strength: Strength) -> bool {
    for word in after {
        if word.is(Part::Head) {
            return true;
        }
        if word.is(Part::Stop) || word.is(Part::Finite) {
            return false;
        }
        let number = word.text.chars().all(char::is_numeric);
        if !number && !word.is(Part::Trailer) && !word.is(Part::Verb) {
            return strength != Strength::Strong;
        }
    }
    false
}

/// The same where words are not separated. There the head of a phrase is always its end.
fn in_flow(flow: &str, role: Role, found: &mut Vec<Named>) {
    if flow.is_ascii() {
        return;
    }
    for clause in flow.split('\n') {
        let ordered = any(UNSPACED_VERBS, |verb| clause.contains(verb));
        let mut end = 0;
        for (place, _) in clause.char_indices() {
            let Some((what, length)) = clause.get(place..).and_then(unspaced) else {
                continue;
            };
            // What is inside of a longer name is no name.
            if place < end {
                continue;
            }
            end = place + length;
            let before = clause.get(..place).unwrap_or_default();
            let after = clause.get(end..).unwrap_or_default();
            add(
                found,
                Named {
                    what,
                    strength: Strength::Strong,
                    said: said_in_flow(before, after, ordered, role),
                    excuses: Excuses::default(),
                },
            );
        }
    }
}

fn said_in_flow(before: &str, after: &str, ordered: bool, role: Role) -> Said {
    if any(UNSPACED_HEADS, |head| after.starts_with(head))
        || any(UNSPACED_LOST, |lost| before.ends_with(lost))
    {
        return Said::About;
    }
    let near = before.chars().rev().nth(2 * FAR).is_none();
    if ordered || (after.is_empty() && near) {
        Said::Ordered
    } else if role == Role::Label {
        Said::Asked
    } else {
        Said::About
    }
}

fn any(list: &str, is: impl Fn(&str) -> bool) -> bool {
    list.split_whitespace().any(is)
}
