//! When a request must stop, whatever its server does: its session has ended, its client has cancelled it,
//! or its time is over. A person's thinking time is not the request's.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::exchange::Exchange;
use super::now;
use super::session::LiveSession;
use crate::error::Error;
use crate::protocol::clock::{Due, Late};
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
    let patience = session.shared.patience(session.server().name());
    // What is heard meanwhile is late no sooner than that.
    let step = patience.headers.min(patience.idle).min(patience.call);
    let late = async {
        loop {
            let due = session.state().talk.due(now(), leg, &patience);
            match due {
                Due::Over(late) => return late,
                Due::In(left) => tokio::time::sleep(left.min(step)).await,
                // When they have answered, the rest of the time counts.
                Due::Thinking => tokio::time::sleep((step / 4).min(Duration::from_secs(5))).await,
            }
        }
    };
    tokio::select! {
        () = session.ended.cancelled() => Error::SessionEnded,
        () = halt.lost.notified() => Error::SessionLost,
        () = async { halt.cancelled.notified().await; tokio::time::sleep(linger).await } => Error::Cancelled,
        late = late => {
            let (trouble, error) = match late {
                Late::Answer(limit) => (Trouble::Slow(limit), Error::Slow(limit)),
                Late::Word(limit) => (Trouble::Silent(limit), Error::Silent(limit)),
            };
            session.server().troubles().tell(&trouble);
            let tenure = session.state().calls.get(&leg).and_then(|call| call.tenure.clone());
            if let Some(tenure) = tenure {
                let params = format!(r#"{{"requestId":{leg},"reason":"no answer in time"}}"#);
                let notice = message::notification("notifications/cancelled", &params);
                let telling = Arc::clone(&session);
                session.shared.tasks.spawn(async move { telling.tell(&tenure, notice).await.ok() });
            }
            error
        }
    }
}
