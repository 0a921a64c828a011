//! When a request must stop, whatever its server does: its session has ended, its client has cancelled it,
//! or its time is over. A person's thinking time is not the request's.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::exchange::Exchange;
use super::now;
use super::session::LiveSession;
use crate::error::Error;
use crate::protocol::message;
use crate::protocol::session::LegId;
use crate::upstream::trouble::Trouble;

/// What ends a call before its answer.
#[derive(Debug, Default)]
pub(super) struct Halt {
    /// Its client has cancelled it.
    pub(super) cancelled: Notify,
    /// Its server has lost the session in which it waits for an answer.
    pub(super) lost: Notify,
}

impl Exchange {
    /// Waits until the exchange must stop, and says why.
    pub(super) fn stop(&self, linger: Duration) -> impl Future<Output = Error> + use<> {
        let (session, halt) = (Arc::clone(&self.session), Arc::clone(&self.halt));
        stop(session, self.leg, halt, linger)
    }
}

/// Waits until the exchange must stop, whatever the server does. It goes on for `linger` after its
/// client has cancelled it.
async fn stop(session: Arc<LiveSession>, leg: LegId, halt: Arc<Halt>, linger: Duration) -> Error {
    let limit = session.shared.config.timeouts.call;
    let over = async {
        loop {
            let worked = session.state().talk.worked(now(), leg);
            match worked {
                Some(worked) if worked >= limit => return,
                Some(worked) => tokio::time::sleep(limit.saturating_sub(worked)).await,
                // A person thinks; when they have answered, the rest of the time counts.
                None => tokio::time::sleep((limit / 4).min(Duration::from_secs(5))).await,
            }
        }
    };
    tokio::select! {
        () = session.ended.cancelled() => Error::SessionEnded,
        () = halt.lost.notified() => Error::SessionLost,
        () = async { halt.cancelled.notified().await; tokio::time::sleep(linger).await } => Error::Cancelled,
        () = over => {
            session.server().troubles().tell(&Trouble::Slow(limit));
            let line = session.state().calls.get(&leg).and_then(|call| call.line.clone());
            if let Some(line) = line {
                let params = format!(r#"{{"requestId":{leg},"reason":"no answer in time"}}"#);
                let notice = message::notification("notifications/cancelled", &params);
                let telling = Arc::clone(&session);
                session.shared.tasks.spawn(async move { telling.tell(&line, notice).await.ok() });
            }
            Error::Slow(limit)
        }
    }
}
