//! A modern client at a modern server: each request stands for itself on both sides, so it is passed
//! on under an id of its own, and what comes back is passed back.
//!
//! # Invariants
//! - Nothing is kept between requests. Questions, answers and state are ordinary traffic here.
//! - Who goes away cancels: when the client is gone the server's stream is closed, at once. So it is
//!   when the client does not read any more.
//! - The method and the name in the headers are made of the body; what the client put into
//!   `Mcp-Param-*` goes along, since only the server can tell what it means.

use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use tokio_util::sync::CancellationToken;

use super::deliver::{Item, STALLED, room};
use super::exchange::{about_call, of_failure, of_response};
use super::pending::{action_of, describe};
use super::rpc::{self, Head, Next};
use super::sink::Sink;
use super::{Answer, Relay, Shared, now, today};
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::{Accept, Asked};
use crate::protocol::client_modern::Rejected;
use crate::protocol::elicitation::{Action, Summary};
use crate::protocol::message::{self, Kind, Message};
use crate::protocol::mirror::{Marks, PARAM_PREFIX};
use crate::protocol::modern::META_SUBSCRIPTION;
use crate::protocol::object::{edit, elements, entries, members, quoted, text};
use crate::protocol::server_modern::{Outcome, Wanted, headers};
use crate::protocol::subscription;
use crate::protocol::version::MODERN;
use crate::telemetry::audit::{self, Record, Slot};
use crate::upstream::http::HttpServer;

/// A request on its way through.
struct Passage {
    shared: Arc<Shared>,
    server: Arc<HttpServer>,
    principal: Principal,
    request: Message,
    /// What the client can be asked.
    capabilities: ClientCapabilities,
    /// Its id at the server (JSON text).
    id: String,
    headers: HeaderMap,
    sink: Sink,
    /// Set when the client is gone before its answer has a head.
    gone: CancellationToken,
    record: Record,
    slot: Slot,
    began: Instant,
    admission: Admission,
}

/// How it ended.
enum End {
    /// By a response for the client, with the HTTP status that goes with it.
    Response(u16, Message),
    /// By an error of the gateway's.
    Failed(Error),
    /// Nobody is there to hear.
    Gone,
    /// The gateway ends, and says so in the way that a subscription has.
    Closed,
}

impl Relay {
    /// Takes a valid request of a modern client to a modern server. `from` are the headers that it
    /// came with. To drop the future is to cancel the request, and so is to drop the stream of the
    /// answer: it must not run apart from its client's connection.
    ///
    /// # Errors
    /// When it can't begin, or fails before the answer has a head.
    pub async fn through(
        &self,
        server: &ServerName,
        principal: &Principal,
        request: Message,
        from: &HeaderMap,
        capabilities: ClientCapabilities,
        admission: Admission,
    ) -> Result<Answer, Error> {
        let shared = &self.0;
        if shared.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let upstream = shared
            .servers
            .get(server)
            .ok_or_else(|| Error::UnknownServer(server.to_string()))?;
        let asked = Asked::read(&request)?;
        let slot = shared.audit.reserve().await.map_err(|_| Error::AuditFull)?;
        let record = Record::call(today()).principal(principal).server(server);
        let gone = CancellationToken::new();
        let (sink, answer) = Sink::new(Accept {
            json: true,
            events: true,
        });
        let passage = Passage {
            shared: Arc::clone(shared),
            server: Arc::clone(upstream),
            principal: principal.clone(),
            id: upstream.next_id(),
            headers: mirrored(&request, from),
            record: about_call(record, &request, asked.target),
            request,
            capabilities,
            sink,
            gone: gone.clone(),
            slot,
            began: now(),
            admission,
        };
        let left = gone.drop_guard();
        // A subscription ends with the gateway; what does work gets time to end by itself.
        let tracker = if passage.is_subscription() {
            &shared.tasks
        } else {
            &shared.calls
        };
        tracker.spawn(passage.run());
        let answer = answer.await.unwrap_or(Err(Error::ShuttingDown));
        left.disarm();
        answer
    }
}

/// The headers of the request at the server.
fn mirrored(request: &Message, from: &HeaderMap) -> HeaderMap {
    let mut headers = headers(request, &Marks::default());
    for (name, value) in from {
        if name.as_str().starts_with(PARAM_PREFIX) {
            let mut value = value.clone();
            value.set_sensitive(true);
            headers.append(name, value);
        }
    }
    headers
}

impl Passage {
    async fn run(mut self) {
        self.record_answers().await;
        let end = self.until_the_end().await;
        let took = now().saturating_duration_since(self.began);
        let record = self.record.at(today()).duration(took);
        drop(self.admission);
        let id = self.request.id().unwrap_or("null");
        match end {
            End::Response(status, response) => {
                self.slot.write(of_response(record, &response));
                self.sink.finish(status, response.bytes().clone()).await;
            }
            End::Failed(error) => {
                self.slot.write(of_failure(record, &error));
                let body = error.body(Some(id), Some(self.server.name().as_str()));
                self.sink.fail(error, body).await;
            }
            End::Gone => self.slot.write(of_failure(record, &Error::Cancelled)),
            End::Closed => {
                self.slot.write(of_failure(record, &Error::ShuttingDown));
                self.sink.finish(200, subscription::complete(id)).await;
            }
        }
    }

    /// Relays until one of those ends it who may.
    async fn until_the_end(&mut self) -> End {
        let shared = Arc::clone(&self.shared);
        let (gone, subscription) = (self.gone.clone(), self.is_subscription());
        let limit = shared.config.timeouts.call;
        tokio::select! {
            end = self.relay() => end.unwrap_or_else(End::Failed),
            () = gone.cancelled() => End::Gone,
            () = tokio::time::sleep(limit), if !subscription => End::Failed(Error::Slow(limit)),
            () = shared.ending.cancelled(), if subscription => End::Closed,
            () = shared.over.cancelled() => End::Failed(Error::ShuttingDown),
        }
    }

    async fn relay(&mut self) -> Result<End, Error> {
        let server = Arc::clone(&self.server);
        let (headers, body) = (self.headers.clone(), self.request.with_id(&self.id));
        let id = self.id.clone();
        let sending = rpc::send(&server, &headers, body, &id);
        tokio::pin!(sending);
        let keep_alive = self.shared.config.timeouts.keep_alive;
        let head = if let Ok(head) = tokio::time::timeout(keep_alive, &mut sending).await {
            head?
        } else {
            // Nothing for so long: a stream can at least be kept alive.
            let Some(pipe) = self.sink.open_alone() else {
                return Ok(End::Gone);
            };
            tokio::select! {
                head = &mut sending => head?,
                () = pipe.closed() => return Ok(End::Gone),
            }
        };
        let mut stream = match head {
            Head::Response(status, response) => return self.settle(status, &response).await,
            Head::Stream(stream) => stream,
        };
        loop {
            let next = match self.sink.pipe() {
                Some(pipe) => tokio::select! {
                    next = stream.next() => next?,
                    () = pipe.closed() => return Ok(End::Gone),
                },
                None => match tokio::time::timeout(keep_alive, stream.next()).await {
                    Ok(next) => next?,
                    Err(_silent) => {
                        if self.sink.open_alone().is_none() {
                            return Ok(End::Gone);
                        }
                        continue;
                    }
                },
            };
            match next {
                Next::Response(response) => return self.settle(200, &response).await,
                Next::Notice(notice) => {
                    let Some(pipe) = self.sink.open_alone() else {
                        return Ok(End::Gone);
                    };
                    let Ok(room) = room(&pipe, STALLED).await else {
                        return Ok(End::Gone);
                    };
                    room.send(self.item(&notice));
                }
            }
        }
    }

    /// A notification, as the client knows what it belongs to.
    fn item(&self, notice: &Message) -> Item {
        let bytes = match notice.params().and_then(|params| self.retagged(params)) {
            Some(params) => notice.with_body("null", &params),
            None => notice.bytes().clone(),
        };
        match notice.method() {
            "notifications/progress" => Item::Progress(bytes),
            _ => Item::Notice(bytes),
        }
    }

    /// The object with the subscription under the client's name; none when it belongs to none.
    fn retagged(&self, object: &str) -> Option<String> {
        if !self.is_subscription() {
            return None;
        }
        let [meta] = members(object, ["_meta"]).ok()?;
        let [tag] = members(meta?, [META_SUBSCRIPTION]).ok()?;
        if tag? != self.id {
            return None;
        }
        let meta = edit(meta?, &[(META_SUBSCRIPTION, self.request.id())]).ok()?;
        Some(edit(object, &[("_meta", Some(&meta))]).ok()?.into_owned())
    }

    fn is_subscription(&self) -> bool {
        self.request.method() == "subscriptions/listen"
    }

    /// What the client gets of a response.
    async fn settle(&self, status: u16, response: &Message) -> Result<End, Error> {
        let id = self.request.id().unwrap_or("null");
        if response.kind() == Kind::Error {
            let [code] = members(response.error().unwrap_or("{}"), ["code"]).unwrap_or_default();
            // The version is what the two of us speak, not the client's.
            if code == Some("-32022") {
                self.server.doubt_era();
                return Err(Error::NoVersion);
            }
            let status = if (400..500).contains(&status) {
                status
            } else {
                200
            };
            let response = Message::parse(&response.with_id(id))?;
            return Ok(End::Response(status, response));
        }
        let result = response.result().unwrap_or("{}");
        if let Outcome::InputRequired(required) = Outcome::read(self.request.method(), result) {
            self.check_declared(&required.questions)?;
            self.record_questions(&required.questions).await;
        }
        let changed = match self.request.method() {
            "server/discover" => shared_versions(result),
            _ => self.retagged(result),
        };
        let response = match changed {
            Some(result) => response.with_body(id, &result),
            None => response.with_id(id),
        };
        Ok(End::Response(200, Message::parse(&response)?))
    }

    /// Some servers ask whatever the client declared (2026-07-28 patterns/mrtr: they must not). The
    /// client learns what it would have to declare.
    fn check_declared(&self, questions: &[Wanted]) -> Result<(), Error> {
        for wanted in questions {
            let params = wanted.params.as_deref().unwrap_or("{}");
            let question = Message::parse(&message::request("1", &wanted.method, params))?;
            let allowed = self.capabilities.allow(&question);
            allowed.map_err(|undeclared| Rejected::Capability(undeclared.required))?;
        }
        Ok(())
    }

    async fn record_questions(&self, questions: &[Wanted]) {
        for wanted in questions {
            let params = wanted.params.as_deref().unwrap_or("{}");
            let id = quoted(&wanted.key);
            let summary = Message::parse(&message::request("1", &wanted.method, params))
                .map_or(Summary::Other, |question| Summary::of(&question));
            let record = self.about(Record::question_asked);
            let record = record.question(describe(&id, &wanted.method, &summary));
            self.shared.audit.write(record).await;
        }
    }

    /// The answers that a retry brings are on record before what they lead to.
    async fn record_answers(&self) {
        let [responses] = self.request.param(["inputResponses"]).unwrap_or_default();
        let answers = responses
            .and_then(|it| entries(it).ok())
            .unwrap_or_default();
        for (key, result) in answers {
            let method = question_of(result);
            let answer = message::result("1", result);
            let action = Message::parse(&answer).map(|answer| Action::of(method, &answer));
            let mut record = self
                .about(Record::question_answered)
                .question(audit::Question::new(&quoted(&key), method))
                .outcome(audit::Outcome::Ok);
            if let Some(action) = action.ok().and_then(action_of) {
                record = record.action(action);
            }
            self.shared.audit.write(record).await;
        }
    }

    fn about(&self, kind: fn(std::time::SystemTime) -> Record) -> Record {
        kind(today())
            .principal(&self.principal)
            .server(self.server.name())
    }
}

/// What was asked, as far as an answer shows it: the question was in another request.
fn question_of(result: &str) -> &'static str {
    match members(result, ["action", "roots"]) {
        Ok([Some(_), _]) => "elicitation/create",
        Ok([_, Some(_)]) => "roots/list",
        _ => "sampling/createMessage",
    }
}

/// What a server discovered, with the versions that can be spoken through the gateway.
fn shared_versions(result: &str) -> Option<String> {
    const MOST: usize = 1000;
    let [versions] = members(result, ["supportedVersions"]).ok()?;
    let shared: Vec<_> = elements(versions?, MOST)
        .ok()?
        .into_iter()
        .filter(|version| text(version).is_some_and(|it| MODERN.contains(&&*it)))
        .collect();
    let shared = format!("[{}]", shared.join(","));
    let edited = edit(result, &[("supportedVersions", Some(&shared))]).ok()?;
    Some(edited.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discovery_names_the_versions_of_both() {
        let found = shared_versions(r#"{"supportedVersions":["2027-01-01","2026-07-28"],"x":1.0}"#);
        let expected = r#"{"supportedVersions":["2026-07-28"],"x":1.0}"#;
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn an_answer_shows_what_was_asked() {
        assert_eq!(question_of(r#"{"action":"accept"}"#), "elicitation/create");
        assert_eq!(question_of(r#"{"roots":[]}"#), "roots/list");
        let message = r#"{"role":"assistant","content":{},"model":"m"}"#;
        assert_eq!(question_of(message), "sampling/createMessage");
    }
}
