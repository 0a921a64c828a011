//! What the server answers with: bytes that are there, events that are still to come, or nothing for ever.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    /// Of known length.
    Whole(VecDeque<Bytes>),
    /// An event stream that ends with the last of these.
    Stream(VecDeque<Bytes>),
    /// An event stream that ends when nobody writes any more.
    Open(Receiver<Bytes>),
    /// A stream on which nothing comes.
    Silent,
}

impl Body {
    pub(super) fn whole(parts: impl Into<VecDeque<Bytes>>) -> Self {
        Self::Whole(parts.into())
    }

    pub(super) fn stream(parts: impl Into<VecDeque<Bytes>>) -> Self {
        Self::Stream(parts.into())
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            Self::Whole(parts) | Self::Stream(parts) => Poll::Ready(parts.pop_front()),
            Self::Open(events) => events.poll_recv(context),
            Self::Silent => Poll::Pending,
        };
        next.map(|part| part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(parts) if parts.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(parts) => {
                let length = parts.iter().map(Bytes::len).sum::<usize>();
                SizeHint::with_exact(length as u64)
            }
            _ => SizeHint::default(),
        }
    }
}
