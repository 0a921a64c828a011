//! Carries a legacy client's request through the rounds of a modern server
//! ([`Rounds`] decides, this carries out).
//!
//! # Invariants
//! - Questions go to the client through the same book, limits, clocks and records as those of a legacy
//!   server; only their answers come back here.
//! - At most one request is in flight at the server. To drop it is to cancel it there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::deliver::Item;
use super::exchange::{End, Exchange, misbehaved};
use super::lease::Modern;
use super::now;
use super::pending::{Asker, Driver as Place};
use super::rpc::{self, Head, Next};
use super::session::LiveSession;
use super::sink::Sink;
use super::teardown::Ending;
use crate::error::Error;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Asked;
use crate::protocol::clock::Late;
use crate::protocol::era::Era;
use crate::protocol::message::{self, Message};
use crate::protocol::mirror::Marks;
use crate::protocol::object::{edit, members, quoted, text};
use crate::protocol::rounds::{self, Input, Leg, Output, Rounds};
use crate::protocol::server_modern::{self, Envelope, Outcome, Retry, Wanted};
use crate::protocol::session::LegId;
use crate::protocol::to_legacy::{self, Asked as Put, Failure, Tool};

/// The most questions of one round. As many answers may wait to be read here.
const MOST_QUESTIONS: usize = 64;

/// A request on its way through the rounds.
struct Driver<'e> {
    session: Arc<LiveSession>,
    modern: &'e Modern,
    request: &'e Message,
    leg: LegId,
    sink: &'e mut Sink,
    /// The client's progress token (JSON text).
    token: Option<String>,
    capabilities: String,
    rounds: Rounds,
    tool: Option<Tool>,
    /// What a tool needs to know was read again, after the server refused it.
    refreshed: bool,
    answers: Receiver<Input>,
    answered: Sender<Input>,
    end: Option<End>,
}

impl Exchange {
    /// Takes the request to a modern server.
    pub(super) async fn drive(&mut self, modern: &Modern) -> End {
        if let Some(end) = self.answer_here(modern).await {
            return end;
        }
        let stop = self.stop(Duration::ZERO);
        let (rounds, first) = Rounds::begin(
            self.request.method(),
            // Who can't be reached while they wait is not asked.
            if self.sink.can_ask() {
                modern.can
            } else {
                ClientCapabilities::default()
            },
        );
        let capabilities = modern.envelope(|envelope| {
            if self.sink.can_ask() {
                envelope.capabilities.to_owned()
            } else {
                to_legacy::without_questions(envelope.capabilities)
            }
        });
        let token = Asked::read(&self.request)
            .ok()
            .and_then(|asked| asked.token);
        let (answered, answers) = channel(MOST_QUESTIONS);
        let mut driver = Driver {
            session: Arc::clone(&self.session),
            modern,
            request: &self.request,
            leg: self.leg,
            token: token.map(str::to_owned),
            sink: &mut self.sink,
            capabilities,
            rounds,
            tool: None,
            refreshed: false,
            answers,
            answered,
            end: None,
        };
        let error = tokio::select! {
            end = driver.run(first) => {
                if let Some(reason) = failed_by_asking(&driver.rounds, &end) {
                    self.record = self.record.clone().reason(reason);
                }
                return end;
            }
            error = stop => error,
        };
        driver.give_up(&error).await;
        End::Failed(error)
    }
}

/// A tool that failed has a result, but the record says why.
fn failed_by_asking(rounds: &Rounds, end: &End) -> Option<&'static str> {
    match (rounds.end(), end) {
        (Some(rounds::End::Interaction(_)), End::Response(..)) => Some("interaction_failed"),
        (Some(rounds::End::Server(_)), End::Response(..)) => Some("upstream_misbehaved"),
        _ => None,
    }
}

impl Driver<'_> {
    async fn run(&mut self, first: Output) -> End {
        let mut outputs = VecDeque::from([first]);
        loop {
            let Some(output) = outputs.pop_front() else {
                let Some(answer) = self.answers.recv().await else {
                    return End::Failed(Error::SessionEnded);
                };
                outputs.extend(self.rounds.take(now(), answer));
                continue;
            };
            let input = match output {
                Output::Send(retry) => Some(self.round(&retry).await),
                Output::Ask(leg, wanted) => self.ask(leg, &wanted).await,
                Output::Withdraw(leg) => {
                    self.call_off(leg).await;
                    None
                }
                Output::Wait(until) => {
                    let pause = until.saturating_duration_since(now());
                    self.alive(tokio::time::sleep(pause)).await;
                    Some(Input::Timer)
                }
                Output::Done(end) => return self.ended(end),
            };
            if let Some(input) = input {
                outputs.extend(self.rounds.take(now(), input));
            }
        }
    }

    /// The request must stop: what is open at the client is called off.
    async fn give_up(&mut self, error: &Error) {
        let input = match error {
            Error::Cancelled => Input::Cancelled,
            Error::Slow(_) | Error::Silent(_) => Input::Expired,
            _ => Input::Ended,
        };
        for output in self.rounds.take(now(), input) {
            if let Output::Withdraw(leg) = output {
                self.call_off(leg).await;
            }
        }
    }

    async fn call_off(&self, leg: Leg) {
        let own = |asker: &Asker| matches!(asker, Asker::Driver(place) if place.leg == leg);
        self.session.call_off(self.leg, own).await;
    }

    /// Sends the request, and says what came of it.
    async fn round(&mut self, retry: &Retry) -> Input {
        loop {
            let input = match self.try_round(retry).await {
                Ok(Some(input)) => input,
                // The server did not look at it; what was wrong with it was put right.
                Ok(None) => continue,
                Err(Error::Broken) => Input::Broken,
                Err(error) => {
                    self.end = Some(End::Failed(error));
                    Input::Answered
                }
            };
            return input;
        }
    }

    async fn try_round(&mut self, retry: &Retry) -> Result<Option<Input>, Error> {
        let session = Arc::clone(&self.session);
        let server = session.server();
        if self.request.method() == "tools/call"
            && let Err(end) = self.look_up_tool().await
        {
            self.end = Some(end);
            return Ok(Some(Input::Answered));
        }
        let id = server.next_id();
        let token = self.token.as_ref().map(|_| id.as_str());
        let body = self.modern.envelope(|envelope| {
            let envelope = Envelope {
                capabilities: &self.capabilities,
                ..*envelope
            };
            server_modern::request(self.request, &id, &envelope, token, retry)
        })?;
        let none = Marks::default();
        let marks = self.tool.as_ref().and_then(|tool| tool.marks.as_ref());
        let headers = server_modern::headers(&Message::parse(&body)?, marks.unwrap_or(&none));
        let patience = session.shared.patience(server.name());
        let sending = rpc::send(server, &self.modern.whose, &headers, body, &id);
        let sending = rpc::in_time(server, Late::Answer(patience.headers), sending);
        let head = self.alive(sending).await?;
        let response = match head {
            Head::Response(_, response) => response,
            Head::Stream(mut stream) => loop {
                let next = rpc::in_time(server, Late::Word(patience.idle), stream.next());
                match self.alive(next).await? {
                    Next::Response(response) => break response,
                    Next::Notice(notice) => self.notice(&notice).await,
                }
            },
        };
        self.judge(response).await
    }

    /// Waits for something. When it takes long, the answer becomes a stream, which can be kept alive.
    async fn alive<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        tokio::pin!(waiting);
        let keep_alive = self.session.shared.config.timeouts.keep_alive;
        tokio::select! {
            done = &mut waiting => return done,
            () = tokio::time::sleep(keep_alive), if self.sink.is_undecided() => {}
        }
        self.sink.open(&self.session, self.leg);
        waiting.await
    }

    /// A call of a tool needs to know which arguments go into headers.
    async fn look_up_tool(&mut self) -> Result<(), End> {
        let Ok([Some(name)]) = self.request.param(["name"]) else {
            return Ok(());
        };
        let name = text(name).unwrap_or_default().into_owned();
        let session = Arc::clone(&self.session);
        let known = session
            .shared
            .tools
            .of(session.server(), session.principal(), self.modern);
        let known = self.alive(known).await;
        self.tool = known.get(&name).cloned();
        match &self.tool {
            // It is not in the client's list either.
            Some(tool) if tool.marks.is_none() => Err(self.error(-32602, "unknown tool")),
            _ => Ok(()),
        }
    }

    /// Passes a notification of the server on.
    async fn notice(&mut self, notice: &Message) {
        let item = if notice.method() == "notifications/progress" {
            let Some(progress) = self.progress(notice) else {
                return;
            };
            Item::Progress(progress)
        } else {
            Item::Notice(notice.bytes().clone())
        };
        self.sink.open(&self.session, self.leg);
        self.session.deliver(Some(self.leg), item).await;
    }

    fn progress(&mut self, notice: &Message) -> Option<bytes::Bytes> {
        let token = self.token.as_deref()?;
        let [value] = notice.param(["progress"]).ok()?;
        let progress = self.rounds.progress(value?.parse().ok()?)?;
        let risen = number(progress.value);
        let mut changes = vec![("progressToken", Some(token))];
        if !progress.own {
            changes.extend([("progress", Some(&*risen)), ("total", None)]);
        }
        let params = edit(notice.params()?, &changes).ok()?;
        Some(notice.with_body("null", &params))
    }

    /// Says what a response means, and keeps it when it is the outcome. `None`: to be sent again.
    async fn judge(&mut self, response: Message) -> Result<Option<Input>, Error> {
        let method = self.request.method();
        let Some(result) = response.result() else {
            return self.judge_error(&response).await;
        };
        Ok(Some(match Outcome::read(method, result) {
            Outcome::Invalid(why) => Input::Invalid(why),
            Outcome::InputRequired(required) if required.questions.len() > MOST_QUESTIONS => {
                Input::Invalid("asked too much at once")
            }
            Outcome::InputRequired(required) => Input::Required(required),
            Outcome::Complete => {
                let wrapped = self.tool.as_ref().is_some_and(|tool| tool.wrapped);
                let shown = to_legacy::result(method, self.session.version(), result, wrapped);
                let id = self.leg.to_string();
                self.end = Some(End::Response(
                    200,
                    Message::parse(&response.with_body(&id, &shown))?,
                ));
                Input::Answered
            }
        }))
    }

    async fn judge_error(&mut self, response: &Message) -> Result<Option<Input>, Error> {
        let error = response.error().unwrap_or("{}");
        let [code] = members(error, ["code"]).unwrap_or_default();
        let session = Arc::clone(&self.session);
        match code {
            // The headers were made of a list that is out of date.
            Some("-32020") if self.request.method() == "tools/call" && !self.refreshed => {
                self.refreshed = true;
                let name = session.server().name();
                session.shared.tools.forget(name, session.principal()).await;
                return Ok(None);
            }
            Some("-32022") => {
                session.server().doubt_era();
                if session
                    .server()
                    .era()
                    .await
                    .is_ok_and(|era| era == Era::Legacy)
                {
                    // The client has to begin again, with a session there.
                    session.shared.tasks.spawn(session.end(Ending::Forgotten));
                    return Err(Error::Forgotten);
                }
                return Err(Error::NoVersion);
            }
            _ => {}
        }
        self.end = Some(match to_legacy::error(self.request, error) {
            Failure::Error(error) => {
                let id = self.leg.to_string();
                End::Response(200, Message::parse(&response.with_body(&id, &error))?)
            }
            Failure::Tool(text) => self.tool_failed(&text),
        });
        Ok(Some(Input::Answered))
    }

    /// Puts a question to the client, as its version has it.
    async fn ask(&mut self, leg: Leg, wanted: &Wanted) -> Option<Input> {
        let fresh = fresh_id();
        let params = match to_legacy::question(self.session.version(), wanted, &fresh) {
            Put::Nobody(result) => return Some(Input::Leg(leg, result)),
            Put::Client(params) => params,
        };
        let params = params.as_deref().unwrap_or("{}");
        let question = message::request(&quoted(&wanted.key), &wanted.method, params);
        let Ok(question) = Message::parse(&question) else {
            return Some(Input::LegFailed(leg, "the server's question can't be read"));
        };
        self.sink.open(&self.session, self.leg);
        let place = Place {
            leg,
            answers: self.answered.clone(),
        };
        self.session
            .ask(Some(self.leg), &question, Asker::Driver(place))
            .await;
        None
    }

    fn ended(&mut self, end: rounds::End) -> End {
        match end {
            rounds::End::Answer => match self.end.take() {
                Some(end) => end,
                None => misbehaved("gave no answer"),
            },
            rounds::End::Interaction(why) if self.is_tool() => self.tool_failed(why),
            rounds::End::Interaction(why) => End::Failed(Error::Interaction(why)),
            rounds::End::Server(why) if self.is_tool() => {
                self.tool_failed(&format!("the server {why}"))
            }
            rounds::End::Server(why) => misbehaved(why),
            rounds::End::Broken => End::Failed(Error::Broken),
            rounds::End::Cancelled => End::Failed(Error::Cancelled),
            rounds::End::Expired => {
                let session = &self.session;
                let patience = session.shared.patience(session.server().name());
                End::Failed(Error::Slow(patience.call))
            }
            rounds::End::Ended => End::Failed(Error::SessionEnded),
        }
    }

    fn is_tool(&self) -> bool {
        self.request.method() == "tools/call"
    }

    /// A tool that failed says so in its result, which a model can read.
    fn tool_failed(&self, why: &str) -> End {
        let result = format!(
            r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#,
            quoted(why)
        );
        respond(&message::result(&self.leg.to_string(), &result))
    }

    fn error(&self, code: i32, text: &str) -> End {
        let id = self.leg.to_string();
        respond(&message::error(Some(&id), code, text, None))
    }
}

/// A response of the gateway's.
pub(super) fn respond(bytes: &bytes::Bytes) -> End {
    match Message::parse(bytes) {
        Ok(response) => End::Response(200, response),
        Err(error) => End::Failed(error.into()),
    }
}

/// A number as JSON.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        value.to_string()
    }
}

/// A name that nobody used before: 128 random bits.
fn fresh_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness the name is not new, but still only a name.
    let _none = aws_lc_rs::rand::fill(&mut bytes);
    format!("{:032x}", u128::from_be_bytes(bytes))
}
