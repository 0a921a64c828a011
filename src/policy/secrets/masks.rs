//! Words in disguise, and words that people write together.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::grammar::MASKED;
use super::letters::{is_leeted, latin, unleeted};
use super::words::COMPOUNDS;

/// The words under the masks of one, if there is one that masks are worn for.
pub(super) fn unmasked(word: &str) -> Option<Vec<String>> {
    let latin = if word.is_ascii() {
        word.into()
    } else {
        Cow::from(latin(word))
    };
    let owned = |word: &str| compound(word).map(|words| words.map(str::to_owned).collect());
    owned(&latin).or_else(|| is_leeted(&latin).then(|| owned(&unleeted(&latin)))?)
}

/// Whether a word is to look like another: nobody writes one in two alphabets, except to hide it.
pub(super) fn is_masked(word: &str) -> bool {
    if word.is_ascii() {
        return false;
    }
    let latin = latin(word);
    let mixed = word.contains(|letter: char| letter.is_ascii_lowercase()) && latin.is_ascii();
    mixed || MASKED.contains(&latin.as_str())
}

/// Which of [`COMPOUNDS`] begin or end with a byte, a bit for each.
struct Ends {
    first: [u64; 256],
    last: [u64; 256],
}

const _: () = assert!(COMPOUNDS.len() <= 64, "each compound has a bit of its own");

static ENDS: LazyLock<Ends> = LazyLock::new(|| {
    let mut ends = Ends {
        first: [0; 256],
        last: [0; 256],
    };
    for (place, (joined, _)) in COMPOUNDS.iter().enumerate() {
        let mark = |table: &mut [u64; 256], letter: Option<&u8>| {
            if let Some(marks) = letter.and_then(|it| table.get_mut(usize::from(*it))) {
                *marks |= 1 << place;
            }
        };
        let letters = joined.as_bytes();
        mark(&mut ends.first, letters.first().filter(|it| **it != b'*'));
        mark(&mut ends.last, letters.last());
    }
    ends
});

/// A word that is, begins or ends with one that people write together, taken apart.
pub(super) fn compound(word: &str) -> Option<impl Iterator<Item = &str>> {
    let (first, last) = (word.bytes().next()?, word.bytes().next_back()?);
    let marks = |table: &[u64; 256], letter: u8| table.get(usize::from(letter)).copied();
    let mut left = marks(&ENDS.first, first)? | marks(&ENDS.last, last)?;
    while left != 0 {
        let (joined, apart) = COMPOUNDS.get(left.trailing_zeros() as usize)?;
        left &= left - 1;
        let rest = match joined.strip_prefix('*') {
            Some(end) => word.strip_suffix(end).map(|before| (before, "")),
            None => word
                .strip_prefix(joined)
                .map(|after| ("", after))
                .or_else(|| Some((word.strip_suffix(joined)?, ""))),
        };
        if let Some((before, after)) = rest {
            let words = apart.split(' ');
            let all = std::iter::once(before).chain(words).chain([after]);
            return Some(all.filter(|word| !word.is_empty()));
        }
    }
    None
}
