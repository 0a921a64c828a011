//! Brings what a server sends to its client: to one stream, or to the place where it waits for one.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use memchr::memmem::Finder;
use tokio::sync::mpsc::Permit;

use super::lease::Tenure;
use super::now;
use super::pending::Asker;
use super::session::{Face, LiveSession};
use super::streams::{Pipe, Put};
use crate::protocol::event_id::Name;
use crate::protocol::message::{Kind, Message};
use crate::protocol::session::{LegId, QuestionId};
use crate::protocol::tasks;

/// Something that a client is to read, as the JSON text of a message. What kind it is decides what
/// becomes of it while no stream is open.
#[derive(Clone, Debug)]
pub enum Item {
    /// A question, under the id that its answer must name. It waits; its own clock bounds that.
    Question(QuestionId, Bytes),
    /// The question with this id is not to be answered any more. It waits as a notice does.
    Withdrawn(QuestionId, Bytes),
    /// A notification. It waits; newer ones may push it out.
    Notice(Bytes),
    /// How far a call is. Worth nothing later.
    Progress(Bytes),
    /// The answer to a request. Only ever on the request's own stream.
    Outcome(Bytes),
}

impl Item {
    /// The message.
    pub fn message(&self) -> &Bytes {
        match self {
            Self::Question(_, message)
            | Self::Withdrawn(_, message)
            | Self::Notice(message)
            | Self::Progress(message)
            | Self::Outcome(message) => message,
        }
    }

    /// The question that it asks.
    pub fn asks(&self) -> Option<QuestionId> {
        match self {
            Self::Question(id, _) => Some(*id),
            _ => None,
        }
    }
}

/// How long a stream may be full before it is taken for dead.
pub(super) const STALLED: Duration = Duration::from_secs(30);

/// How long a question waits for the call that it belongs to.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

/// How long the last word of a call waits for a client that does not read.
pub(super) const LAST_WORD: Duration = Duration::from_secs(10);

/// Why nothing more goes into a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// Its client is gone.
    Closed,
    /// Its client has not read for too long.
    Stalled,
}

/// Waits for room in a stream, for as long as a client may be slow.
pub(super) async fn room(pipe: &Pipe, patience: Duration) -> Result<Permit<'_, Item>, NoRoom> {
    match tokio::time::timeout(patience, pipe.reserve()).await {
        Ok(Ok(room)) => Ok(room),
        Ok(Err(_closed)) => Err(NoRoom::Closed),
        Err(_stalled) => Err(NoRoom::Stalled),
    }
}

impl LiveSession {
    /// Puts something where the client reads it. Waits while that place is full, so that a slow
    /// client slows its own server's stream and nothing else; one that does not read at all loses the
    /// stream.
    pub(super) async fn deliver(&self, cause: Option<LegId>, item: Item) {
        let mut item = item;
        loop {
            let (name, pipe) = {
                let mut state = self.state();
                if item.asks().is_some_and(|id| !state.talk.is_open(id)) {
                    return;
                }
                match state.streams.put(cause, self.face(), item) {
                    Put::Done => return,
                    Put::Nowhere(item) => return state.hold(item),
                    Put::Full(name, pipe, back) => {
                        item = back;
                        (name, pipe)
                    }
                }
            };
            let waiting = self.wait_for_room(name, &pipe, item, STALLED);
            match self.ended.run_until_cancelled(waiting).await {
                None | Some(None) => return,
                Some(Some(back)) => item = back,
            }
        }
    }

    /// Puts the outcome of a call into the stream that owes it. Where nobody reads that, it stays with the
    /// session until its client comes back for it.
    pub(super) async fn conclude(&self, name: Name, response: Bytes) {
        // Whoever loses a line loses the session: that takes as long as for any other message.
        let patience = self.line().map_or(LAST_WORD, |_| STALLED);
        let mut item = Item::Outcome(response);
        loop {
            let put = self.state().streams.put_outcome(name, item);
            match put {
                Put::Done | Put::Nowhere(_) => break,
                Put::Full(_, pipe, back) => {
                    match self.wait_for_room(name, &pipe, back, patience).await {
                        None => break,
                        Some(back) => item = back,
                    }
                }
            }
        }
        self.state().streams.settle(name, now());
    }

    /// Waits until a stream has room, and puts something into it. It comes back where the stream has lost
    /// its reader meanwhile, which it does when that takes nothing for so long.
    async fn wait_for_room(
        &self,
        name: Name,
        pipe: &Pipe,
        item: Item,
        patience: Duration,
    ) -> Option<Item> {
        let room = room(pipe, patience).await;
        let streams = &mut self.state().streams;
        match room {
            Ok(room) => streams.put_into(name, pipe, item, room),
            Err(NoRoom::Closed) => Some(item),
            Err(NoRoom::Stalled) => {
                streams.cut(name, pipe, now());
                if let Some(line) = self.line() {
                    line.close();
                }
                Some(item)
            }
        }
    }

    /// Takes back what a stream carried whose reader is gone.
    pub(super) fn take_back(&self, reader: (Name, u32), unread: Vec<(u64, Item)>, now: Instant) {
        let mut state = self.state();
        let back = state.streams.leave(reader, unread, now);
        for item in back {
            // Of a question that is over nobody wants to hear.
            let over = item.asks().is_some_and(|id| !state.talk.is_open(id));
            if over || matches!(item, Item::Progress(_)) {
                continue;
            }
            match state.streams.put(None, self.face(), item) {
                Put::Done => {}
                Put::Nowhere(item) | Put::Full(_, _, item) => state.hold(item),
            }
        }
    }

    /// The call that a message belongs to which came on the stream of `stream`: the one that drives the
    /// task that it names, if it names one. Such messages may come on any stream (2025-11-25
    /// basic/utilities/tasks).
    pub(super) fn cause_of(&self, stream: Option<LegId>, message: &Message) -> Option<LegId> {
        if self.face() == Face::Legacy || !is_of_task(message) {
            return stream;
        }
        let task = message.params().and_then(tasks::related);
        let state = self.state();
        let own = task
            .and_then(|id| state.tasks.get(id.as_str()))
            .and_then(|became| state.talk.leg(&became.call));
        own.or(stream)
    }

    /// The same for a question, of which no other call may hear: waits for the call where it is on its way
    /// between the creation of its task and the request for the outcome, or where the server asks before its
    /// word of the task is here.
    pub(super) async fn cause_to_come(
        &self,
        stream: Option<LegId>,
        question: &Message,
    ) -> Option<LegId> {
        if self.face() == Face::Legacy || !is_of_task(question) {
            return stream;
        }
        if let Some(task) = question.params().and_then(tasks::related) {
            let there = self.task_is_there(&task, stream.is_none());
            let _late = tokio::time::timeout(ON_ITS_WAY, there).await;
        }
        self.cause_of(stream, question)
    }

    /// Takes a message of the server that ends no exchange here, and came by this session there.
    pub(super) async fn take_from_server(
        self: &Arc<Self>,
        tenure: &Arc<Tenure>,
        cause: Option<LegId>,
        message: &Message,
    ) {
        let cause = match message.kind() {
            Kind::Request => self.cause_to_come(cause, message).await,
            _ => self.cause_of(cause, message),
        };
        if let Some(leg) = cause {
            self.state().talk.heard(now(), leg);
        }
        match message.kind() {
            Kind::Request => {
                let waits = Asker::Server(Arc::clone(tenure));
                self.ask(cause, message, waits).await;
            }
            Kind::Notification => self.notice(cause, message).await,
            Kind::Result | Kind::Error => {
                // The first one counts, whichever stream it comes on: a server that goes on with a broken
                // stream may choose another.
                let leg = message.id().and_then(LegId::parse);
                let waits = {
                    let state = &mut *self.state();
                    let call = leg.and_then(|leg| state.calls.get_mut(&leg));
                    call.and_then(|call| call.response.take())
                };
                if waits.is_some_and(|waits| waits.send(message.clone()).is_ok()) {
                    return;
                }
                tracing::debug!(server = %self.server().name(), session = self.tag(), "a response to no request");
            }
        }
    }

    /// Takes a notification of the server, which came on the stream of `cause` or on its own.
    pub(super) async fn notice(self: &Arc<Self>, cause: Option<LegId>, notice: &Message) {
        let bytes = notice.bytes().clone();
        match notice.method() {
            "notifications/cancelled" => {
                // The id is the server's own; under it the client knows nothing.
                if let Ok([Some(id)]) = notice.param(["requestId"]) {
                    self.withdraw(cause, notice, id).await;
                }
            }
            "notifications/progress" => {
                // Clients take progress that they did not ask for as a broken connection.
                let Ok([Some(token)]) = notice.param(["progressToken"]) else {
                    return;
                };
                let (expected, own) = {
                    let mut state = self.state();
                    let expected = state.talk.takes_progress(now(), token);
                    (expected, state.talk.leg(token))
                };
                if expected || is_of_task(notice) {
                    // The token of a modern client's call is its id, on whatever stream it comes.
                    let own = own.filter(|_| self.face() == Face::Modern);
                    self.deliver(own.or(cause), Item::Progress(bytes)).await;
                }
            }
            "notifications/message" if self.face() == Face::Modern => {
                if self.state().streams.is_clear(cause) {
                    self.deliver(cause, Item::Notice(bytes)).await;
                }
            }
            _ if self.face() == Face::Modern => self.tell_listeners(notice),
            _ => self.deliver(cause, Item::Notice(bytes)).await,
        }
    }
}

/// Whether a message belongs to a task, which outlives the call that began it (2025-11-25
/// basic/utilities/tasks).
fn is_of_task(message: &Message) -> bool {
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(tasks::RELATED));
    NAME.find(message.bytes()).is_some()
}
