//! A call that its server ended with addresses to visit: the client is sent away with them, comes back
//! when the person agreed, and waits until the call could be made again.

use std::time::Instant;

use super::turns::{Output, Retry, State};
use super::{Call, Rejected};
use crate::protocol::message::Message;
use crate::protocol::replay::{self, Consent, MOST, Replay, Visit};

/// What a client must declare to be sent to addresses.
const URL: &str = r#"{"elicitation":{"url":{}}}"#;

impl Call {
    /// The server's response, while a client is attached.
    pub(super) fn conclude(&mut self, now: Instant, response: Message) -> Vec<Output> {
        self.in_flight = false;
        self.concluded = true;
        let mut outputs = self.settle();
        outputs.extend(match response.error().and_then(replay::visits) {
            Some(visits) => self.send_visiting(now, visits, response),
            None => Some(self.deliver(Output::Done(response))),
        });
        outputs
    }

    /// What is said last to the attached client.
    fn deliver(&mut self, last: Output) -> Output {
        self.replay = None;
        self.state = State::Delivered;
        last
    }

    /// The server wants these visited, as its `response` says. A client that has just agreed to visit
    /// some waits on.
    fn send_visiting(
        &mut self,
        now: Instant,
        visits: Vec<Visit>,
        response: Message,
    ) -> Option<Output> {
        if !self.capabilities.url {
            return Some(self.deliver(Output::Undeclared(URL)));
        }
        let waits = match &mut self.replay {
            Some(replay) => replay.wants_again(now, visits.clone()),
            None => false,
        };
        if !waits {
            if self.round >= self.limits.rounds {
                return Some(self.deliver(Output::Done(response)));
            }
            self.round += 1;
            self.state = State::Visiting;
            self.until = Some(now + self.limits.park);
            self.replay = Some(Replay::new(visits.clone()));
        }
        // Some are done sooner than the server's response was here.
        for id in std::mem::take(&mut self.visited) {
            self.mark_visited(now, &id);
        }
        (!waits).then_some(Output::Visits(self.round, visits))
    }

    /// A person is done at the address with this id.
    pub(super) fn mark_visited(&mut self, now: Instant, id: &str) {
        match &mut self.replay {
            Some(replay) if !self.in_flight => replay.completed(now, id),
            _ => {
                // It may be one of those that the client will be sent to.
                self.visited.truncate(MOST - 1);
                self.visited.insert(0, id.to_owned());
            }
        }
    }

    /// The client comes back from the addresses.
    pub(super) fn come_from_visits(
        &mut self,
        now: Instant,
        retry: &Retry<'_>,
    ) -> Result<Vec<Output>, Rejected> {
        let Some(replay) = &mut self.replay else {
            return Ok(Vec::new());
        };
        let consent = replay.consent(now, &retry.answers)?;
        self.until = None;
        self.state = State::Running;
        self.capabilities = retry.capabilities;
        Ok(match consent {
            Consent::Given => Vec::new(),
            Consent::Refused => vec![self.deliver(Output::Declined)],
        })
    }

    /// The call is made again, if it is time for that.
    pub(super) fn make_again(&mut self, now: Instant) -> Vec<Output> {
        let Some(replay) = &mut self.replay else {
            return Vec::new();
        };
        if !replay.is_due(now) {
            return Vec::new();
        }
        self.in_flight = true;
        self.concluded = false;
        self.visited.clear();
        vec![Output::Again]
    }
}
