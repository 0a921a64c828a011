//! Takes up the stream of an answer where it broke (2025-03-26 … 2025-11-25 basic/transports, "Resumability
//! and Redelivery"), so that the client of it notices nothing.
//!
//! A server of 2025-11-25 may also end the connection at will and be asked again after a while
//! ("polling"): that is no end either.

use std::sync::Arc;
use std::time::Duration;

use super::inbound::Reading;
use super::session::LiveSession;
use super::standalone::jittered;
use crate::protocol::server_legacy::Answered;
use crate::upstream::server::Wire;

/// How often in a row it may fail.
const TRIES: u32 = 5;

/// How long a server is left alone that does not say.
const USUAL: Duration = Duration::from_secs(1);

/// The bounds of what a server says.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_mins(1);

/// What became of the stream of an answer.
pub(super) enum TakenUp {
    /// It goes on.
    Again(Box<Reading>),
    /// The server does not know the session any more.
    Unknown,
    /// There was no event to go on after, the server does not offer this, or can't be reached.
    No,
}

impl LiveSession {
    /// Opens the stream of an answer again after the last event that came.
    pub(super) async fn take_up(self: &Arc<Self>, wire: &Wire, broken: &Reading) -> TakenUp {
        let Some(last) = broken.last.as_ref() else {
            return TakenUp::No;
        };
        let mut pause = broken.retry.unwrap_or(USUAL).clamp(SHORTEST, LONGEST);
        for _ in 0..TRIES {
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST);
            let Ok(reply) = self.server().listen(wire, Some(last)).await else {
                continue;
            };
            match reply.what {
                Answered::Events => return TakenUp::Again(Box::new(broken.again(reply))),
                Answered::SessionGone => return TakenUp::Unknown,
                Answered::Limited => pause = reply.retry_after().unwrap_or(pause).min(LONGEST),
                Answered::Broken => {}
                _ => return TakenUp::No,
            }
        }
        TakenUp::No
    }
}
