//! Lines of a pipe, of a bounded length.

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// A line without its end, and without a byte order mark before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole one.
    Whole(Bytes),
    /// The beginning of one that is too long; the rest of it was thrown away.
    TooLong {
        /// What fits.
        beginning: Bytes,
        /// Its last bytes.
        end: Bytes,
    },
}

/// Reads lines of at most `limit` bytes.
#[derive(Debug)]
pub(super) struct Lines<R> {
    pipe: R,
    limit: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(pipe: R, limit: usize) -> Self {
        Self { pipe, limit }
    }

    /// The next line; none at the end. What can't be read is an end, too.
    pub(super) async fn next(&mut self) -> Option<Line> {
        let mut line = BytesMut::new();
        let mut end_of_line = BytesMut::new();
        let mut too_long = false;
        loop {
            let chunk = self.pipe.fill_buf().await.ok()?;
            if chunk.is_empty() {
                return (!line.is_empty()).then(|| finish(line, too_long.then_some(end_of_line)));
            }
            let end = memchr::memchr(b'\n', chunk);
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            let room = self.limit.saturating_sub(line.len());
            line.extend_from_slice(part.get(..room).unwrap_or(part));
            too_long |= part.len() > room;
            if too_long {
                keep_end(&mut end_of_line, part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.pipe.consume(used);
            if end.is_some() {
                return Some(finish(line, too_long.then_some(end_of_line)));
            }
        }
    }
}

/// How much is kept of the end of a line that is too long.
const END: usize = 256;

fn keep_end(end: &mut BytesMut, part: &[u8]) {
    let new = part.get(part.len().saturating_sub(END)..).unwrap_or(part);
    end.extend_from_slice(new);
    if end.len() > END {
        end.advance(end.len() - END);
    }
}

fn finish(mut line: BytesMut, end: Option<BytesMut>) -> Line {
    if let Some(end) = end {
        return Line::TooLong {
            beginning: line.freeze(),
            end: end.freeze(),
        };
    }
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
    // Some runtimes write one before the first thing that they write (RFC 8259 §8.1: a reader may ignore it).
    if line.starts_with(BYTE_ORDER_MARK) {
        line.advance(BYTE_ORDER_MARK.len());
    }
    Line::Whole(line.freeze())
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str, buffer: usize) -> Vec<Line> {
        let pipe = tokio::io::BufReader::with_capacity(buffer, text.as_bytes());
        let mut lines = Lines::new(pipe, 5);
        let mut all = Vec::new();
        while let Some(mut line) = lines.next().await {
            if let Line::TooLong { end, .. } = &mut line {
                let whole = "abcdefghijk".as_bytes();
                let cut = if end.ends_with(b"f") { 6 } else { 11 };
                assert!(whole[..cut].ends_with(end), "{end:?}");
                *end = Bytes::new();
            }
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_no_part_of_a_line() {
        let whole = |text: &'static str| Line::Whole(Bytes::from_static(text.as_bytes()));
        let lines = read("\u{feff}a\r\n\u{feff}\nb\u{feff}\n", 3).await;
        assert_eq!(lines, [whole("a"), whole(""), whole("b\u{feff}")]);
    }

    #[tokio::test]
    async fn lines_are_what_they_are_however_they_arrive() {
        let whole = |text: &'static str| Line::Whole(Bytes::from_static(text.as_bytes()));
        // How much of its end is seen depends on how it arrives; what counts is that it is the end.
        let too_long = |text: &'static str| Line::TooLong {
            beginning: text.into(),
            end: Bytes::new(),
        };
        for buffer in 1..12 {
            assert_eq!(
                read("ab\r\n\nabcde\nabcdef\nabcdefghijk\nx", buffer).await,
                [
                    whole("ab"),
                    whole(""),
                    whole("abcde"),
                    too_long("abcde"),
                    too_long("abcde"),
                    whole("x"),
                ],
                "{buffer}"
            );
        }
    }
}
