//! A modern client at a modern server: each request stands for itself on both sides, so it is passed
//! on under an id of its own, and what comes back is passed back. Questions come as results, and their
//! answers with the next request; policy looks at both on their way.
//!
//! ```text
//! client ── request ──► come_back ──► server          answers: are they good, are there others to add
//! client ◄── result ─────── ask ◄──── server          questions: is the person asked, and how
//!                            └──────► server          all are answered: the server goes on at once
//! ```
//!
//! # Invariants
//! - No work is held between requests. What a client was asked is remembered for the look at its answers
//!   ([`table`]), and counts as waiting until it comes back, or its time is over ([`lost`]); what the server has to know again is in its state, with the client. A call that needs an [`approval`](super::approval) has one.
//! - What policy does not change passes byte for byte.
//! - Who goes away cancels: when the client is gone the server's stream is closed, at once. So it is
//!   when the client does not read any more.
//! - The method and the name in the headers are made of the body; what the client put into
//!   `Mcp-Param-*` goes along, since only the server can tell what it means.

mod answers;
mod asking;
mod flow;
mod lost;
mod rewrite;
mod table;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use tokio_util::sync::CancellationToken;

use self::asking::Step;
use self::flow::Flow;
pub(super) use self::table::Table;
use super::account::{about_call, of_failure, of_response};
use super::approval::{Approved, Gate};
use super::caller::Caller;
use super::deliver::{Item, STALLED, room};
use super::lease::whose;
use super::rpc::{self, Head, Next};
use super::sink::Sink;
use super::{Answer, Relay, Shared, now, today};
use crate::auth::Principal;
use crate::config::ServerName;
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::client_legacy::{Accept, Asked};
use crate::protocol::clock::Late;
use crate::protocol::message::Message;
use crate::protocol::mirror::{Marks, PARAM_PREFIX};
use crate::protocol::modern::META_SUBSCRIPTION;
use crate::protocol::object::{edit, elements, members, text};
use crate::protocol::rounds::MOST_ROUNDS;
use crate::protocol::server_modern::{Outcome, headers};
use crate::protocol::subscription;
use crate::protocol::version::MODERN;
use crate::telemetry::audit::{Record, Slot};
use crate::upstream::Whose;
use crate::upstream::server::Upstream;

/// A request on its way through.
struct Passage {
    shared: Arc<Shared>,
    server: Arc<Upstream>,
    whose: Whose,
    flow: Flow,
    /// The request as the server gets it, but for the id.
    sent: Message,
    /// The approval of the person, where it needed one.
    approved: Option<Approved>,
    /// Its id at the server (JSON text).
    id: String,
    /// How often the gateway answered the server by itself.
    rounds: u32,
    /// The last progress that the client was told of.
    progress: f64,
    headers: HeaderMap,
    sink: Sink,
    keep_alive: Duration,
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
    pub(super) async fn through(
        &self,
        server: &ServerName,
        principal: &Principal,
        request: Message,
        from: &HeaderMap,
        caller: Caller,
        admission: Admission,
    ) -> Result<Answer, Error> {
        let shared = &self.0;
        if shared.ending.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let upstream = shared.server(server)?;
        let policy = shared.policy(server)?;
        let asked = Asked::read(&request)?;
        let slot = shared.audit.reserve().await.map_err(|_| Error::AuditFull)?;
        let record = Record::call(today()).principal(principal).server(server);
        let record = about_call(record, &request, asked.target);
        let (request, approved) = match shared.gate(server, principal, &caller, &request).await? {
            Gate::Open(request, approved) => (request, approved),
            Gate::Closed(closed) => {
                slot.write(closed.record(record));
                return Ok(Answer::Json(200, closed.response.bytes().clone()));
            }
        };
        let gone = CancellationToken::new();
        let (sink, answer) = Sink::new(Accept {
            json: true,
            events: true,
        });
        let headers = mirrored(&request, from);
        let record = about_call(record, &request, asked.target);
        let flow = Flow::new((server, principal), policy, caller, request);
        let passage = Passage {
            shared: Arc::clone(shared),
            server: Arc::clone(upstream),
            whose: whose(principal),
            sent: flow.for_server()?,
            flow,
            id: upstream.next_id(),
            rounds: 0,
            progress: f64::NEG_INFINITY,
            headers,
            record,
            approved,
            sink,
            keep_alive: shared.config.timeouts.keep_alive,
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
        let end = self.until_the_end().await;
        let end = self.carrying(end).unwrap_or_else(End::Failed);
        let took = now().saturating_duration_since(self.began);
        let record = self.record.at(today()).duration(took);
        drop(self.admission);
        let id = self.flow.request.id().unwrap_or("null");
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

    /// A round of a call that was approved goes to the client with a state that says so.
    fn carrying(&self, end: End) -> Result<End, Error> {
        let (End::Response(status, response), Some(approved)) = (&end, &self.approved) else {
            return Ok(end);
        };
        let result = response.result().unwrap_or("{}");
        match approved.carry(&self.shared, result)? {
            Some(changed) => {
                let id = response.id().unwrap_or("null");
                let response = Message::parse(&response.with_body(id, &changed))?;
                Ok(End::Response(*status, response))
            }
            None => Ok(end),
        }
    }

    /// Relays until one of those ends it who may.
    async fn until_the_end(&mut self) -> End {
        let shared = Arc::clone(&self.shared);
        let (gone, subscription) = (self.gone.clone(), self.is_subscription());
        let limit = shared.patience(self.server.name()).call;
        tokio::select! {
            end = self.relay() => end.unwrap_or_else(End::Failed),
            () = gone.cancelled() => End::Gone,
            () = tokio::time::sleep(limit), if !subscription => End::Failed(Error::Slow(limit)),
            () = shared.ending.cancelled(), if subscription => End::Closed,
            () = shared.over.cancelled() => End::Failed(Error::ShuttingDown),
        }
    }

    async fn relay(&mut self) -> Result<End, Error> {
        if let Some(end) = self.come_back().await? {
            return Ok(end);
        }
        while self.rounds <= MOST_ROUNDS {
            let Some((status, response)) = self.round().await? else {
                return Ok(End::Gone);
            };
            match self.settle(status, &response).await? {
                Step::Over(end) => return Ok(end),
                Step::On(request) => self.sent = request,
            }
            self.rounds += 1;
            self.id = self.server.next_id();
        }
        let why = "the server asked again and again";
        self.fail(why, Error::Interaction(why))
    }

    /// Sends the request, and passes on what comes before its response. None: the client is gone.
    async fn round(&mut self) -> Result<Option<(u16, Message)>, Error> {
        let server = Arc::clone(&self.server);
        let (headers, id) = (self.headers.clone(), self.id.clone());
        let patience = self.shared.patience(server.name());
        let sending = rpc::send(&server, &self.whose, &headers, self.sent.with_id(&id), &id);
        let sending = rpc::in_time(&server, Late::Answer(patience.headers), sending);
        let Some(head) = alive(&mut self.sink, self.keep_alive, sending).await else {
            return Ok(None);
        };
        let mut stream = match head? {
            Head::Response(status, response) => return Ok(Some((status, response))),
            Head::Stream(stream) => stream,
        };
        loop {
            // A subscription may have nothing to tell for long.
            let idle = Late::Word(if self.is_subscription() {
                Duration::MAX
            } else {
                patience.idle
            });
            let next = rpc::in_time(&server, idle, stream.next());
            let Some(next) = alive(&mut self.sink, self.keep_alive, next).await else {
                return Ok(None);
            };
            match next? {
                Next::Response(response) => return Ok(Some((200, response))),
                Next::Notice(notice) => {
                    let Some(item) = self.item(&notice) else {
                        continue;
                    };
                    let Some(pipe) = self.sink.open_alone() else {
                        return Ok(None);
                    };
                    let Ok(room) = room(&pipe, STALLED).await else {
                        return Ok(None);
                    };
                    room.send(item);
                }
            }
        }
    }

    /// A notification, as the client knows what it belongs to. None: it is not for the client, to whom rounds
    /// of which it does not know are one request, in which progress rises.
    fn item(&mut self, notice: &Message) -> Option<Item> {
        if notice.method() == "notifications/progress"
            && let Ok([Some(progress)]) = notice.param(["progress"])
            && let Ok(progress) = progress.parse()
        {
            if self.rounds > 0 && progress <= self.progress {
                return None;
            }
            self.progress = progress;
        }
        let bytes = match notice.params().and_then(|params| self.retagged(params)) {
            Some(params) => notice.with_body("null", &params),
            None => notice.bytes().clone(),
        };
        Some(match notice.method() {
            "notifications/progress" => Item::Progress(bytes),
            _ => Item::Notice(bytes),
        })
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
        let meta = edit(meta?, &[(META_SUBSCRIPTION, self.flow.request.id())]).ok()?;
        Some(edit(object, &[("_meta", Some(&meta))]).ok()?.into_owned())
    }

    fn is_subscription(&self) -> bool {
        self.flow.request.method() == "subscriptions/listen"
    }

    /// How long a person may think about a question.
    fn patience(&self) -> Duration {
        let patience = self.flow.policy.patience();
        patience.unwrap_or(self.shared.config.timeouts.question)
    }

    /// What is done about a response.
    async fn settle(&mut self, status: u16, response: &Message) -> Result<Step, Error> {
        let Some(result) = response.result() else {
            return self.settle_error(status, response).map(Step::Over);
        };
        let method = self.flow.request.method();
        match Outcome::read(method, result) {
            Outcome::InputRequired(required) => return self.ask(response, required).await,
            // What policy can't look at, a client could take for a question all the same.
            Outcome::Invalid(why) if may_be_question(result) => {
                return Err(Error::Misbehaved(format!("sent {why}").into()));
            }
            _ => {}
        }
        let changed = match method {
            "server/discover" => shared_versions(result),
            _ => self.retagged(result),
        };
        let id = self.flow.request.id().unwrap_or("null");
        let response = match changed {
            Some(result) => response.with_body(id, &result),
            None => response.with_id(id),
        };
        Ok(Step::Over(End::Response(200, Message::parse(&response)?)))
    }

    fn settle_error(&self, status: u16, response: &Message) -> Result<End, Error> {
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
        let id = self.flow.request.id().unwrap_or("null");
        let response = Message::parse(&response.with_id(id))?;
        Ok(End::Response(status, response))
    }
}

/// Waits for something that the client waits for. When it takes long, the answer becomes a stream, which can
/// be kept alive. None: the client is gone.
async fn alive<T>(
    sink: &mut Sink,
    keep_alive: Duration,
    waiting: impl Future<Output = T>,
) -> Option<T> {
    tokio::pin!(waiting);
    if sink.pipe().is_none()
        && let Ok(done) = tokio::time::timeout(keep_alive, &mut waiting).await
    {
        return Some(done);
    }
    let pipe = sink.open_alone()?;
    tokio::select! {
        done = &mut waiting => Some(done),
        () = pipe.closed() => None,
    }
}

/// Whether some reader takes a result (JSON text) for one that asks.
fn may_be_question(result: &str) -> bool {
    match members(result, ["resultType"]) {
        Ok([kind]) => kind.and_then(text).as_deref() == Some("input_required"),
        Err(_) => true,
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
    fn what_could_be_a_question_is_not_passed_as_something_else() {
        for asks in [
            r#"{"resultType":"input_required"}"#,
            r#"{"resultType":"complete","ResultType":"input_required"}"#,
        ] {
            assert!(may_be_question(asks), "{asks}");
        }
        for other in [r#"{"resultType":"task"}"#, "{}"] {
            assert!(!may_be_question(other), "{other}");
        }
    }
}
