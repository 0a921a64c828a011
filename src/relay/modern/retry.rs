//! A client comes back with answers (2026-07-28 basic/patterns/mrtr). What does not fit is refused
//! before the call learns of it, and the call is as it was.

use tokio::sync::oneshot;

use super::Visit;
use super::call::Return;
use super::lot::{consumed, expired};
use super::outlet::Outlet;
use super::seal::{State, bound_to, exactly};
use crate::error::Error;
use crate::protocol::client_modern::Rejected;
use crate::protocol::modern::may_ask;
use crate::protocol::object::{all_members, is_object, text};
use crate::telemetry::audit::Record;

use super::super::{Answer, now, today};

impl Visit<'_> {
    /// Continues the call that the request's state names.
    pub(super) async fn come_back(&self) -> Result<Answer, Error> {
        if !may_ask(self.message.method()) {
            return Err(Rejected::Answer("this method can't ask for input".to_owned()).into());
        }
        self.shared.limiter.pass(self.server, self.principal)?;
        let Some(state) = self.request.state else {
            // The gateway always gives one. Taken for a fresh call, the request would run twice.
            return Err(Rejected::State(
                "state_missing",
                "the answers come without a requestState",
            )
            .into());
        };
        let state = text(state)
            .and_then(|state| {
                self.shared
                    .seal
                    .open(&state, &bound_to(self.server, self.principal))
            })
            .ok_or(Rejected::State(
                "state_invalid",
                "the requestState is not valid",
            ))?;
        if state.is_expired(today()) {
            return Err(expired().into());
        }
        let exactly = exactly(self.message.bytes());
        match self.go_on(&state, exactly).await {
            Err(Error::Modern(rejected)) if rejected == consumed() => {
                let given = self.shared.lot.given(now(), state.call, exactly);
                let given = given.ok_or(rejected)?;
                // Its answers, if it has any, were given with the first of the two.
                let record = Record::answer_ignored(today())
                    .principal(self.principal)
                    .server(self.server)
                    .reason("outcome_given_again");
                self.shared.audit.note(Some(self.principal), record);
                Ok(Answer::Json(given.status, given.body))
            }
            other => other,
        }
    }

    /// Continues the call that this state names. `exactly` is what the request is to the last byte.
    async fn go_on(&self, state: &State, exactly: [u8; 32]) -> Result<Answer, Error> {
        let retries = self.shared.lot.find(state.call)?;
        if state.request != self.fingerprint() {
            return Err(Rejected::State(
                "state_mismatch",
                "the request is not the one that was asked about",
            )
            .into());
        }
        let (outlet, answer) = Outlet::new(
            self.message.id().unwrap_or("null"),
            self.request.token,
            self.request.level,
        );
        let (taken, verdict) = oneshot::channel();
        let back = Return {
            round: state.round,
            exactly,
            capabilities: self.request.capabilities,
            answers: self.answers()?,
            outlet,
            taken,
        };
        retries.send(Box::new(back)).await.map_err(|_| consumed())?;
        verdict.await.map_err(|_| consumed())??;
        answer.await.unwrap_or(Err(Error::SessionEnded))
    }

    /// Whether a request continues a call of ours. Answers alone do, if one of their keys can be ours;
    /// others are for questions that nobody here asked, and are ignored.
    pub(super) fn continues(&self) -> bool {
        let ours = |key: &str| {
            let number = key.strip_prefix(['e', 's', 'r', 'u']);
            number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
        };
        match (self.request.state, self.request.responses) {
            (Some(_), _) => true,
            (None, None) => false,
            (None, Some(responses)) => all_members(responses).map_or(true, |members| {
                members
                    .iter()
                    .any(|(name, _)| text(name).is_some_and(|key| ours(&key)))
            }),
        }
    }

    fn answers(&self) -> Result<Vec<(String, String)>, Error> {
        let Some(responses) = self.request.responses else {
            return Ok(Vec::new());
        };
        if !is_object(responses) {
            return Err(Rejected::Answer("inputResponses must be an object".to_owned()).into());
        }
        let members = all_members(responses)
            .map_err(|_| Rejected::Answer("inputResponses can't be read".to_owned()))?;
        let named =
            |(name, value): (String, &str)| Some((text(&name)?.into_owned(), value.to_owned()));
        Ok(members.into_iter().filter_map(named).collect())
    }
}
