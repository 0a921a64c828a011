//! A call whose server wants the person to visit some addresses first (-32042): carries out what the
//! pure machine ([`Replay`]) decides.

use bytes::Bytes;

use super::super::now;
use super::call::{Driver, Return, begin};
use crate::error::Error;
use crate::protocol::client_modern::Rejected;
use crate::protocol::message::{self, Message};
use crate::protocol::parked::{Input, Output, State};
use crate::protocol::replay::{self, Consent, Due, Replay, Visit};

/// What a client must declare to be sent to addresses.
const URL: &str = r#"{"elicitation":{"url":{}}}"#;

impl Driver {
    /// The addresses that a response wants visited, while a client is there to be told.
    pub(super) fn wants_visits(&self, response: &Bytes) -> Option<Vec<Visit>> {
        if self.call.state() != State::Running {
            return None;
        }
        replay::visits(Message::parse(response).ok()?.error()?)
    }

    /// The server ended the request with addresses.
    pub(super) async fn send_away(&mut self, visits: Vec<Visit>, response: Bytes) -> Vec<Output> {
        self.in_flight = false;
        if !self.call.capabilities().url {
            if let Some(outlet) = self.outlet.take() {
                let server = self.key.server.as_str();
                outlet.fail(Rejected::Capability(URL).into(), server).await;
            }
            return self.call.handle(now(), Input::Outcome(response));
        }
        if let Some(replay) = &mut self.replay
            && !replay.still(now(), visits.clone())
        {
            return Vec::new();
        }
        let Some(round) = self.call.take_round() else {
            return self.call.handle(now(), Input::Outcome(response));
        };
        let away = Replay::new(visits, round, now() + self.park());
        let entry = |visit: &Visit| {
            format!(
                r#""{}":{{"method":"elicitation/create","params":{}}}"#,
                visit.key, visit.params
            )
        };
        let entries = away.visits().iter().map(entry).collect();
        self.replay = Some(away);
        self.send_round(round, entries).await;
        Vec::new()
    }

    /// The client comes back from the addresses.
    pub(super) fn come_from_visits(&mut self, back: Return) -> Vec<Output> {
        let Return {
            round,
            capabilities: _,
            answers,
            outlet,
            taken,
        } = back;
        let answers: Vec<_> = answers
            .iter()
            .map(|(key, answer)| (key.clone(), answer.as_str()))
            .collect();
        let Some(replay) = &mut self.replay else {
            return Vec::new();
        };
        let consent = match replay.retry(now(), round, &answers) {
            Ok(consent) => consent,
            Err(rejected) => {
                let _gone = taken.send(Err(rejected));
                return Vec::new();
            }
        };
        self.outlet = Some(outlet);
        let _gone = taken.send(Ok(()));
        match consent {
            Consent::Given => Vec::new(),
            Consent::Refused => {
                self.replay = None;
                let response = self.declined();
                self.call.handle(now(), Input::Outcome(response))
            }
        }
    }

    /// Something about the addresses is due.
    pub(super) async fn visits_due(&mut self) -> Vec<Output> {
        match self
            .replay
            .as_mut()
            .and_then(|replay| replay.handle_timeout(now()))
        {
            None => Vec::new(),
            Some(Due::Expired) => {
                self.replay = None;
                self.call.handle(now(), Input::End)
            }
            Some(Due::Again) => self.call_again().await,
        }
    }

    /// The server told that a person is done at an address.
    pub(super) fn visited(&mut self, ids: &[String]) {
        if let Some(replay) = &mut self.replay {
            for id in ids {
                replay.completed(now(), id);
            }
        }
    }

    /// The server did not process the call, and is asked again.
    async fn call_again(&mut self) -> Vec<Output> {
        let shared = std::sync::Arc::clone(&self.pooled.session.shared);
        let begun = async {
            if self.pooled.session.is_gone() {
                self.pooled = shared
                    .session_for(&self.key, self.single, self.call.capabilities())
                    .await?;
            }
            let admission = shared
                .limiter
                .admit(&self.key.server, &self.key.principal)?;
            begin(&self.pooled.session, self.sent.clone(), admission).await
        };
        match begun.await {
            Ok(pipe) => {
                self.pipe = pipe;
                self.in_flight = true;
                Vec::new()
            }
            Err(error) => {
                let response = error.body(Some(&self.inner), Some(self.key.server.as_str()));
                self.call.handle(now(), Input::Outcome(response))
            }
        }
    }

    fn declined(&self) -> Bytes {
        let text = "the user declined to open the page that the server asked for";
        if self.method == "tools/call" {
            let result =
                format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}"#);
            message::result(&self.inner, &result)
        } else {
            Error::Declined.body(Some(&self.inner), Some(self.key.server.as_str()))
        }
    }
}
