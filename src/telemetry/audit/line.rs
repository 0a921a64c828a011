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
        out.extend_from_slice(br#""time":"#);
        calendar.time(it.time, out);
        word(r#","type":"#, Some(it.kind.word()), out);
        if let Some(principal) = &it.principal {
            identity(principal, out);
        }
        word(
            r#","server":"#,
            it.server.as_ref().map(ServerName::as_str),
            out,
        );
        word(r#","session":"#, it.texts.at(SESSION), out);
        word(r#","request":"#, it.texts.at(REQUEST), out);
        word(r#","method":"#, it.texts.at(METHOD), out);
        word(r#","target":"#, it.texts.at(TARGET), out);
        if let Some(question) = &it.question {
            question.spell(out);
        }
        list(r#","policy":"#, &it.policy, Step::spell, out);
        word(r#","decided_by":"#, it.decided_by, out);
        word(r#","action":"#, it.action.map(Action::word), out);
        word(r#","outcome":"#, it.outcome.map(Outcome::word), out);
        word(r#","reason":"#, it.reason, out);
        if let Some(code) = it.code {
            out.extend_from_slice(br#","code":"#);
            signed(code, out);
        }
        amount(r#","status":"#, it.status.map(u64::from), out);
        amount(r#","duration_ms":"#, it.duration_ms, out);
        amount(r#","waited_ms":"#, it.waited_ms, out);
        amount(r#","bytes":"#, it.bytes, out);
        amount(r#","count":"#, it.count, out);
    }
}

impl Question {
    fn spell(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","question":{"id":"#);
        text(self.id.as_str(), out);
        word(r#","method":"#, Some(self.method.as_str()), out);
        word(r#","mode":"#, self.mode.map(Mode::word), out);
        word(r#","host":"#, self.host.as_ref().map(Text::as_str), out);
        list(
            r#","fields":"#,
            &self.fields,
            |it, out| text(it.as_str(), out),
            out,
        );
        out.push(b'}');
    }
}

impl Step {
    fn spell(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"step":"#);
        text(self.word, out);
        word(r#","name":"#, self.name.as_ref().map(Text::as_str), out);
        word(r#","said":"#, self.said, out);
        out.push(b'}');
    }
}

fn identity(principal: &Principal, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","principal":{"issuer":"#);
    text(&capped(principal.issuer()), out);
    word(r#","subject":"#, Some(&capped(principal.subject())), out);
    word(
        r#","client":"#,
        principal.client().map(capped).as_deref(),
        out,
    );
    out.push(b'}');
}

/// A member, named with all that stands around its name: a text, where there is one.
fn word(member: &str, value: Option<&str>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        out.extend_from_slice(member.as_bytes());
        text(value, out);
    }
}

fn amount(member: &str, value: Option<u64>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        out.extend_from_slice(member.as_bytes());
        number(value, out);
    }
}

fn list<T>(member: &str, of: &[T], spell: impl Fn(&T, &mut Vec<u8>), out: &mut Vec<u8>) {
    for (at, element) in of.iter().enumerate() {
        if at == 0 {
            out.extend_from_slice(member.as_bytes());
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
