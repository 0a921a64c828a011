//! Reads what a server sends outside of calls: its standalone stream, opened again when it ends.
//!
//! Servers without one answer 405, which is fine; the client's own standalone stream doesn't depend
//! on it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::inbound::{Inbound, Reading};
use super::lease::Lease;
use super::session::LiveSession;
use super::teardown::Ending;
use crate::protocol::server_legacy::Answered;
use crate::upstream::server::Wire;

/// Pauses between two tries to open the stream.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// Reads the server's standalone stream until the session ends or the server has none.
pub(super) async fn run(session: Arc<LiveSession>) {
    let Lease::Legacy(wire) = session.lease() else {
        return;
    };
    // Everything that is waited for inside ends with the session.
    let _ended = session
        .ended
        .run_until_cancelled(listen(&session, wire))
        .await;
}

async fn listen(session: &Arc<LiveSession>, wire: &Wire) {
    let mut pause = SHORTEST;
    let mut last: Option<Bytes> = None;
    let mut opened = false;
    loop {
        let mut asked = None;
        match session.server().listen(wire, last.as_ref()).await {
            Ok(reply) => match reply.what {
                Answered::Events => {
                    opened = true;
                    let mut reading = Reading::new(reply);
                    if read_all(session, wire, &mut reading).await {
                        pause = SHORTEST;
                    }
                    last = reading.last.or(last);
                    asked = reading.retry;
                }
                // Only who had a stream can say that the session is gone by refusing one: many
                // servers have no such route at all.
                Answered::SessionGone if opened => {
                    session.shared.tasks.spawn(session.end(Ending::Forgotten));
                    return;
                }
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
async fn read_all(session: &Arc<LiveSession>, wire: &Wire, reading: &mut Reading) -> bool {
    let mut any = false;
    while let Ok(Some(inbound)) = reading.next().await {
        any = true;
        match inbound {
            Inbound::Message(message) => {
                let guess = || session.cause_on_link(&message);
                let cause = wire.is_link().then(guess).flatten();
                session.take_from_server(cause, &message).await;
            }
            Inbound::Unreadable(id) => session.refuse_unreadable(&id).await,
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
