//! What the audit log says of a request, and of how it ended.

use crate::error::Error;
use crate::protocol::message::{Kind, Message};
use crate::protocol::object;
use crate::telemetry::audit::{Outcome, Record};

/// A record about a request, and the tool, prompt or resource (JSON text) that it is about.
pub(super) fn about_call(record: Record, request: &Message, target: Option<&str>) -> Record {
    let record = record.method(request.method());
    let record = match request.id() {
        Some(id) => record.request(id),
        None => record,
    };
    match (
        target.and_then(object::text),
        request.method().starts_with("resources/"),
    ) {
        (Some(uri), true) => record.resource(&uri),
        (Some(name), false) => record.target(&name),
        (None, _) => record,
    }
}

pub(super) fn of_response(record: Record, response: &Message) -> Record {
    let record = record.bytes(response.bytes().len() as u64);
    if response.kind() != Kind::Error {
        return record.outcome(Outcome::Ok);
    }
    let record = record.outcome(Outcome::Error);
    match code_of(response) {
        Some(code) => record.code(code),
        None => record,
    }
}

pub(super) fn of_failure(record: Record, error: &Error) -> Record {
    let outcome = match error {
        Error::Slow(_) | Error::Silent(_) => Outcome::Timeout,
        Error::Cancelled => Outcome::Cancelled,
        Error::SessionEnded
        | Error::SessionLost
        | Error::Forgotten
        | Error::ForgottenAgain
        | Error::Broken => Outcome::Lost,
        _ => Outcome::Error,
    };
    record
        .outcome(outcome)
        .reason(error.reason())
        .code(error.code().into())
}

fn code_of(response: &Message) -> Option<i64> {
    let [code] = object::members(response.error()?, ["code"]).ok()?;
    code?.parse().ok()
}
