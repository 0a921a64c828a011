//! Event streams (WHATWG HTML, "Server-sent events"): a push decoder and an encoder.
//!
//! # Invariants
//! - Any split of the same bytes into chunks gives the same events. CR, LF and CRLF end a line, also
//!   when the pair is cut in two.
//! - A line and an event are bounded; what is larger is an error, not memory.
//! - Lines are looked at where they are; of each event only the values are taken. One-line data, which is all
//!   that anybody sends, is copied at most once, and is a slice of what was received where it is large.

use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its `data`; empty for an event that only carries an id or a retry time.
    pub data: Bytes,
    /// Its `event` name; none means `message`.
    pub name: Option<Bytes>,
    /// Its `id`, when it set one.
    pub id: Option<Bytes>,
    /// Its `retry`, in milliseconds.
    pub retry: Option<u64>,
}

/// The stream has a line or an event larger than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {0} bytes")]
pub struct TooLarge(pub usize);

/// Turns chunks into events.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    /// How far the buffer was searched for the end of a line.
    searched: usize,
    /// The last line ended with CR, so a LF that follows belongs to it.
    after_cr: bool,
    started: bool,
    event: Event,
    /// The data of the event so far; none before its first `data` field.
    data: Option<Data>,
    limit: usize,
}

impl Decoder {
    /// A decoder whose events have at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            after_cr: false,
            started: false,
            event: Event::default(),
            data: None,
            limit,
        }
    }

    /// Takes what was received next.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next complete event, if there is one. An event without data is returned too when it
    /// set an id or a retry time: who resumes a stream needs them.
    ///
    /// # Errors
    /// When a line or an event outgrows the limit. The stream can't be read on.
    pub fn next_event(&mut self) -> Result<Option<Event>, TooLarge> {
        while let Some(end) = self.line()? {
            self.after_cr = self.buffer.get(end) == Some(&b'\r');
            if end > 0 {
                self.field(end)?;
                continue;
            }
            self.buffer.advance(1);
            let mut event = std::mem::take(&mut self.event);
            let data = self.data.take();
            if data.is_some() || event.id.is_some() || event.retry.is_some() {
                event.data = data.map(Data::whole).unwrap_or_default();
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Where the first line of the buffer ends, if it does.
    fn line(&mut self) -> Result<Option<usize>, TooLarge> {
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer.starts_with(b"\n") {
                self.buffer.advance(1);
            }
        }
        if !self.started && self.buffer.len() >= 3 {
            self.started = true;
            if self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.advance(3);
            }
        }
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(end) = memchr::memchr2(b'\n', b'\r', unsearched) else {
            self.searched = self.buffer.len();
            return if self.buffer.len() > self.limit {
                Err(TooLarge(self.limit))
            } else {
                Ok(None)
            };
        };
        let end = self.searched + end;
        if end > self.limit {
            return Err(TooLarge(self.limit));
        }
        self.started = true;
        self.searched = 0;
        Ok(Some(end))
    }

    /// Reads the field that is the first line of the buffer, and takes the line out.
    fn field(&mut self, end: usize) -> Result<(), TooLarge> {
        let line = self.buffer.get(..end).unwrap_or_default();
        let colon = memchr::memchr(b':', line).unwrap_or(end);
        let (name, rest) = line.split_at(colon);
        let value = rest.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let from = end - value.len();
        match name {
            b"data" => {
                let value = self.value(from, end);
                return self.append(value);
            }
            // What nearly all events are called.
            b"event" if value == MESSAGE => self.event.name = Some(Bytes::from_static(MESSAGE)),
            b"event" => {
                self.event.name = Some(self.value(from, end));
                return Ok(());
            }
            b"id" if !value.contains(&0) => {
                self.event.id = Some(self.value(from, end));
                return Ok(());
            }
            b"retry" => {
                let retry = std::str::from_utf8(value).ok();
                if let Some(retry) = retry.and_then(|it| it.parse().ok()) {
                    self.event.retry = Some(retry);
                }
            }
            _ => {}
        }
        self.buffer.advance(end + 1);
        Ok(())
    }

    /// Takes the first line out of the buffer; gives what is in it from a place on.
    fn value(&mut self, from: usize, end: usize) -> Bytes {
        // A slice keeps all of the buffer that it was cut from, which may be much larger.
        if end - from > SMALL {
            return self.buffer.split_to(end + 1).freeze().slice(from..end);
        }
        let value = self.buffer.get(from..end).unwrap_or_default();
        let value = Bytes::copy_from_slice(value);
        self.buffer.advance(end + 1);
        value
    }

    /// One more line of data.
    fn append(&mut self, line: Bytes) -> Result<(), TooLarge> {
        self.data = Some(match self.data.take() {
            None => Data::Line(line),
            Some(data) => {
                let mut lines = match data {
                    Data::Line(first) => BytesMut::from(&*first),
                    Data::Lines(lines) => lines,
                };
                if lines.len() + line.len() > self.limit {
                    return Err(TooLarge(self.limit));
                }
                lines.put_u8(b'\n');
                lines.put_slice(&line);
                Data::Lines(lines)
            }
        });
        Ok(())
    }
}

/// Bytes of data that are copied out of the buffer instead of keeping it alive.
const SMALL: usize = 64 * 1024;

/// The name of an event that has none.
const MESSAGE: &[u8] = b"message";

/// The data of an event that is not complete.
#[derive(Debug)]
enum Data {
    /// One line.
    Line(Bytes),
    /// Several, put together.
    Lines(BytesMut),
}

impl Data {
    fn whole(self) -> Bytes {
        match self {
            Self::Line(line) => line,
            Self::Lines(lines) => lines.freeze(),
        }
    }
}

/// A keep-alive comment: no event, and nothing that a client sees.
pub const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// One event with this data, and an id where it has one. Data of several lines becomes several `data`
/// fields, so that nothing inside it can end the event or start another field. The id must be of one line.
pub fn encode(id: Option<&str>, data: &[u8]) -> Bytes {
    const LEAD: &[u8] = b"event: message\n";
    const DATA: &[u8] = b"data: ";
    let size = id.map_or(0, |id| id.len() + 5);
    let mut bytes = BytesMut::with_capacity(LEAD.len() + size + DATA.len() + data.len() + 2);
    bytes.put_slice(LEAD);
    if let Some(id) = id {
        bytes.put_slice(b"id: ");
        bytes.put_slice(id.as_bytes());
        bytes.put_slice(b"\n");
    }
    bytes.put_slice(DATA);
    let mut rest = data;
    while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
        let (line, after) = rest.split_at(end);
        bytes.put_slice(line);
        bytes.put_slice(b"\ndata: ");
        let pair = after.starts_with(b"\r\n");
        rest = after.get(if pair { 2 } else { 1 }..).unwrap_or_default();
    }
    bytes.put_slice(rest);
    bytes.put_slice(b"\n\n");
    bytes.freeze()
}

/// An event that says nothing but with what id to come back, and after how long (2025-11-25
/// basic/transports, "Sending Messages to the Server", item 6).
pub fn priming(id: &str, retry: Duration) -> Bytes {
    format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()).into()
}

/// The event that an HTTP+SSE session begins with: where the client is to post (2024-11-05
/// basic/transports, "HTTP with SSE"). The address must be of one line.
pub fn endpoint(address: &str) -> Bytes {
    format!("event: endpoint\ndata: {address}\n\n").into()
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use proptest::prelude::*;

    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<Event> {
        let mut decoder = Decoder::new(1 << 20);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk);
            while let Some(event) = decoder.next_event().unwrap() {
                events.push(event);
            }
        }
        events
    }

    fn data(chunks: &[&[u8]]) -> Vec<String> {
        decode(chunks)
            .into_iter()
            .map(|it| String::from_utf8_lossy(&it.data).into_owned())
            .collect()
    }

    #[test]
    fn every_line_ending_ends_a_line() {
        for text in [
            "data: a\n\ndata: b\n\n",
            "data: a\r\rdata: b\r\r",
            "data: a\r\n\r\ndata: b\r\n\r\n",
        ] {
            assert_eq!(data(&[text.as_bytes()]), ["a", "b"], "{text:?}");
        }
        assert_eq!(
            data(&[b"data: a\r", b"\n\r", b"\ndata: b\r\n", b"\r\n"]),
            ["a", "b"]
        );
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        let text = "\u{feff}: comment\nid: 7\nevent: e\nretry: 250\nretry: x\ndata:1\ndata:  2\nfoo: bar\ndata\n\n";
        let events = decode(&[text.as_bytes()]);
        assert_eq!(events.len(), 1);
        let event = &events[0];
        assert_eq!(event.data, "1\n 2\n");
        assert_eq!(event.id.as_deref(), Some(&b"7"[..]));
        assert_eq!(event.name.as_deref(), Some(&b"e"[..]));
        assert_eq!(event.retry, Some(250));
    }

    #[test]
    fn an_event_without_data_still_tells_its_id() {
        let events = decode(&[b"id: 0\nretry: 3000\ndata:\n\nevent: only-a-name\n\n"]);
        assert_eq!(events.len(), 1);
        assert!(events[0].data.is_empty());
        assert_eq!(events[0].id.as_deref(), Some(&b"0"[..]));
    }

    #[test]
    fn what_is_incomplete_is_no_event() {
        assert!(decode(&[b"data: a\n"]).is_empty());
        assert!(decode(&[b"data: a"]).is_empty());
    }

    #[test]
    fn a_line_and_an_event_are_bounded() {
        let mut decoder = Decoder::new(100);
        decoder.push(&[b'x'; 101]);
        assert_eq!(decoder.next_event(), Err(TooLarge(100)));
        let mut decoder = Decoder::new(100);
        for _ in 0..30 {
            decoder.push(b"data: 1234567\n");
        }
        assert_eq!(decoder.next_event(), Err(TooLarge(100)));
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_however_it_arrives() {
        let long = format!("data: {}\n\n", "x".repeat(100));
        let mut whole = Decoder::new(100);
        whole.push(long.as_bytes());
        assert_eq!(whole.next_event(), Err(TooLarge(100)));
        let mut pieces = Decoder::new(100);
        for piece in long.as_bytes().chunks(7) {
            pieces.push(piece);
        }
        assert_eq!(pieces.next_event(), Err(TooLarge(100)));
    }

    #[test]
    fn what_is_encoded_can_not_break_out() {
        let hostile = "{\n\"a\": 1,\r\n\r\"b\":\r2}\n\nid: 9\nevent: x";
        let events = decode(&[&encode(None, hostile.as_bytes())]);
        assert_eq!(events.len(), 1);
        assert_eq!(
            events[0].data,
            hostile.replace("\r\n", "\n").replace('\r', "\n")
        );
        assert_eq!(events[0].id, None);
    }

    #[test]
    fn an_event_carries_its_id_and_a_stream_begins_with_one() {
        let events = decode(&[
            &priming("s-c1-0", Duration::from_secs(2)),
            &encode(Some("s-c1-1"), b"{}"),
        ]);
        let ids: Vec<_> = events.iter().map(|it| it.id.as_deref().unwrap()).collect();
        assert_eq!(ids, [b"s-c1-0", b"s-c1-1"]);
        assert_eq!(events[0].retry, Some(2000));
        assert!(events[0].data.is_empty());
        assert_eq!(events[1].data, "{}");
    }

    proptest! {
        /// Any bytes, cut anywhere: the same events, and the same as an independent reader's.
        #[test]
        fn chunks_do_not_matter(lines in proptest::collection::vec(
            prop_oneof!["data: ?[a-z:]{0,5}", "id: [0-9]{1,3}", "event: [a-z]{1,4}", ": [a-z]{0,4}", "[a-z]{1,3}", ""], 0..30),
            ends in proptest::collection::vec(prop_oneof![Just("\n"), Just("\r"), Just("\r\n")], 30),
            cuts in proptest::collection::vec(1usize..7, 1..60),
        ) {
            let text: String = lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_str(), end]).collect();
            let whole = decode(&[text.as_bytes()]);
            let mut rest = text.as_bytes();
            let mut chunks = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (chunk, after) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            prop_assert_eq!(&decode(&chunks), &whole);

            let body = http_body_util::Full::new(Bytes::from(text));
            let theirs = futures_util::FutureExt::now_or_never(
                sse_stream::SseStream::new(body).map(|event| event.unwrap().data).collect::<Vec<_>>(),
            ).unwrap();
            let ours: Vec<_> = whole.iter().filter(|it| !it.data.is_empty())
                .map(|it| String::from_utf8_lossy(&it.data).into_owned()).collect();
            let theirs: Vec<_> = theirs.into_iter().flatten().filter(|it| !it.is_empty()).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
