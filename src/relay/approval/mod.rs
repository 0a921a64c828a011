//! Tools that run only when their person approves (`approve` of a server): the gateway asks before the
//! server hears of the call. What needs it and what is shown is decided in
//! [`policy::approval`](crate::policy::approval).
//!
//! A call that an [`exchange`] carries is held while its person is asked, through the same book, limits,
//! clocks and records as the questions of servers. A modern client at a modern server is sent away with the
//! question by [`gate`], and [`ledger`] keeps that each state counts once.
//!
//! # Invariants
//! - Nothing but `accept` of the one who was asked lets a call through. Policy has no say: no rule, no hook,
//!   no clock approves.
//! - Who can't be asked can't call such a tool.

mod exchange;
mod gate;
mod ledger;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc::Sender;

pub(super) use self::gate::{Approved, Gate};
pub(super) use self::ledger::Ledger;
use super::Shared;
use crate::config::ServerName;
use crate::error::Error;
use crate::policy::approval::Approval;
use crate::protocol::elicitation::Action;
use crate::protocol::message::{self, Message};
use crate::protocol::object::quoted;

/// Said where the person did not accept.
pub(super) const NOT_APPROVED: &str = "the call was not approved, and did not run";

/// Said where the person did not answer.
pub(super) const TOO_LATE: &str = "nobody approved the call in time, and it did not run";

/// Said where nobody can be asked.
pub(super) const NOBODY: &str =
    "this tool runs only when a person approves the call, and nobody can be asked";

/// Said where enough questions wait for the person.
const TOO_MANY: &str =
    "the call did not run: it needs an approval, and too many questions wait for this person";

/// The id of the question in records (JSON text).
const ID: &str = r#""approval""#;

/// Whether the person of a call has approved it. Clones are about the same call.
#[derive(Clone, Debug, Default)]
pub(super) struct Consent(Arc<Mutex<Stage>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Unasked,
    Awaited,
    Given,
}

impl Consent {
    /// Whether the person is being asked, and the server knows nothing of the call.
    pub(super) fn is_awaited(&self) -> bool {
        *self.0.lock() == Stage::Awaited
    }

    fn is_given(&self) -> bool {
        *self.0.lock() == Stage::Given
    }

    fn set(&self, stage: Stage) {
        *self.0.lock() = stage;
    }
}

/// Who waits for an approval: what they are told is that the call may run, or why not.
#[derive(Clone, Debug)]
pub(super) struct Approver(Sender<Result<(), &'static str>>);

impl Approver {
    /// The person has answered.
    pub(super) fn hear(&self, action: Action) {
        match action {
            Action::Accept => self.say(Ok(())),
            _ => self.deny(NOT_APPROVED),
        }
    }

    /// There is no approval.
    pub(super) fn deny(&self, why: &'static str) {
        self.say(Err(why));
    }

    fn say(&self, said: Result<(), &'static str>) {
        // The first word counts. Where nobody waits any more, the call is over.
        let _over = self.0.try_send(said);
    }
}

impl Shared {
    /// The approval that a request at this server needs, if it needs one.
    fn approval(&self, server: &ServerName, request: &Message) -> Result<Option<Approval>, Error> {
        let Some(config) = self.config.servers.get(server) else {
            return Ok(None);
        };
        Ok(Approval::needed(&config.approve, server.as_str(), request)?)
    }
}

/// The question, under its id in records.
fn question(approval: &Approval) -> Result<Message, Error> {
    let question = message::request(ID, "elicitation/create", &approval.params());
    Ok(Message::parse(&question)?)
}

/// The result (JSON text) of a call that was not approved.
fn denied(why: &str) -> String {
    format!(
        r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#,
        quoted(why)
    )
}
