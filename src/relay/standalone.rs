//! Reads what a server sends outside of calls: its standalone stream, opened again when it ends.
//!
//! Servers without one answer 405, which is fine; the client's own standalone stream doesn't depend
//! on it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::inbound::{Inbound, Reading};
use super::lease::{Lease, Legacy, Tenure};
use super::session::LiveSession;
use crate::protocol::server_legacy::Answered;

/// Pauses between two tries to open the stream.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// Reads the server's standalone stream, of each session that there is with it, until the client's ends.
pub(super) async fn run(session: Arc<LiveSession>) {
    let Lease::Legacy(legacy) = session.lease() else {
        return;
    };
    // Everything that is waited for inside ends with the session.
    tokio::select! {
        () = session.ended.cancelled() => {}
        () = listen(&session, legacy) => {}
    }
}

async fn listen(session: &Arc<LiveSession>, legacy: &Legacy) {
    let mut tenure = legacy.tenure();
    loop {
        let next = legacy.renewed(tenure.generation);
        tenure = tokio::select! {
            next = next => next,
            () = listen_on(session, &tenure) => legacy.renewed(tenure.generation).await,
        };
    }
}

/// Reads the stream of one session, until the server has none.
async fn listen_on(session: &Arc<LiveSession>, tenure: &Arc<Tenure>) {
    let mut pause = SHORTEST;
    let mut last: Option<Bytes> = None;
    let mut opened = false;
    loop {
        let mut asked = None;
        // Most of the time this waits for a stream, and so what does something else is boxed.
        match Box::pin(session.server().listen(&tenure.wire, last.as_ref())).await {
            Ok(reply) => match reply.what {
                Answered::Events => {
                    opened = true;
                    let mut reading = Reading::new(reply);
                    if read_all(session, tenure, &mut reading).await {
                        pause = SHORTEST;
                    }
                    last = reading.last.or(last);
                    asked = reading.retry;
                }
                // Only who had a stream can say that the session is gone by refusing one: many
                // servers have no such route at all.
                // It is tried for again here, since nobody else may come to ask for it.
                Answered::SessionGone if opened => match Box::pin(session.renew(tenure)).await {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::debug!(session = session.tag(), %error, "no new session");
                    }
                },
                Answered::NotOffered | Answered::SessionGone => return,
                _ => {}
            },
            Err(error) => {
                tracing::debug!(server = %session.server().name(), %error, "no standalone stream");
            }
        }
        tokio::time::sleep(jittered(asked.unwrap_or(pause).clamp(SHORTEST, LONGEST))).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Reads a stream to its end; whether anything was in it.
async fn read_all(session: &Arc<LiveSession>, tenure: &Arc<Tenure>, reading: &mut Reading) -> bool {
    let mut any = false;
    while let Ok(Some(inbound)) = reading.next().await {
        any = true;
        match inbound {
            Inbound::Message(message) => {
                let guess = || session.cause_on_link(&message);
                let cause = tenure.wire.is_link().then(guess).flatten();
                Box::pin(session.take_from_server(tenure, cause, &message)).await;
            }
            Inbound::Unreadable(id) => {
                Box::pin(session.refuse_unreadable(tenure, &id)).await;
            }
        }
    }
    any
}

/// Up to a quarter more, so that many sessions don't come back at the same moment.
pub(super) fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness all come at once, which is no reason to stay away.
    let _none = aws_lc_rs::rand::fill(&mut byte);
    pause + pause.mul_f32(f32::from(byte[0]) / 1024.0)
}
