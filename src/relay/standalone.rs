//! Reads what a server sends outside of calls: its standalone stream, opened again when it ends.
//!
//! Servers without one answer 405, which is fine; the client's own standalone stream doesn't depend
//! on it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::session::LiveSession;
use super::teardown::Ending;
use crate::protocol::message::{Body, Message};
use crate::protocol::server_legacy::Answered;
use crate::upstream::http::{Events, Reply};

/// Pauses between two tries to open the stream.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The messages of a stream.
pub(super) struct Reading {
    events: Events,
    ready: VecDeque<Message>,
    last: Option<Bytes>,
    retry: Option<Duration>,
}

/// Reads the server's standalone stream until the session ends or the server has none.
pub(super) async fn run(session: Arc<LiveSession>) {
    let ended = session.ended.clone();
    // Everything that is waited for inside ends with the session.
    let _ended = ended.run_until_cancelled(listen(&session)).await;
}

async fn listen(session: &Arc<LiveSession>) {
    let mut pause = FIRST_PAUSE;
    let mut last: Option<Bytes> = None;
    loop {
        match session.server().listen(session.wire(), last.as_ref()).await {
            Ok(reply) => match reply.what {
                Answered::Events => {
                    let mut reading = Reading::new(reply);
                    while let Some(message) = reading.next().await {
                        session.take_from_server(None, &message).await;
                    }
                    last = reading.last.or(last);
                    pause = reading.retry.unwrap_or(FIRST_PAUSE).min(LONGEST_PAUSE);
                }
                Answered::SessionGone => {
                    session.shared.tasks.spawn(session.end(Ending::Forgotten));
                    return;
                }
                Answered::Broken | Answered::Limited => pause = (pause * 2).min(LONGEST_PAUSE),
                // 405, and every other way of saying that there is no such stream.
                _ => return,
            },
            Err(error) => {
                tracing::debug!(server = %session.server().name(), %error, "no standalone stream");
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        tokio::time::sleep(pause).await;
    }
}

impl Reading {
    pub(super) fn new(reply: Reply) -> Self {
        Self {
            events: reply.events(),
            ready: VecDeque::new(),
            last: None,
            retry: None,
        }
    }

    /// The next message; `None` when the stream is over, however it ended.
    pub(super) async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let event = self.events.next().await.ok()??;
            if let Some(id) = event.id {
                self.last = Some(id);
            }
            if let Some(retry) = event.retry {
                self.retry = Some(Duration::from_millis(retry));
            }
            let named = event.name.as_deref().is_none_or(|name| name == b"message");
            if event.data.is_empty() || !named {
                continue;
            }
            match Body::parse(&event.data) {
                Ok(Body::Single(message)) => self.ready.push_back(message),
                Ok(Body::Batch(members)) => {
                    self.ready
                        .extend(members.iter().filter_map(|it| Message::parse(it).ok()));
                }
                Err(error) => tracing::warn!(%error, "a server sent something that is no message"),
            }
        }
    }
}
