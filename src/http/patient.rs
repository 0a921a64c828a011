//! A connection whose client has to take what is sent to it: one that takes nothing for a minute holds
//! memory for nobody, and is closed.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// How long a client may take nothing while there is something to take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A socket with a limit on how long writing may stand still.
#[derive(Debug)]
pub(super) struct Patient {
    socket: TcpStream,
    /// Runs while a write waits.
    standstill: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            standstill: None,
        }
    }

    /// Lets a write wait for so long and no longer.
    fn limit<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
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
        Pin::new(&mut self.socket).poll_read(cx, buffer)
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
        Pin::new(&mut self.socket).poll_flush(cx)
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
        (Patient::new(listener.accept().await.unwrap().0), client)
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
