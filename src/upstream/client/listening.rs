//! An event stream that mostly waits, read from the bare socket.
//!
//! There is one for each session with a server that keeps sessions, and hardly anything comes on it. hyper holds
//! some 26 KB for each connection all the while; this holds the socket.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

use super::connection::Socket;
use super::framing::{Framing, Step};

/// Bytes of the head of an answer.
const HEAD: usize = 64 * 1024;

/// Lines of a head.
const LINES: usize = 100;

/// Bytes that are received at once.
const PIECE: usize = 4096;

/// The body of an answer that may take long. It is at its end when its connection is.
#[derive(Debug)]
pub struct Listening {
    socket: Bare,
    framing: Framing,
    /// What was received and not read. Most of the time nothing, and no room for it.
    received: BytesMut,
}

/// A socket, with what TLS takes apart: few need it where a gateway has its servers beside it.
#[derive(Debug)]
enum Bare {
    Plain(TcpStream),
    Secure(Box<TokioIo<Socket>>),
}

impl Bare {
    fn of(socket: Socket) -> Self {
        match socket {
            MaybeHttpsStream::Http(plain) => Self::Plain(plain.into_inner()),
            secure @ MaybeHttpsStream::Https(_) => Self::Secure(Box::new(TokioIo::new(secure))),
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => send(socket, bytes).await,
            Self::Secure(socket) => send(&mut **socket, bytes).await,
        }
    }

    /// Appends what has come; gives how much that was, nothing at the end.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        received: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        // On the stack: as long as nothing comes, no room is kept for it.
        let mut room = [const { MaybeUninit::uninit() }; PIECE];
        let mut piece = ReadBuf::uninit(&mut room);
        ready!(match self {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, &mut piece),
            Self::Secure(socket) => Pin::new(socket).poll_read(cx, &mut piece),
        })?;
        received.extend_from_slice(piece.filled());
        Poll::Ready(Ok(piece.filled().len()))
    }
}

async fn send(socket: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    socket.write_all(bytes).await?;
    socket.flush().await
}

impl Listening {
    /// Asks for `path` on a connection that nobody else uses, and waits for the head of the answer.
    pub(super) async fn open(
        socket: Socket,
        path: &str,
        headers: &HeaderMap,
    ) -> io::Result<Response<Self>> {
        let mut socket = Bare::of(socket);
        socket.send(&head(path, headers)).await?;
        let mut received = BytesMut::new();
        let head = loop {
            if let Some(head) = parse(&mut received)? {
                break head;
            }
            let more = std::future::poll_fn(|cx| socket.poll_receive(cx, &mut received)).await?;
            if more == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        };
        let framing = Framing::of(head.status(), head.headers()).map_err(invalid)?;
        Ok(head.map(|()| Self {
            socket,
            framing,
            received,
        }))
    }
}

impl Body for Listening {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        loop {
            match this.framing.next(&mut this.received).map_err(invalid)? {
                Step::Data(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Step::End => return Poll::Ready(None),
                Step::More if this.received.is_empty() => this.received = BytesMut::new(),
                Step::More => {}
            }
            if ready!(this.socket.poll_receive(cx, &mut this.received))? == 0 {
                let whole = this.framing.may_end();
                this.framing = Framing::Done;
                return Poll::Ready((!whole).then(|| Err(ErrorKind::UnexpectedEof.into())));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.framing == Framing::Done
    }
}

/// The head of a GET request.
fn head(path: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut head = format!("GET {path} HTTP/1.1\r\n").into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The head of the answer, taken out of what was received; none as long as it is not whole.
fn parse(received: &mut BytesMut) -> io::Result<Option<Response<()>>> {
    loop {
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut parsed = httparse::Response::new(&mut lines);
        let httparse::Status::Complete(length) = parsed.parse(received).map_err(invalid)? else {
            let large = received.len() > HEAD;
            return if large {
                Err(invalid("the head of the answer is too large"))
            } else {
                Ok(None)
            };
        };
        let status = StatusCode::from_u16(parsed.code.unwrap_or_default()).map_err(invalid)?;
        let mut response = Response::new(());
        *response.status_mut() = status;
        for line in parsed.headers.iter() {
            let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(invalid)?;
            let value = HeaderValue::from_bytes(line.value).map_err(invalid)?;
            response.headers_mut().append(name, value);
        }
        let _head = received.split_to(length);
        match status.as_u16() {
            // Nobody asked for another protocol.
            101 => return Err(invalid("the server switched protocols")),
            // Others come before the answer itself (RFC 9110, section 15.2).
            100..=199 => {}
            _ => return Ok(Some(response)),
        }
    }
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}
