//! Tells the demo's conversation as it happens: who says what to whom.
//!
//! The server and the played client each tell what they send and what reaches them, so that every
//! line stands for something that really happened at that moment.
//!
//! # Invariants
//! - One line is one write: lines of several programs never mix.
//! - Text from a client or a server can't steer the terminal: control characters are replaced.
//! - Nobody waits for a reader: what can't be written is dropped.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use parking_lot::Mutex;

/// Who speaks to whom. The gateway tells nothing itself: what goes in and what comes out shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ClientToGateway,
    GatewayToServer,
    ServerToGateway,
    GatewayToClient,
}

/// Where the story is told; clones write to the same place.
#[derive(Clone)]
pub(super) struct Story(Arc<Mutex<Page>>);

struct Page {
    out: Box<dyn Write + Send>,
    colour: bool,
}

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const CYAN: &str = "\x1b[36m";
const YELLOW: &str = "\x1b[33m";
const END: &str = "\x1b[0m";

/// Where the text after the arrows starts.
const TEXT_COLUMN: usize = 34;
/// Longer text is cut: this is a story, not a log.
const LONGEST: usize = 160;

impl Story {
    /// On standard output; in colour when that is a terminal and nothing speaks against it
    /// (<https://no-color.org>).
    pub(super) fn on_stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let stdout = io::stdout();
        let colour = wanted && stdout.is_terminal();
        Self::new(Box::new(stdout), colour)
    }

    /// On any writer.
    pub(super) fn new(out: Box<dyn Write + Send>, colour: bool) -> Self {
        Self(Arc::new(Mutex::new(Page { out, colour })))
    }

    /// A chapter's title.
    pub(super) fn title(&self, text: &str) {
        self.write(|page| format!("\n{}\n\n", page.paint(BOLD, text)));
    }

    /// A sentence for the reader, or a line to copy; as it is, indented.
    pub(super) fn line(&self, text: &str) {
        self.write(|_| {
            if text.is_empty() {
                "\n".to_owned()
            } else {
                format!("  {text}\n")
            }
        });
    }

    /// Something less important.
    pub(super) fn aside(&self, text: &str) {
        self.write(|page| format!("  {}\n", page.paint(DIM, text)));
    }

    /// A message on its way. What goes up to the server and what comes back have their own colours.
    pub(super) fn message(&self, way: Way, what: impl Display) {
        let (arrow, colour) = match way {
            Way::ClientToGateway => ("client ──▶ gateway", CYAN),
            Way::GatewayToServer => ("           gateway ──▶ server", CYAN),
            Way::ServerToGateway => ("           gateway ◀── server", YELLOW),
            Way::GatewayToClient => ("client ◀── gateway", YELLOW),
        };
        let what = clean(&what.to_string());
        let arrow = format!("{arrow:<width$}", width = TEXT_COLUMN - 2);
        self.write(|page| format!("  {}{what}\n", page.paint(colour, &arrow)));
    }

    /// More about the message above.
    pub(super) fn detail(&self, what: impl Display) {
        let what = clean(&what.to_string());
        self.write(|page| format!("{:TEXT_COLUMN$}{}\n", "", page.paint(DIM, &what)));
    }

    fn write(&self, text: impl FnOnce(&Page) -> String) {
        let mut page = self.0.lock();
        let text = text(&page);
        // A reader that has gone (`contraflow demo | head`) must not end the conversation.
        page.out
            .write_all(text.as_bytes())
            .and_then(|()| page.out.flush())
            .ok();
    }
}

impl Page {
    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour {
            format!("{colour}{text}{END}")
        } else {
            text.to_owned()
        }
    }
}

/// One line of bounded length that a terminal shows as it is.
fn clean(text: &str) -> String {
    let printable = |c: char| if c.is_control() { '·' } else { c };
    let mut line: String = text.chars().take(LONGEST).map(printable).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A story that is kept, to look at.
    #[derive(Clone, Default)]
    pub(in crate::cli::demo) struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        pub(in crate::cli::demo) fn story(&self) -> Story {
            Story::new(Box::new(self.clone()), false)
        }

        pub(in crate::cli::demo) fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }
    }

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_way_is_drawn_between_its_two_programs_and_the_text_is_aligned() {
        let kept = Kept::default();
        let story = kept.story();
        for way in [
            Way::ClientToGateway,
            Way::GatewayToServer,
            Way::ServerToGateway,
            Way::GatewayToClient,
        ] {
            story.message(way, "text");
        }
        story.detail("more");
        let expected = [
            "  client ──▶ gateway              text",
            "             gateway ──▶ server   text",
            "             gateway ◀── server   text",
            "  client ◀── gateway              text",
            "                                  more",
        ];
        assert_eq!(kept.text().lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn text_from_outside_cannot_steer_the_terminal_or_flood_it() {
        let kept = Kept::default();
        kept.story()
            .detail(format_args!("\x1b[2J\n{}", "x".repeat(1000)));
        let text = kept.text();
        assert!(!text.contains('\x1b'));
        assert_eq!(text.lines().count(), 1);
        assert!(text.chars().count() < 200 && text.ends_with("…\n"));
    }

    #[test]
    fn colour_is_only_where_it_was_asked_for() {
        let kept = Kept::default();
        Story::new(Box::new(kept.clone()), true).title("Title");
        assert!(kept.text().contains(BOLD));
        let plain = Kept::default();
        plain.story().title("Title");
        assert_eq!(plain.text(), "\nTitle\n\n");
    }
}
