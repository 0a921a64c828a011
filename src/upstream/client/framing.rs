//! Where the body of an HTTP/1.1 answer ends (RFC 9112, sections 6.3 and 7.1). Pure: bytes in, bytes out.
//!
//! # Invariants
//! - Any split of the same bytes gives the same body.
//! - What could be read in two ways is an error: differing lengths, a chunk whose size is none, data that
//!   does not end where it should.

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

/// Bytes of the line with the size of a chunk, extensions included.
const LINE: usize = 4096;

/// Bytes of what may follow the last chunk.
const TRAILERS: usize = 16 * 1024;

/// How a body is framed, and how far it has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Nothing more comes.
    Done,
    /// So many bytes more.
    Length(u64),
    /// All until the connection is closed.
    Rest,
    /// The line with the size of a chunk.
    Size,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line break after a chunk.
    Break,
    /// Lines after the last chunk, of which there were so many bytes.
    Trailers(usize),
}

/// What comes next of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Data(Bytes),
    /// More has to be received first.
    More,
    End,
}

/// The frame of a body can't be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("where the body of the answer ends can't be told")]
pub(super) struct Malformed;

impl Framing {
    /// That of an answer to a GET or POST with this head.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Result<Self, Malformed> {
        if status.is_informational() || matches!(status.as_u16(), 204 | 304) {
            return Ok(Self::Done);
        }
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        if let Some(last) = codings.next_back() {
            let last = last.as_bytes().rsplit(|byte| *byte == b',').next();
            let last = last.unwrap_or_default().trim_ascii();
            let chunked = last.eq_ignore_ascii_case(b"chunked");
            return Ok(if chunked { Self::Size } else { Self::Rest });
        }
        let lengths = headers.get_all(CONTENT_LENGTH).iter();
        let mut lengths = lengths.flat_map(|it| it.as_bytes().split(|byte| *byte == b','));
        let Some(first) = lengths.next() else {
            return Ok(Self::Rest);
        };
        let first = number(first.trim_ascii(), 10)?;
        for other in lengths {
            if number(other.trim_ascii(), 10)? != first {
                return Err(Malformed);
            }
        }
        Ok(if first == 0 {
            Self::Done
        } else {
            Self::Length(first)
        })
    }

    /// Whether the body is whole when the connection is closed now.
    pub(super) fn may_end(self) -> bool {
        matches!(self, Self::Done | Self::Rest)
    }

    /// Takes what comes next out of what was received.
    pub(super) fn next(&mut self, received: &mut BytesMut) -> Result<Step, Malformed> {
        loop {
            match self {
                Self::Done => return Ok(Step::End),
                _ if received.is_empty() => return Ok(Step::More),
                Self::Rest => return Ok(Step::Data(received.split().freeze())),
                Self::Length(left) => {
                    let data = up_to(received, left);
                    if *left == 0 {
                        *self = Self::Done;
                    }
                    return Ok(Step::Data(data));
                }
                Self::Chunk(left) => {
                    let data = up_to(received, left);
                    if *left == 0 {
                        *self = Self::Break;
                    }
                    return Ok(Step::Data(data));
                }
                Self::Size => {
                    let Some(line) = line(received, LINE)? else {
                        return Ok(Step::More);
                    };
                    let size = line.as_ref().split(|byte: &u8| *byte == b';').next();
                    *self = match number(size.unwrap_or_default().trim_ascii(), 16)? {
                        0 => Self::Trailers(0),
                        size => Self::Chunk(size),
                    };
                }
                Self::Break => match line(received, 2)? {
                    None => return Ok(Step::More),
                    Some(line) if line.is_empty() => *self = Self::Size,
                    Some(_) => return Err(Malformed),
                },
                Self::Trailers(before) => match line(received, TRAILERS.saturating_sub(*before))? {
                    None => return Ok(Step::More),
                    Some(line) if line.is_empty() => *self = Self::Done,
                    Some(line) => *before += line.len() + 2,
                },
            }
        }
    }
}

/// At most `left` bytes; `left` is what is left then.
fn up_to(received: &mut BytesMut, left: &mut u64) -> Bytes {
    let count = usize::try_from(*left)
        .unwrap_or(usize::MAX)
        .min(received.len());
    *left -= count as u64;
    received.split_to(count).freeze()
}

/// A line without its CR LF, which it must end with; none as long as it is not whole.
fn line(received: &mut BytesMut, most: usize) -> Result<Option<BytesMut>, Malformed> {
    let Some(end) = memchr::memchr(b'\n', received) else {
        return if received.len() > most {
            Err(Malformed)
        } else {
            Ok(None)
        };
    };
    let mut line = received.split_to(end + 1);
    if end > most || !line.ends_with(b"\r\n") {
        return Err(Malformed);
    }
    line.truncate(end - 1);
    Ok(Some(line))
}

/// A number of digits alone: no sign, no space, not nothing.
fn number(digits: &[u8], radix: u32) -> Result<u64, Malformed> {
    let text = std::str::from_utf8(digits).map_err(|_| Malformed)?;
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Malformed);
    }
    u64::from_str_radix(text, radix).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                http::HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )
        };
        // Several lines of one name stay several.
        let mut headers = HeaderMap::new();
        for (name, value) in lines.iter().map(pair) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn the_head_tells_how_the_body_is_framed() {
        type Lines = &'static [(&'static str, &'static str)];
        let table: [(u16, Lines, Result<Framing, Malformed>); 14] = [
            (200, &[], Ok(Framing::Rest)),
            (200, &[("content-length", "3")], Ok(Framing::Length(3))),
            (200, &[("content-length", "0")], Ok(Framing::Done)),
            (204, &[("content-length", "3")], Ok(Framing::Done)),
            (304, &[("transfer-encoding", "chunked")], Ok(Framing::Done)),
            (200, &[("content-length", "3, 3")], Ok(Framing::Length(3))),
            (
                200,
                &[("content-length", "3"), ("content-length", "4")],
                Err(Malformed),
            ),
            (200, &[("content-length", "+3")], Err(Malformed)),
            (200, &[("content-length", "")], Err(Malformed)),
            (
                200,
                &[("content-length", "99999999999999999999")],
                Err(Malformed),
            ),
            (200, &[("transfer-encoding", "chunked")], Ok(Framing::Size)),
            (
                200,
                &[("transfer-encoding", "gzip, Chunked")],
                Ok(Framing::Size),
            ),
            (200, &[("transfer-encoding", "gzip")], Ok(Framing::Rest)),
            // RFC 9112, section 6.3: the coding counts.
            (
                200,
                &[("transfer-encoding", "chunked"), ("content-length", "3")],
                Ok(Framing::Size),
            ),
        ];
        for (status, lines, expected) in table {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Framing::of(status, &headers(lines)), expected, "{lines:?}");
        }
    }

    /// The body that comes out of these pieces, and whether it may end there.
    fn body(mut framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, bool), Malformed> {
        let (mut received, mut body) = (BytesMut::new(), Vec::new());
        for piece in pieces {
            received.extend_from_slice(piece);
            while let Step::Data(data) = framing.next(&mut received)? {
                body.extend_from_slice(&data);
            }
        }
        Ok((body, framing.may_end()))
    }

    #[test]
    fn a_body_ends_where_its_frame_says() {
        let whole: [(Framing, &[u8], &[u8]); 5] = [
            (Framing::Length(2), b"{}", b"{}"),
            (Framing::Rest, b"abc", b"abc"),
            (Framing::Size, b"2\r\n{}\r\n0\r\n\r\n", b"{}"),
            (
                Framing::Size,
                b"00a;x=\"y\"\r\n0123456789\r\n1\r\n!\r\n0\r\na: b\r\n\r\n",
                b"0123456789!",
            ),
            (Framing::Size, b"0\r\n\r\n", b""),
        ];
        for (framing, bytes, expected) in whole {
            assert_eq!(body(framing, &[bytes]), Ok((expected.to_vec(), true)));
        }
        let cut: [(Framing, &[u8]); 5] = [
            (Framing::Length(3), b"{}"),
            (Framing::Size, b""),
            (Framing::Size, b"2\r\n{"),
            (Framing::Size, b"2\r\n{}\r\n"),
            (Framing::Size, b"2\r\n{}\r\n0\r\n"),
        ];
        for (framing, bytes) in cut {
            let (_, whole) = body(framing, &[bytes]).unwrap();
            assert!(!whole, "{bytes:?}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let long = [b'a'; LINE + 2];
        let trailers = [b"0\r\n".to_vec(), vec![b'a'; TRAILERS + 2]].concat();
        let bad: [&[u8]; 11] = [
            b"\r\n",
            b"2\n{}",
            b"x\r\n",
            b"-1\r\n",
            b"+1\r\n",
            b"0x1\r\n",
            b"1 1\r\n",
            b"11111111111111111\r\n",
            b"2\r\n{}!\r\n",
            &long,
            &trailers,
        ];
        for bytes in bad {
            assert_eq!(body(Framing::Size, &[bytes]), Err(Malformed), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_body(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
            prop_assert_eq!(body(Framing::Size, &pieces), Ok((chunks.concat(), true)));
        }
    }
}
