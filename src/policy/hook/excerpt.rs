//! The little that is repeated of what a hook wrote.

/// The first line that says something, without control characters and cut to a length for logs.
pub(super) fn excerpt(written: &[u8]) -> String {
    let head = written.get(..MAX_LOOKED_AT).unwrap_or(written);
    let text = String::from_utf8_lossy(head);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let letters = line.unwrap_or_default().chars().take(MAX_LETTERS);
    letters
        .map(|letter| if is_plain(letter) { letter } else { '\u{fffd}' })
        .collect()
}

/// Whether a letter moves no cursor and hides nothing.
fn is_plain(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Longest excerpt.
const MAX_LETTERS: usize = 200;
/// How much is looked through for a line.
const MAX_LOOKED_AT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_says_something_is_repeated() {
        assert_eq!(excerpt(b"\n  \n  no such file \nmore"), "no such file");
        assert_eq!(excerpt(b""), "");
    }

    #[test]
    fn an_excerpt_is_short_and_can_not_play_tricks() {
        assert_eq!(excerpt("é".repeat(9000).as_bytes()).chars().count(), 200);
        assert_eq!(
            excerpt("\u{1b}[2Jgone\u{202e}\u{7}".as_bytes()),
            "\u{fffd}[2Jgone\u{fffd}\u{fffd}"
        );
        assert_eq!(excerpt(b"\xff\xfe"), "\u{fffd}\u{fffd}");
    }
}
