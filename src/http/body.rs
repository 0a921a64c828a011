//! Reads the body of a request, bounded in size and time.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt as _;

use crate::error::Error;
use crate::upstream::client::{Unread, collect};

/// How long a client may take to send a body: a slow one holds memory.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a body that is too large which are still taken, and thrown away.
const DISCARDED: usize = 64 * 1024 * 1024;

/// The whole body, at most `limit` bytes of it.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: Option<usize>,
) -> Result<Bytes, Error> {
    let limit = limit.unwrap_or(usize::MAX);
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    let mut body = body;
    let read = if announced.is_some_and(|length| length > limit) {
        Err(Error::TooLarge(limit))
    } else {
        let collecting = tokio::time::timeout(PATIENCE, collect(&mut body, limit));
        match collecting.await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(Unread::TooLarge)) => Err(Error::TooLarge(limit)),
            Ok(Err(Unread::Broken(_))) | Err(_) => Err(Error::Incomplete),
        }
    };
    if matches!(read, Err(Error::TooLarge(_))) {
        let _rest = tokio::time::timeout(PATIENCE, discard(body)).await;
    }
    read
}

/// Lets a client finish what it sends, so that it comes to read why it is refused: many write the
/// whole request first, and see a closed connection instead of the answer.
async fn discard(mut body: Body) {
    let mut left = DISCARDED;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        left = match left.checked_sub(size) {
            Some(left) => left,
            None => return,
        };
    }
}
