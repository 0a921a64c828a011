//! Sends a modern client away with the question whether its call may run, and lets the call through when it
//! comes back with `accept` (2026-07-28 basic/patterns/mrtr).
//!
//! # Invariants
//! - A state is bound to principal, server, tool, all arguments and a time ("Security" of that page), and
//!   counts once.
//! - Of a tool that needs an approval no request goes on with a state that the gateway did not give: what its
//!   server wants to have back rides on a state of ours, which says that the call was approved.

use super::super::account::of_response;
use super::super::caller::Caller;
use super::super::modern::seal::{CallId, State, bound_as, exactly};
use super::super::pending::{action_of, record_of, said_of, with_case};
use super::super::{Shared, now, today};
use super::ledger::Ticket;
use super::{NOBODY, NOT_APPROVED, TOO_MANY, denied, question};
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::limit::{QuestionLimited, QuestionSlot};
use crate::policy::approval::Approval;
use crate::policy::{By, Case, Said};
use crate::protocol::client_modern::Rejected;
use crate::protocol::elicitation::{Action, Summary};
use crate::protocol::message::{self, Message};
use crate::protocol::object::{edit, members, quoted, text};
use crate::telemetry::audit::{Outcome, Record};

/// The key of the question.
const KEY: &str = "approve";

/// The word for a question that another one took the place of.
const PUSHED_OUT: &str = "pushed_out";

/// What stands between the gateway's state and the server's. It is no letter of the first.
const BETWEEN: char = '~';

/// What becomes of a request.
pub(in crate::relay) enum Gate {
    /// It goes on, so; with its approval, where it needed one.
    Open(Message, Option<Approved>),
    /// It has its response.
    Closed(Closed),
}

/// A response of the gateway's.
pub(in crate::relay) struct Closed {
    pub(in crate::relay) response: Message,
    /// Whether it says that the call does not run.
    denied: bool,
}

/// A call that its person has approved.
pub(in crate::relay) struct Approved {
    server: ServerName,
    principal: Principal,
    digest: [u8; 32],
}

impl Closed {
    /// What the record of the request says of it.
    pub(in crate::relay) fn record(&self, record: Record) -> Record {
        if self.denied {
            return record.outcome(Outcome::Refused).reason("not_approved");
        }
        of_response(record, &self.response)
    }
}

/// A request that needs an approval.
struct Visit<'v> {
    shared: &'v Shared,
    server: &'v ServerName,
    principal: &'v Principal,
    caller: &'v Caller,
    request: &'v Message,
    approval: Approval,
    question: Message,
}

impl Shared {
    /// Decides whether a request of a modern client may go on to its modern server.
    ///
    /// # Errors
    /// When its state does not fit, or it could be read in two ways.
    pub(in crate::relay) async fn gate(
        &self,
        server: &ServerName,
        principal: &Principal,
        caller: &Caller,
        request: &Message,
    ) -> Result<Gate, Error> {
        let Some(approval) = self.approval(server, request)? else {
            return Ok(Gate::Open(request.clone(), None));
        };
        let visit = Visit {
            shared: self,
            server,
            principal,
            caller,
            request,
            question: question(&approval)?,
            approval,
        };
        let [responses, state] = request.param(["inputResponses", "requestState"])?;
        let Some(state) = state else {
            return visit.ask().await;
        };
        let state = text(state).ok_or(INVALID)?;
        let bound = bound_as("approval", server, principal);
        if let Some(state) = self.seal.open(&state, &bound) {
            return visit.come_back(&state, responses).await;
        }
        let (own, theirs) = match state.split_once(BETWEEN) {
            Some((own, theirs)) => (own, Some(theirs)),
            None => (&*state, None),
        };
        let bound = bound_with(server, principal, theirs);
        let state = self.seal.open(own, &bound).ok_or(INVALID)?;
        visit.take(&state).await?;
        let theirs = theirs.map(quoted);
        visit.pass(&[("requestState", theirs.as_deref())])
    }

    /// Forgets the questions that nobody came back with in time, and puts that on record.
    pub(in crate::relay) async fn sweep_approvals(&self) {
        for (principal, ticket) in self.ledger.sweep(now()) {
            self.write_lost(&principal, ticket, Outcome::Timeout, "nobody_came_back")
                .await;
        }
    }

    /// Forgets all questions, since nobody can come back with them any more, and puts that on record.
    pub(in crate::relay) async fn end_approvals(&self, reason: &'static str) {
        for (principal, ticket) in self.ledger.clear() {
            self.write_lost(&principal, ticket, Outcome::Lost, reason)
                .await;
        }
    }

    async fn write_lost(
        &self,
        principal: &Principal,
        ticket: Ticket,
        outcome: Outcome,
        reason: &'static str,
    ) {
        let Some(asked) = ticket.question else { return };
        let case = match outcome {
            Outcome::Timeout => Case::decided_by(By::Timeout, Said::Cancel),
            // The one thing that has to be decided is which question makes room.
            _ if reason == PUSHED_OUT => Case::decided_by(By::Limits, Said::Cancel),
            _ => Case::default(),
        };
        let record = Record::question_answered(today())
            .principal(principal)
            .server(&ticket.server)
            .question(record_of(&asked.0, &Summary::of(&asked.0)))
            .outcome(outcome)
            .reason(reason)
            .waited(now().saturating_duration_since(ticket.since));
        let record = with_case(record, &case);
        self.audit.write(record).await;
    }
}

impl Visit<'_> {
    /// Sends the client away with the question.
    async fn ask(&self) -> Result<Gate, Error> {
        if self.caller.can_be_asked(&self.question).is_err() {
            return self.unasked(By::Client, "undeclared", NOBODY).await;
        }
        let place = match self.place().await {
            Ok(place) => place,
            Err(why) => return self.unasked(By::Limits, why.reason(), TOO_MANY).await,
        };
        let question = Some((self.question.clone(), place));
        let bound = bound_as("approval", self.server, self.principal);
        let digest = self.approval.digest();
        let (sealed, lost) =
            self.shared
                .give_state(self.server, self.principal, digest, question, &bound)?;
        if let Some(lost) = lost {
            self.lose(lost).await;
        }
        let record = self.about(Record::question_asked);
        self.shared.audit.write(record).await;
        let params = self.question.params().unwrap_or("{}");
        self.close(
            &format!(
                r#"{{"resultType":"input_required","inputRequests":{{"{KEY}":{{"method":"elicitation/create","params":{params}}}}},"requestState":"{sealed}"}}"#
            ),
            false,
        )
    }

    /// A place for one more question. Who has none left loses their oldest one that nobody came back with.
    async fn place(&self) -> Result<QuestionSlot, QuestionLimited> {
        let limiter = &self.shared.limiter;
        let place = limiter.question(self.server, self.principal);
        let full = match place {
            Err(full) if full != QuestionLimited::Rate => full,
            // Nothing that is given up slows a server down that is too fast.
            place => return place,
        };
        let oldest = self.shared.ledger.drop_oldest(self.principal).ok_or(full)?;
        self.lose(oldest).await;
        limiter.question(self.server, self.principal)
    }

    async fn lose(&self, ticket: Ticket) {
        self.shared
            .write_lost(self.principal, ticket, Outcome::Lost, PUSHED_OUT)
            .await;
    }

    /// The client comes back with this state of the question, and with answers (JSON text).
    async fn come_back(&self, state: &State, answers: Option<&str>) -> Result<Gate, Error> {
        let [answer] = match answers {
            None => [None],
            Some(answers) => members(answers, [KEY])
                .map_err(|_| Rejected::Answer("inputResponses can't be read".to_owned()))?,
        };
        let ticket = self.take(state).await?;
        let Some(answer) = answer else {
            // Nobody has said anything.
            drop(ticket);
            return self.ask().await;
        };
        let answer = Message::parse(&message::result("1", answer))
            .map_err(|_| Rejected::Answer("inputResponses can't be read".to_owned()))?;
        let action = Action::of("elicitation/create", &answer);
        let mut record = self
            .about(Record::question_answered)
            .outcome(Outcome::Ok)
            .waited(now().saturating_duration_since(ticket.since));
        if let Some(answered) = action_of(action) {
            record = record.action(answered);
        }
        let record = with_case(record, &Case::decided_by(By::Person, said_of(action)));
        self.shared.audit.write(record).await;
        match action {
            Action::Accept => self.pass(&[("requestState", None), ("inputResponses", None)]),
            _ => self.close(&complete(NOT_APPROVED), true),
        }
    }

    /// Uses up a state that fits this request.
    async fn take(&self, state: &State) -> Result<Ticket, Error> {
        let expired = Rejected::State("state_expired", "the interaction has expired");
        if state.is_expired(today()) {
            return Err(expired.into());
        }
        if state.request != self.approval.digest() {
            let why = "the request is not the one that was asked about";
            return Err(Rejected::State("state_mismatch", why).into());
        }
        let Some(ticket) = self.shared.ledger.take(self.principal, state.call) else {
            let why = "this round has been answered";
            return Err(Rejected::State("state_consumed", why).into());
        };
        if ticket.until < now() {
            self.shared
                .write_lost(self.principal, ticket, Outcome::Timeout, "nobody_came_back")
                .await;
            return Err(expired.into());
        }
        Ok(ticket)
    }

    /// Lets the request through, with these changes of its parameters.
    fn pass(&self, changes: &[(&str, Option<&str>)]) -> Result<Gate, Error> {
        let params = edit(self.request.params().unwrap_or("{}"), changes)
            .map_err(|_| Rejected::Params("`params` can't be read"))?;
        let id = self.request.id().unwrap_or("null");
        let request = Message::parse(&self.request.with_body(id, &params))?;
        let approved = Approved {
            server: self.server.clone(),
            principal: self.principal.clone(),
            digest: self.approval.digest(),
        };
        Ok(Gate::Open(request, Some(approved)))
    }

    async fn unasked(&self, by: By, reason: &'static str, why: &str) -> Result<Gate, Error> {
        let record = self.about(Record::question_answered);
        let record = record.outcome(Outcome::Refused).reason(reason);
        let record = with_case(record, &Case::decided_by(by, Said::Refuse));
        self.shared.audit.write(record).await;
        self.close(&complete(why), true)
    }

    fn close(&self, result: &str, denied: bool) -> Result<Gate, Error> {
        let id = self.request.id().unwrap_or("null");
        let response = Message::parse(&message::result(id, result))?;
        Ok(Gate::Closed(Closed { response, denied }))
    }

    fn about(&self, kind: fn(std::time::SystemTime) -> Record) -> Record {
        kind(today())
            .principal(self.principal)
            .server(self.server)
            .question(record_of(&self.question, &Summary::of(&self.question)))
    }
}

impl Approved {
    /// The result (JSON text) of a server that asks something in the midst of the call, with a state that
    /// says that the call was approved; none when it asks nothing.
    ///
    /// # Errors
    /// When there is no place for the state.
    pub(in crate::relay) fn carry(
        &self,
        shared: &Shared,
        result: &str,
    ) -> Result<Option<String>, Error> {
        let Ok([kind, state]) = members(result, ["resultType", "requestState"]) else {
            return Ok(None);
        };
        if kind.and_then(text).as_deref() != Some("input_required") {
            return Ok(None);
        }
        let theirs = state.and_then(text);
        let bound = bound_with(&self.server, &self.principal, theirs.as_deref());
        // What is pushed out is an approved call, which nobody came back to.
        let (own, _lost) =
            shared.give_state(&self.server, &self.principal, self.digest, None, &bound)?;
        let state = match theirs {
            Some(theirs) => format!("{own}{BETWEEN}{theirs}"),
            None => own,
        };
        let changed = edit(result, &[("requestState", Some(&quoted(&state)))]);
        Ok(changed.ok().map(std::borrow::Cow::into_owned))
    }
}

impl Shared {
    /// A new state for a call, and the one that had to give way to it.
    fn give_state(
        &self,
        server: &ServerName,
        principal: &Principal,
        digest: [u8; 32],
        question: Option<(Message, QuestionSlot)>,
        bound: &[u8],
    ) -> Result<(String, Option<Ticket>), Error> {
        let patience = self.policy(server)?.patience();
        let life = patience.unwrap_or(self.config.timeouts.question);
        let id = CallId::random()?;
        let sealed = self
            .seal
            .seal(&State::new(id, 0, digest, today(), life), bound)?;
        let ticket = Ticket {
            id,
            since: now(),
            until: now() + life,
            server: server.clone(),
            question,
        };
        let lost = self.ledger.give(principal, ticket)?;
        Ok((sealed, lost))
    }
}

/// Whom the state of an approved call is given to, which goes with this one of the server's.
fn bound_with(server: &ServerName, principal: &Principal, theirs: Option<&str>) -> Vec<u8> {
    let mut bound = bound_as("approved call", server, principal);
    if let Some(theirs) = theirs {
        bound.push(0);
        bound.extend_from_slice(&exactly(theirs.as_bytes()));
    }
    bound
}

/// The result of a call that did not run, as the modern revision has it.
fn complete(why: &str) -> String {
    denied(why).replacen('{', r#"{"resultType":"complete","#, 1)
}

const INVALID: Rejected = Rejected::State("state_invalid", "the requestState is not valid");
