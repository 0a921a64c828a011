//! Reads the body of a request, bounded in size and time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::error::Error;
use crate::upstream::client::{Unread, collect};

/// How long a client may take to send a body: a slow one holds memory.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a body that is too large which are still taken, and thrown away.
const DISCARDED: usize = 64 * 1024 * 1024;

/// The body of a request.
pub(super) struct RequestBody {
    incoming: Incoming,
    is_whole: bool,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming) -> Self {
        Self {
            is_whole: incoming.is_end_stream(),
            incoming,
        }
    }

    /// Whether nothing of it is on its way any more.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The whole body, at most `limit` bytes of it.
    pub(super) async fn read(
        &mut self,
        headers: &HeaderMap,
        limit: Option<usize>,
    ) -> Result<Bytes, Error> {
        let limit = limit.unwrap_or(usize::MAX);
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
        let read = if announced.is_some_and(|length| length > limit) {
            Err(Error::TooLarge(limit))
        } else {
            match patiently(collect(&mut self.incoming, limit)).await {
                Some(Ok(body)) => {
                    self.is_whole = true;
                    Ok(body)
                }
                Some(Err(Unread::TooLarge)) => Err(Error::TooLarge(limit)),
                Some(Err(Unread::Broken(_))) | None => Err(Error::Incomplete),
            }
        };
        if matches!(read, Err(Error::TooLarge(_))) {
            let _rest = Box::pin(tokio::time::timeout(PATIENCE, self.discard())).await;
        }
        read
    }

    /// Lets a client finish what it sends, so that it comes to read why it is refused: many write the
    /// whole request first, and see a closed connection instead of the answer.
    async fn discard(&mut self) {
        let mut left = DISCARDED;
        while let Some(Ok(frame)) = self.incoming.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            left = match left.checked_sub(size) {
                Some(left) => left,
                None => return,
            };
        }
    }
}

/// What `reading` gives, if it does in time. Nearly every body is there with its head, and only has to be
/// asked for: no timer is set before the second look.
async fn patiently<T>(reading: impl Future<Output = T>) -> Option<T> {
    let mut reading = pin!(reading);
    let mut asked = false;
    let first = poll_fn(|cx| match reading.as_mut().poll(cx) {
        Poll::Ready(read) => Poll::Ready(Some(read)),
        Poll::Pending if asked => Poll::Ready(None),
        Poll::Pending => {
            asked = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    });
    match first.await {
        Some(read) => Some(read),
        None => Box::pin(tokio::time::timeout(PATIENCE, reading)).await.ok(),
    }
}
