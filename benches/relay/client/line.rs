//! One connection, and the answers that come on it, message by message.

use std::net::SocketAddr;

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::Fallible;

/// A connection that is opened when it is first used, and again after it was closed.
#[derive(Debug)]
pub(super) struct Line {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// An answer whose head has come.
#[derive(Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Incoming,
    stream: bool,
    /// What has come of the body and is not read.
    unread: BytesMut,
}

impl Line {
    pub(super) fn to(address: SocketAddr) -> Self {
        Self {
            address,
            sender: None,
        }
    }

    /// Sends a request, once the answer before it was read to its end, and waits for the head.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Fallible<Reply> {
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        self.sender = Some(sender);
        let (head, body) = response.into_parts();
        let media = head.headers.get(CONTENT_TYPE);
        Ok(Reply {
            status: head.status.as_u16(),
            stream: media.is_some_and(|media| media.as_bytes().starts_with(b"text/event-stream")),
            headers: head.headers,
            body,
            unread: BytesMut::new(),
        })
    }

    async fn connect(&self) -> Fallible<SendRequest<Full<Bytes>>> {
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

impl Reply {
    /// The reply, if it has this status.
    pub(crate) fn is(self, status: u16) -> Fallible<Self> {
        if self.status == status {
            return Ok(self);
        }
        Err(format!("status {} instead of {status}", self.status).into())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.stream
    }

    pub(crate) fn header(&self, name: &str) -> Option<&hyper::header::HeaderValue> {
        self.headers.get(name)
    }

    /// The next message: the data of the next event that has some, or the whole JSON.
    pub(crate) async fn message(&mut self) -> Fallible<Bytes> {
        if !self.stream {
            while self.more().await? {}
            return Ok(self.unread.split().freeze());
        }
        let mut searched = 0;
        loop {
            let unread = self.unread.get(searched..).unwrap_or_default();
            if let Some(end) = memchr::memmem::find(unread, b"\n\n") {
                let event = self.unread.split_to(searched + end).freeze();
                self.unread.advance(2);
                searched = 0;
                if let Some(data) = data(&event) {
                    return Ok(data);
                }
                continue;
            }
            searched = self.unread.len().saturating_sub(1);
            if !self.more().await? {
                return Err("the stream ended before the answer".into());
            }
        }
    }

    /// Waits for the end; nothing but comments may come.
    pub(crate) async fn end(&mut self) -> Fallible<()> {
        while self.more().await? {}
        let rest = self.unread.split().freeze();
        let mut lines = rest.as_ref().split(|byte| *byte == b'\n');
        if lines.all(|line| line.is_empty() || line.starts_with(b":")) {
            return Ok(());
        }
        Err(format!("after the answer came {}", super::start(&rest)).into())
    }

    async fn more(&mut self) -> Fallible<bool> {
        let Some(frame) = self.body.frame().await else {
            return Ok(false);
        };
        if let Ok(data) = frame?.into_data() {
            self.unread.extend_from_slice(&data);
        }
        Ok(true)
    }
}

/// The data of an event, unless it has none.
fn data(event: &Bytes) -> Option<Bytes> {
    let mut lines = event.split(|byte| *byte == b'\n');
    let data = lines.find_map(|line| line.strip_prefix(b"data:"))?;
    let data = data.strip_prefix(b" ").unwrap_or(data);
    (!data.is_empty()).then(|| event.slice_ref(data))
}
