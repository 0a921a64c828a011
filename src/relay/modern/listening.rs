//! One `subscriptions/listen` at a legacy server, from its acknowledgement to its end. What its session hears goes
//! on when the server has lost that and it is renewed; it may also span several sessions, when one ends.
//!
//! # Invariants
//! - A listen hears what was acknowledged, or it ends: no session counts at which less is told.
//! - What may have been missed between two sessions is made up for by saying that it changed.
//! - Tries to get a session are bounded. A listen whose server can't be had ends with its result, and the
//!   client may ask again.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::backoff::{Backoff, pause};
use super::super::deliver::Item;
use super::super::standalone::jittered;
use super::super::streams::Pipe;
use super::super::{Shared, now};
use super::listen::{Listen, give_up, subscribe, unsubscribe};
use super::pool::{Key, Pooled};
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::message::Message;
use crate::protocol::subscription::{self, Filter};

/// How often in a row a session is tried for. With the pauses between that is a quarter of a minute.
const TRIES: u32 = 4;

/// A listen of a modern client.
pub(super) struct Listening {
    pub(super) shared: Arc<Shared>,
    /// Whose sessions it lives at.
    pub(super) key: Key,
    /// Whether they are its own alone.
    pub(super) single: bool,
    pub(super) declared: ClientCapabilities,
    /// The id of the request, as JSON text.
    pub(super) id: String,
    /// What was acknowledged.
    pub(super) honoured: Filter,
    pub(super) pipe: Pipe,
}

/// Where a listen is: among those who hear what a session hears.
pub(super) struct Place {
    pooled: Pooled,
    /// Set when it was taken from them, since it does not read.
    dropped: CancellationToken,
    /// Set when less is told there than it was promised.
    less: CancellationToken,
}

/// Why a listen does not stay.
enum Leaves {
    /// Its client is gone, or does not read.
    Client,
    /// The session has ended.
    Session,
    /// What it was promised is not told any more.
    Less,
    /// The gateway ends.
    Gateway,
}

impl Listening {
    /// Lives at `place`, and at others after it, to the end.
    pub(super) async fn run(self, mut place: Place) {
        let mut backoff = Backoff::default();
        loop {
            backoff.held(now());
            let leaves = self.stay(&place).await;
            place.pooled.session.listens().leave(&self.pipe);
            match leaves {
                Leaves::Client => return self.give_up(&place.pooled).await,
                Leaves::Less => {
                    self.say_complete();
                    return self.give_up(&place.pooled).await;
                }
                Leaves::Gateway => return self.complete(),
                Leaves::Session => {}
            }
            // Before another is opened: it counts among the sessions of its principal.
            drop(place);
            let moved = tokio::select! {
                moved = self.move_on(&mut backoff) => moved,
                () = self.shared.ending.cancelled() => None,
            };
            match moved {
                Some(next) => place = next,
                None => return self.complete(),
            }
        }
    }

    /// Joins those who hear what a session hears. What may have been `missed` it hears first.
    pub(super) fn join(&self, pooled: Pooled, missed: &[Message]) -> Place {
        let (dropped, less) = (CancellationToken::new(), CancellationToken::new());
        let listen = Listen {
            id: self.id.clone(),
            wanted: self.honoured.clone(),
            pipe: self.pipe.clone(),
            less: less.clone(),
            _dropped: dropped.clone().drop_guard(),
        };
        pooled.session.listens().join(listen, missed);
        Place {
            pooled,
            dropped,
            less,
        }
    }

    async fn stay(&self, place: &Place) -> Leaves {
        tokio::select! {
            biased;
            () = place.less.cancelled() => Leaves::Less,
            () = self.pipe.closed() => Leaves::Client,
            () = place.dropped.cancelled() => Leaves::Client,
            () = self.shared.ending.cancelled() => Leaves::Gateway,
            () = place.pooled.session.ended.cancelled() => Leaves::Session,
        }
    }

    /// Finds another place; none when there is none to be had, or nobody who wants it any more.
    async fn move_on(&self, backoff: &mut Backoff) -> Option<Place> {
        loop {
            match backoff.lost(now()) {
                0 => {}
                tries if tries < TRIES => tokio::select! {
                    () = tokio::time::sleep(jittered(pause(tries))) => {}
                    () = self.pipe.closed() => {}
                },
                _ => return None,
            }
            if self.pipe.is_closed() {
                return None;
            }
            match self.settle().await {
                Ok(place) => return place,
                // It keeps no sessions any more.
                Err(Error::NoVersion) => return None,
                Err(error) => {
                    let server = &self.key.server;
                    tracing::debug!(%server, %error, "no new session for a listen");
                }
            }
        }
    }

    /// Subscribes at another session, and says what may have been missed; none when less is told there.
    async fn settle(&self) -> Result<Option<Place>, Error> {
        let (shared, key) = (&self.shared, &self.key);
        let pooled = shared.session_for(key, self.single, self.declared).await?;
        let session = Arc::clone(&pooled.session);
        let _turn = session.listens().turn().await;
        let honoured = subscribe(&pooled, &self.honoured, || self.pipe.is_closed()).await?;
        if honoured != self.honoured {
            give_up(&pooled, honoured.uris).await;
            return Ok(None);
        }
        let changes = self.honoured.changes();
        let missed: Vec<_> = changes
            .iter()
            .filter_map(|change| Message::parse(change).ok())
            .collect();
        Ok(Some(self.join(pooled, &missed)))
    }

    /// Nobody hears it any more: gives up at the server what nobody else listens for.
    async fn give_up(self, pooled: &Pooled) {
        let Self { pipe, honoured, .. } = self;
        // With it ends the stream.
        drop(pipe);
        unsubscribe(pooled, honoured).await;
    }

    /// Ends the stream with the result.
    fn complete(self) {
        self.say_complete();
    }

    fn say_complete(&self) {
        let complete = subscription::complete(&self.id);
        let _gone = self.pipe.try_send(Item::Outcome(complete));
    }
}
