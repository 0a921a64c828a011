//! A connection whose client has to take what is sent to it: one that takes nothing for a minute holds
//! memory for nobody, and is closed. It changes hands between the HTTP library and those who only wait:
//! what the one has read and not used is read by the next.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::seat::Seat;

/// How long a client may take nothing while there is something to take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A socket with a limit on how long writing may stand still.
pub(super) struct Patient {
    socket: TcpStream,
    seat: Arc<Seat>,
    /// What was read before, and is read again.
    before: Bytes,
    /// Runs while a write waits.
    standstill: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(super) fn new(socket: TcpStream, seat: Arc<Seat>) -> Self {
        Self {
            socket,
            seat,
            before: Bytes::new(),
            standstill: None,
        }
    }

    /// Lets this be read before what comes: a copy of it, for it may be a small part of a large buffer.
    pub(super) fn put_before(&mut self, read: &[u8]) {
        if !read.is_empty() {
            self.before = [read, &self.before].concat().into();
        }
    }

    /// Whether there is something that was read before.
    pub(super) fn has_before(&self) -> bool {
        !self.before.is_empty()
    }

    /// Waits until something comes, or the end.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_before() {
            return Poll::Ready(Ok(()));
        }
        self.socket.poll_read_ready(cx)
    }

    /// Lets a write wait for so long and no longer.
    fn limit<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.seat.note_written();
        if written.is_ready() {
            self.standstill = None;
            return written;
        }
        let standstill = self
            .standstill
            .get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        ready!(standstill.as_mut().poll(cx));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let already = buffer.filled().len();
        if self.before.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        } else {
            let length = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before.split_to(length));
        }
        if buffer.filled().len() > already {
            self.seat.note_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.limit(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.limit(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        self.seat.note_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Patient, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let socket = listener.accept().await.unwrap().0;
        (Patient::new(socket, Arc::default()), client)
    }

    #[tokio::test]
    async fn who_takes_nothing_is_given_up() {
        let (mut server, client) = pair().await;
        tokio::time::pause();
        let error = server.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(client);
    }

    #[tokio::test]
    async fn who_reads_gets_everything() {
        let (mut server, mut client) = pair().await;
        let reading = async {
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.unwrap();
            all.len()
        };
        let writing = async move {
            server.write_all(&vec![0; 8 << 20]).await.unwrap();
            drop(server);
        };
        let (length, ()) = tokio::join!(reading, writing);
        assert_eq!(length, 8 << 20);
    }
}
