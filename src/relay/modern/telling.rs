//! What the client of a call is told: notifications while it waits, rounds that send it away, and how
//! the call ends.

use bytes::Bytes;

use super::super::{now, today};
use super::call::Driver;
use super::cursor;
use super::kept::Given;
use super::outlet::Outlet;
use super::pool::Pooled;
use super::seal;
use crate::error::Error;
use crate::protocol::client_modern::{Level, Rejected};
use crate::protocol::convert;
use crate::protocol::message::{self, Kind, Malformed, Message};
use crate::protocol::modern::meta_of_server;
use crate::protocol::object::{edit, members, text};
use crate::protocol::parked::{Asked, Input, Output};
use crate::protocol::renewal::Generation;
use crate::protocol::replay::Visit;
use crate::protocol::tasks;

impl Driver {
    /// Passes a notification on, if the attached request wants it.
    pub(super) fn forward(&mut self, notice: &Bytes) {
        let (Some(outlet), Ok(notice)) = (&mut self.outlet, Message::parse(notice)) else {
            return;
        };
        let Ok(notice) = unrelated(notice) else {
            return;
        };
        if notice.method() == "notifications/progress" {
            let (Some(token), Ok([Some(inner)])) = (&outlet.token, notice.param(["progressToken"]))
            else {
                return;
            };
            if text(inner) == text(&self.inner) {
                let notice = notice.replacing(inner, token);
                outlet.forward(notice);
            }
        } else if convert::is_loud_enough(Level::of(&notice), outlet.level) {
            outlet.forward(notice.bytes().clone());
        }
    }

    /// Sends the client away with these entries of `inputRequests`, if there is a place for one more
    /// that is away.
    pub(super) async fn send_round(&mut self, round: u32, entries: Vec<String>) -> Vec<Output> {
        let Some(outlet) = self.outlet.take() else {
            return Vec::new();
        };
        let session = &self.attempt.pooled.session;
        let Ok(parking) = session.shared.lot.park(session.principal()) else {
            let full = "too many calls wait for their clients to come back";
            let server = self.key.server.as_str();
            outlet.fail(Error::Capacity(full.into()), server).await;
            return self.call.handle(now(), Input::End);
        };
        let state = seal::State::new(self.id, round, self.request, today(), self.park());
        let sealed = match session.shared.seal.seal(&state, &self.bound) {
            Ok(sealed) => sealed,
            Err(error) => {
                outlet.fail(error, self.key.server.as_str()).await;
                return self.call.handle(now(), Input::End);
            }
        };
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":"{sealed}"}}"#,
            entries.join(",")
        );
        let info = self.attempt.pooled.info();
        let meta = info.as_deref().map(meta_of_server);
        let named = edit(&result, &[("_meta", meta.as_deref())]);
        let result = named.as_deref().unwrap_or(&result);
        self.parking = Some(parking);
        self.mark_away(true);
        let response = message::result(&outlet.id, result);
        outlet.finish(200, response).await;
        Vec::new()
    }

    pub(super) async fn finish(&mut self, response: &Message) {
        let Some(outlet) = self.outlet.take() else {
            return;
        };
        let pooled = &self.attempt.pooled;
        let need = pooled.session.state().needs.remove(self.inner.as_str());
        if let Some(required) = need.filter(|_| outlet.is_undecided() && has_failed(response)) {
            // The client can do something about it: declare more, and call again.
            let server = self.key.server.as_str();
            return outlet
                .fail(Rejected::Capability(required).into(), server)
                .await;
        }
        let (status, body) = response_for(
            response,
            &outlet.id,
            &self.method,
            (pooled, pooled.session.generation()),
        );
        self.end(outlet, status, body).await;
    }

    /// The last word to the attached request. Its connection may break before that is read: who comes
    /// back once more with the same request gets it again.
    async fn end(&self, outlet: Outlet, status: u16, body: Bytes) {
        if let Some(request) = self.answering {
            let session = &self.attempt.pooled.session;
            let given = Given {
                request,
                status,
                body: body.clone(),
            };
            let lot = &session.shared.lot;
            lot.keep(now(), self.id, session.principal(), given);
        }
        outlet.finish(status, body).await;
    }

    /// The client is told what it must declare for such a call.
    pub(super) async fn lack(&mut self, required: &'static str) {
        if let Some(outlet) = self.outlet.take() {
            let server = self.key.server.as_str();
            outlet
                .fail(Rejected::Capability(required).into(), server)
                .await;
        }
    }

    /// The person did not agree to what the call needs.
    pub(super) async fn decline(&mut self) {
        let Some(outlet) = self.outlet.take() else {
            return;
        };
        let body = if self.method == "tools/call" {
            let text = "the user declined to open the page that the server asked for";
            let result =
                format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}"#);
            let info = self.attempt.pooled.info();
            let result = convert::result(&self.method, &result, info.as_deref());
            message::result(&outlet.id, &result)
        } else {
            Error::Declined.body(Some(&outlet.id), Some(self.key.server.as_str()))
        };
        self.end(outlet, 200, body).await;
    }
}

/// Whether a response is an error, of the protocol or of a tool.
fn has_failed(response: &Message) -> bool {
    match response.result() {
        None => true,
        Some(result) => matches!(members(result, ["isError"]), Ok([Some("true")])),
    }
}

/// A response of a legacy server, in its session of this generation, as a modern client reads it, and the HTTP
/// status that goes with it.
pub(super) fn response_for(
    response: &Message,
    id: &str,
    method: &str,
    (pooled, generation): (&Pooled, Generation),
) -> (u16, Bytes) {
    if let (Kind::Result, Some(result)) = (response.kind(), response.result()) {
        let tag = pooled.tag(generation);
        let result = match &tag {
            Some(tag) => cursor::wrap(result, tag),
            None => result.into(),
        };
        let result = convert::result(method, &result, pooled.info().as_deref());
        return (200, message::result(id, &result));
    }
    let error = response.error().unwrap_or("{}");
    let missing = matches!(members(error, ["code"]), Ok([Some("-32601")]));
    let status = if missing && !super::is_declared(method, pooled) {
        404
    } else {
        200
    };
    let error = convert::error(error);
    (
        status,
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)),
    )
}

/// A notification without the name of the task that it belongs to.
fn unrelated(notice: Message) -> Result<Message, Malformed> {
    match notice.params().and_then(tasks::unrelated) {
        Some(params) => Message::parse(&notice.with_body("", &params)),
        None => Ok(notice),
    }
}

/// A question as an entry of `inputRequests`.
pub(super) fn question(asked: &Asked) -> String {
    entry(&asked.key, &asked.method, asked.params.as_deref())
}

/// An address as an entry of `inputRequests`.
pub(super) fn address(visit: &Visit) -> String {
    entry(&visit.key, "elicitation/create", Some(&visit.params))
}

fn entry(key: &str, method: &str, params: Option<&str>) -> String {
    match params {
        Some(params) => format!(r#""{key}":{{"method":"{method}","params":{params}}}"#),
        None => format!(r#""{key}":{{"method":"{method}"}}"#),
    }
}
