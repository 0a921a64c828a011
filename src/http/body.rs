//! Reads the body of a request, bounded in size and time.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt as _;

use crate::error::Error;

/// How long a client may take to send a body: a slow one holds memory.
const PATIENCE: Duration = Duration::from_secs(30);

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
    if announced.is_some_and(|length| length > limit) {
        return Err(Error::TooLarge(limit));
    }
    tokio::time::timeout(PATIENCE, collect(body, limit))
        .await
        .unwrap_or(Err(Error::Incomplete))
}

async fn collect(mut body: Body, limit: usize) -> Result<Bytes, Error> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Error::Incomplete)?.into_data() else {
            continue;
        };
        if first.len() + all.len() + data.len() > limit {
            return Err(Error::TooLarge(limit));
        }
        // Most bodies are one frame: that one is passed on without a copy.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}
