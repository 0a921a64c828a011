//! Writes the events of a stream to a connection that waits for nothing else. It takes the place of the
//! HTTP library, which has written the head, and whose buffers are much for somebody who only waits.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::buf::Chain;
use bytes::{Buf as _, Bytes};
use http_body::Body as _;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

use super::patient::Patient;
use super::seat::Events;

/// A stream of events and the connection that it goes to.
pub(super) struct Telling {
    socket: Patient,
    events: Events,
    /// What is being written.
    out: Chunk,
    ended: bool,
}

/// What stands before an event, the event, and what stands after it.
type Chunk = Chain<Chain<Bytes, Bytes>, Bytes>;

impl Telling {
    pub(super) fn new(socket: Patient, events: Events) -> Self {
        Self {
            socket,
            events,
            out: nothing(),
            ended: false,
        }
    }

    /// Writes the events as they come, until the last.
    ///
    /// # Errors
    /// When the client is gone, or takes nothing.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch(cx)?;
        loop {
            ready!(self.poll_write(cx))?;
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            let frame = ready!(self.events.body.as_mut().poll_frame(cx));
            let chunked = self.events.framing.chunked;
            let event = frame.and_then(|Ok(frame)| frame.into_data().ok());
            self.ended = event.is_none();
            self.out = match event {
                None if chunked => chunk(Bytes::from_static(b"0\r\n"), Bytes::new(), b"\r\n"),
                // An empty chunk would be the last.
                Some(event) if chunked && !event.is_empty() => {
                    let size = format!("{:X}\r\n", event.len());
                    chunk(size.into(), event, b"\r\n")
                }
                event => chunk(Bytes::new(), event.unwrap_or_default(), b""),
            };
        }
    }

    /// The connection after the last event; none when it has to end.
    ///
    /// # Errors
    /// When it can't be closed.
    pub(super) async fn leave(mut self) -> io::Result<Option<Patient>> {
        if !self.events.framing.last {
            return Ok(Some(self.socket));
        }
        let mut socket = Pin::new(&mut self.socket);
        std::future::poll_fn(|cx| socket.as_mut().poll_shutdown(cx)).await?;
        Ok(None)
    }

    /// Ends the connection with the stream.
    pub(super) fn is_last(&mut self) {
        self.events.framing.last = true;
    }

    /// Notices when the client is gone. What it sends is kept for later, and no more is read then.
    fn watch(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        const ROOM: usize = 512;
        if self.socket.has_before() {
            return Ok(());
        }
        let mut room = [0; ROOM];
        let mut read = ReadBuf::new(&mut room);
        match Pin::new(&mut self.socket).poll_read(cx, &mut read) {
            Poll::Pending => Ok(()),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(())) if read.filled().is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            Poll::Ready(Ok(())) => {
                self.socket.put_before(read.filled());
                Ok(())
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.out.has_remaining() {
            let mut slices = [IoSlice::new(&[]); 3];
            let count = self.out.chunks_vectored(&mut slices);
            let slices = slices.get(..count).unwrap_or_default();
            let written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, slices))?;
            if written == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            self.out.advance(written);
            if !self.out.has_remaining() {
                // A large event is not kept until the next one.
                self.out = nothing();
            }
        }
        Pin::new(&mut self.socket).poll_flush(cx)
    }
}

fn nothing() -> Chunk {
    chunk(Bytes::new(), Bytes::new(), b"")
}

fn chunk(before: Bytes, event: Bytes, after: &'static [u8]) -> Chunk {
    before.chain(event).chain(Bytes::from_static(after))
}
