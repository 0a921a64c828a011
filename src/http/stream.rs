//! The body of an event stream: what the relay puts into it, and a comment when there is nothing, so
//! that no proxy on the way takes a thinking person for a dead connection.
//!
//! Its end is the client's: dropped by the server when the connection is gone, it closes the pipe,
//! and whoever writes next learns of it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};

use crate::protocol::sse::{self, COMMENT};
use crate::relay::{Event, EventPipe};

pin_project! {
    /// An event stream on its way to a client.
    pub(super) struct EventBody {
        start: Option<Bytes>,
        pipe: EventPipe,
        keep_alive: Duration,
        #[pin]
        silence: Sleep,
        #[pin]
        expiry: Option<Sleep>,
    }
}

impl EventBody {
    /// A stream with a comment after each `keep_alive` of silence. It takes nothing more after
    /// `expiry`, when the credential that opened it stops counting.
    pub(super) fn new(pipe: EventPipe, keep_alive: Duration, expiry: Option<Duration>) -> Self {
        Self {
            start: None,
            pipe,
            keep_alive,
            silence: sleep(keep_alive),
            expiry: expiry.map(sleep),
        }
    }

    /// The same stream, with an event before all others.
    pub(super) fn after(self, start: Bytes) -> Self {
        Self {
            start: Some(start),
            ..self
        }
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut this = self.project();
        if let Some(start) = this.start.take() {
            return Poll::Ready(Some(Ok(Frame::data(start))));
        }
        if let Some(expiry) = this.expiry.as_mut().as_pin_mut()
            && expiry.poll(cx).is_ready()
        {
            this.pipe.close();
            this.expiry.set(None);
        }
        let event = match this.pipe.poll_next(cx) {
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(event)) => encode(&event),
            Poll::Pending => {
                ready!(this.silence.as_mut().poll(cx));
                COMMENT
            }
        };
        this.silence.as_mut().reset(from_now(*this.keep_alive));
        Poll::Ready(Some(Ok(Frame::data(event))))
    }
}

/// How long a client that lost a stream waits before it comes back.
const RETRY: Duration = Duration::from_secs(1);

fn encode(event: &Event) -> Bytes {
    match (&event.item, &event.id) {
        (Some(item), id) => sse::encode(id.as_deref(), item.message()),
        (None, Some(id)) => sse::priming(id, RETRY),
        (None, None) => COMMENT,
    }
}

#[expect(clippy::disallowed_methods, reason = "the stream keeps its own pace")]
fn from_now(wait: Duration) -> Instant {
    Instant::now() + wait
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::relay::Item;

    type Pinned = Pin<Box<EventBody>>;

    fn body(first: Vec<Item>, rest: Receiver<Item>, expiry: Option<Duration>) -> Pinned {
        Box::pin(EventBody::new(
            EventPipe::alone(first, rest),
            Duration::from_secs(15),
            expiry,
        ))
    }

    async fn next(body: &mut Pinned) -> Option<Bytes> {
        body.frame()
            .await
            .map(|frame| frame.unwrap().into_data().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_filled_with_comments_and_events_are_not_delayed() {
        let (pipe, rest) = channel(4);
        let mut body = body(vec![Item::Notice("a".into())], rest, None);
        assert_eq!(next(&mut body).await.unwrap(), sse::encode(None, b"a"));
        assert_eq!(next(&mut body).await.unwrap(), COMMENT);
        assert_eq!(next(&mut body).await.unwrap(), COMMENT);
        pipe.send(Item::Notice("b".into())).await.unwrap();
        assert_eq!(next(&mut body).await.unwrap(), sse::encode(None, b"b"));
        drop(pipe);
        assert_eq!(next(&mut body).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_the_credential_that_opened_it() {
        let (pipe, rest) = channel(4);
        let mut body = body(vec![], rest, Some(Duration::from_secs(20)));
        assert_eq!(next(&mut body).await.unwrap(), COMMENT);
        pipe.send(Item::Notice("last".into())).await.unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(next(&mut body).await.unwrap(), sse::encode(None, b"last"));
        assert_eq!(next(&mut body).await, None);
    }

    #[tokio::test]
    async fn dropping_the_stream_closes_the_pipe() {
        let (pipe, rest) = channel(4);
        drop(body(vec![], rest, None));
        assert!(pipe.is_closed());
    }
}
