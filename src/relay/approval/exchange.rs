//! Holds a call that an exchange carries until its person approves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::channel;

use super::super::asked::Asked;
use super::super::exchange::{End, Exchange};
use super::super::pending::{Asker, record_of, with_case};
use super::super::session::{Face, LiveSession};
use super::{Approver, NOBODY, Stage, TOO_MANY, denied, question};
use crate::error::Error;
use crate::policy::approval::Approval;
use crate::policy::{By, Case, Said};
use crate::protocol::elicitation::Summary;
use crate::protocol::message::{self, Message};
use crate::protocol::session::LegId;
use crate::telemetry::audit::{Outcome, Record};

impl Exchange {
    /// The approval that the call needs before it may run.
    pub(in crate::relay) fn awaits(&self) -> Result<Option<Approval>, Error> {
        if self.consent.is_given() {
            return Ok(None);
        }
        let session = &self.session;
        let server = session.server().name();
        session.shared.approval(server, &self.request)
    }

    /// Asks the person of the call. Gives how the call ends if they do not approve.
    pub(in crate::relay) async fn approve(&mut self, approval: Approval) -> Option<End> {
        let session = Arc::clone(&self.session);
        self.consent.set(Stage::Awaited);
        self.sink.open(&session, self.leg);
        let stop = self.stop(Duration::ZERO);
        let said = tokio::select! {
            biased;
            error = stop => {
                // Who drives the call of a modern client ends its questions.
                if session.face() == Face::Legacy {
                    let own = |asker: &Asker| matches!(asker, Asker::Gateway(_));
                    session.call_off(self.leg, own).await;
                }
                Err(error)
            }
            said = session.ask_for_approval(self.leg, &approval) => said,
        };
        match said {
            Ok(Ok(())) if !session.state().talk.is_cancelled(self.leg) => {
                self.consent.set(Stage::Given);
                None
            }
            Ok(Ok(())) => Some(End::Failed(Error::Cancelled)),
            Ok(Err(why)) => Some(self.denied(why)),
            Err(error) => Some(End::Failed(error)),
        }
    }

    fn denied(&self, why: &'static str) -> End {
        // Who asked for a task takes no other result (2025-11-25 basic/utilities/tasks).
        let as_task = matches!(self.request.param(["task"]), Ok([Some(_)]));
        if as_task && self.session.face() == Face::Legacy {
            return End::Failed(Error::Interaction(why));
        }
        match Message::parse(&message::result(&self.leg.to_string(), &denied(why))) {
            Ok(result) => End::Denied(result),
            Err(error) => End::Failed(error.into()),
        }
    }
}

impl LiveSession {
    /// Asks the person of a call whether it may run, and waits for what they say: why not, if it may not.
    ///
    /// # Errors
    /// When the session ends, or the question can't be recorded.
    async fn ask_for_approval(
        self: &Arc<Self>,
        call: LegId,
        approval: &Approval,
    ) -> Result<Result<(), &'static str>, Error> {
        let slot = self.shared.audit.reserve().await;
        let slot = slot.map_err(|_| Error::AuditFull)?;
        let (answer, mut answered) = channel(1);
        let waits = Asker::Gateway(Approver(answer));
        let asked = Arc::new(Asked::of_the_gateway(
            self,
            call,
            question(approval)?,
            waits,
        ));
        if asked.caller.can_be_asked(&asked.question).is_err() {
            slot.write(self.unasked(&asked, By::Client, "undeclared"));
            return Ok(Err(NOBODY));
        }
        let limiter = &self.shared.limiter;
        let place = match limiter.question(self.server().name(), self.principal()) {
            Ok(place) => place,
            Err(why) => {
                slot.write(self.unasked(&asked, By::Limits, why.reason()));
                return Ok(Err(TOO_MANY));
            }
        };
        let id = self.book(&asked, Case::default(), place);
        let id = id.ok_or(Error::SessionEnded)?;
        // The book has the only way to answer: when it is closed, nobody will.
        drop(asked);
        self.put_to_person(id, Some(slot)).await;
        answered.recv().await.ok_or(Error::SessionEnded)
    }

    fn unasked(&self, asked: &Asked, by: By, why: &'static str) -> Record {
        let question = &asked.question;
        let record = self
            .about(Record::question_answered)
            .question(record_of(question, &Summary::of(question)))
            .outcome(Outcome::Refused)
            .reason(why);
        with_case(record, &Case::decided_by(by, Said::Refuse))
    }
}
