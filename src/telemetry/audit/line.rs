//! How a record is spelled: the members of its line, but for its place in the chain.
//!
//! # Invariants
//! - Pure: appends bytes to what is there.
//! - The order of members is part of the format ([`super::chain`]), and what a record was not told is left out.

use super::letters::{Calendar, number, signed, text};
use super::record::{
    Action, Content, Kind, METHOD, Mode, Outcome, Question, REQUEST, Record, SESSION, Step, TARGET,
};
use super::text::{Text, capped};
use crate::auth::Principal;
use crate::config::ServerName;

impl Record {
    /// Its members in their order, without braces around them.
    pub(super) fn spell(&self, calendar: &mut Calendar, out: &mut Vec<u8>) {
        let it: &Content = &self.0;
        out.extend_from_slice(b"\"time\":");
        calendar.time(it.time, out);
        word("type", Some(it.kind.word()), out);
        if let Some(principal) = &it.principal {
            identity(principal, out);
        }
        word("server", it.server.as_ref().map(ServerName::as_str), out);
        word("session", it.texts.at(SESSION), out);
        word("request", it.texts.at(REQUEST), out);
        word("method", it.texts.at(METHOD), out);
        word("target", it.texts.at(TARGET), out);
        if let Some(question) = &it.question {
            question.spell(out);
        }
        list("policy", &it.policy, Step::spell, out);
        word("decided_by", it.decided_by, out);
        word("action", it.action.map(Action::word), out);
        word("outcome", it.outcome.map(Outcome::word), out);
        word("reason", it.reason, out);
        if let Some(code) = it.code {
            name("code", out);
            signed(code, out);
        }
        amount("status", it.status.map(u64::from), out);
        amount("duration_ms", it.duration_ms, out);
        amount("waited_ms", it.waited_ms, out);
        amount("bytes", it.bytes, out);
        amount("count", it.count, out);
    }
}

impl Question {
    fn spell(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"question\":{\"id\":");
        text(self.id.as_str(), out);
        word("method", Some(self.method.as_str()), out);
        word("mode", self.mode.map(Mode::word), out);
        word("host", self.host.as_ref().map(Text::as_str), out);
        list(
            "fields",
            &self.fields,
            |it, out| text(it.as_str(), out),
            out,
        );
        out.push(b'}');
    }
}

impl Step {
    fn spell(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"step\":");
        text(self.word, out);
        word("name", self.name.as_ref().map(Text::as_str), out);
        word("said", self.said, out);
        out.push(b'}');
    }
}

fn identity(principal: &Principal, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"principal\":{\"issuer\":");
    text(&capped(principal.issuer()), out);
    word("subject", Some(&capped(principal.subject())), out);
    word("client", principal.client().map(capped).as_deref(), out);
    out.push(b'}');
}

/// A comma, and the name of a member of ours.
fn name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn word(member: &str, value: Option<&str>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        name(member, out);
        text(value, out);
    }
}

fn amount(member: &str, value: Option<u64>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        name(member, out);
        number(value, out);
    }
}

fn list<T>(member: &str, of: &[T], spell: impl Fn(&T, &mut Vec<u8>), out: &mut Vec<u8>) {
    for (at, element) in of.iter().enumerate() {
        if at == 0 {
            name(member, out);
        }
        out.push(if at == 0 { b'[' } else { b',' });
        spell(element, out);
    }
    if !of.is_empty() {
        out.push(b']');
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::GatewayStarted => "gateway.started",
            Self::GatewayStopped => "gateway.stopped",
            Self::SessionOpened => "session.opened",
            Self::SessionRenewed => "session.renewed",
            Self::SessionClosed => "session.closed",
            Self::Call => "call",
            Self::QuestionAsked => "question.asked",
            Self::QuestionAnswered => "question.answered",
            Self::AnswerIgnored => "answer.ignored",
            Self::AnswerLost => "answer.lost",
            Self::Refused => "refused",
            Self::Gap => "audit.gap",
        }
    }
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
        }
    }
}
