//! The parked call against the specification of its states, with a clock that only moves when it is
//! told to. The questions are those of a real session's book, so that each has the one id it gets there.

#![expect(clippy::disallowed_methods, reason = "a test may read the clock")]

mod failures;
mod properties;
mod states;
mod visits;

use std::collections::HashMap;

use super::super::message;
use super::super::object::text;
use super::super::session::Session;
use super::*;

const EVERYTHING: ClientCapabilities = ClientCapabilities {
    form: true,
    url: true,
    sampling: true,
    roots: true,
    sampling_tools: true,
    sampling_context: true,
};
const FORMS_ONLY: ClientCapabilities = ClientCapabilities {
    form: true,
    url: false,
    sampling: false,
    roots: false,
    sampling_tools: false,
    sampling_context: false,
};
const NOTHING: ClientCapabilities = ClientCapabilities {
    form: false,
    url: false,
    sampling: false,
    roots: false,
    sampling_tools: false,
    sampling_context: false,
};

type Asks = (&'static str, &'static str);
const FORM: Asks = (
    "elicitation/create",
    r#"{"message":"?","requestedSchema":{}}"#,
);
const URL: Asks = (
    "elicitation/create",
    r#"{"mode":"url","url":"https://x","elicitationId":"7"}"#,
);
const SAMPLING: Asks = ("sampling/createMessage", r#"{"messages":[]}"#);
const ROOTS: Asks = ("roots/list", "{}");
const UNHEARD_OF: Asks = ("vendor/ask", "{}");

const ACCEPT: &str = r#"{"action":"accept","content":{"size":"M"}}"#;
const DECLINE: &str = r#"{"action":"decline"}"#;
const SAMPLE: &str = r#"{"role":"assistant","content":{"type":"text","text":"4"},"model":"m"}"#;
const FILES: &str = r#"{"roots":[]}"#;

const WINDOW: Duration = Duration::from_millis(50);
const PARK: Duration = Duration::from_mins(10);

const BE_BACK: Duration = Duration::from_secs(3);

/// The response of a server, told apart by its text.
fn response(text: &str) -> Message {
    Message::parse(&message::result("1", &format!("\"{text}\""))).unwrap()
}

/// The response of a server that wants these addresses visited, each called by its id.
fn addresses(ids: &[&str]) -> Message {
    let list = ids.iter().map(|id| {
        format!(r#"{{"mode":"url","url":"https://{id}","message":"m","elicitationId":"{id}"}}"#)
    });
    let data = list.collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32042,"message":"m","data":{{"elicitations":[{data}]}}}}}}"#
    );
    Message::parse(&text.into_bytes().into()).unwrap()
}

fn question((method, params): Asks) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    Message::parse(&text.into_bytes().into()).unwrap()
}

/// A call, the book of its session and the time. What comes out is told in words, and a question by
/// the label that the test gave it.
struct Talk {
    call: Call,
    book: Session,
    now: Instant,
    labels: HashMap<QuestionId, &'static str>,
}

impl Talk {
    fn new() -> Self {
        Self::with(Limits::default(), EVERYTHING)
    }

    fn with(limits: Limits, capabilities: ClientCapabilities) -> Self {
        Self {
            call: Call::new(limits, capabilities),
            book: Session::new(EVERYTHING),
            now: Instant::now(),
            labels: HashMap::new(),
        }
    }

    /// A call in this state, where it can be with one question `queued` that the client has not seen,
    /// one `shown` (key `e1`) in round 1, and progress `p` and a log `l` that it has not heard.
    fn at(state: State) -> Self {
        let mut talk = Self::new();
        match state {
            State::Running => {
                talk.ask("queued", FORM);
            }
            State::Parked => {
                talk.ask("shown", FORM);
                talk.wait(WINDOW);
                talk.ask("queued", FORM);
            }
            State::ParkedDone => {
                talk = Self::at(State::Parked);
                talk.progress("p");
                talk.log("l");
                talk.outcome("result");
            }
            State::Visiting => {
                talk.wants(&["a", "b"]);
            }
            State::Delivered => {
                talk = Self::at(State::ParkedDone);
                talk.retry(1, &[]).unwrap();
            }
            State::Aborted => {
                talk = Self::at(State::Parked);
                talk.wait(PARK);
            }
        }
        assert_eq!(talk.call.state(), state);
        talk
    }

    /// A call parked with these questions in round 1.
    fn parked(questions: &[(&'static str, Asks)]) -> Self {
        let mut talk = Self::new();
        for (label, asks) in questions {
            talk.ask(label, *asks);
        }
        talk.wait(WINDOW);
        assert_eq!(talk.call.state(), State::Parked);
        talk
    }

    fn ask(&mut self, label: &'static str, asks: Asks) -> Vec<String> {
        let message = question(asks);
        let id = self.book.ask(self.now, None, &message).unwrap();
        self.labels.insert(id, label);
        self.hear(Input::Question(id, &message))
    }

    fn withdraw(&mut self, label: &str) -> Vec<String> {
        let (id, _) = self.labels.iter().find(|(_, it)| **it == label).unwrap();
        self.hear(Input::Withdrawn(*id))
    }

    fn progress(&mut self, text: &'static str) -> Vec<String> {
        self.hear(Input::Progress(text.into()))
    }

    fn log(&mut self, text: &'static str) -> Vec<String> {
        self.hear(Input::Log(text.into()))
    }

    fn outcome(&mut self, text: &'static str) -> Vec<String> {
        self.hear(Input::Outcome(response(text)))
    }

    /// The server ends its request with these addresses.
    fn wants(&mut self, ids: &[&str]) -> Vec<String> {
        self.hear(Input::Outcome(addresses(ids)))
    }

    fn visited(&mut self, id: &str) -> Vec<String> {
        self.hear(Input::Visited(id))
    }

    fn hear(&mut self, input: Input<'_>) -> Vec<String> {
        let outputs = self.call.handle(self.now, input);
        self.tell(outputs)
    }

    /// Time passes, then the timer goes off.
    fn wait(&mut self, time: Duration) -> Vec<String> {
        self.now += time;
        let outputs = self.call.handle_timeout(self.now);
        self.tell(outputs)
    }

    fn retry(&mut self, round: u32, answers: &[(&str, &str)]) -> Result<Vec<String>, String> {
        self.retry_with(EVERYTHING, round, answers)
    }

    fn retry_with(
        &mut self,
        capabilities: ClientCapabilities,
        round: u32,
        answers: &[(&str, &str)],
    ) -> Result<Vec<String>, String> {
        let retry = Retry {
            round,
            capabilities,
            answers: answers.iter().map(|it| (it.0.to_owned(), it.1)).collect(),
        };
        match self.call.retry(self.now, &retry) {
            Ok(outputs) => Ok(self.tell(outputs)),
            Err(Rejected::State(reason, _)) => Err(reason.to_owned()),
            Err(rejected) => Err(rejected.to_string()),
        }
    }

    fn tell(&self, outputs: Vec<Output>) -> Vec<String> {
        let notice = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let told = outputs.into_iter().map(|output| match output {
            Output::Forward(bytes) => format!("forward {}", notice(bytes)),
            Output::Round(round, asked) => {
                let asked = asked
                    .iter()
                    .map(|it| format!("{} {}", it.key, self.labels[&it.id]));
                format!("round {round}: {}", asked.collect::<Vec<_>>().join(", "))
            }
            Output::Visits(round, visits) => {
                let keys: Vec<_> = visits.iter().map(|it| it.key.as_str()).collect();
                format!("visits {round}: {}", keys.join(", "))
            }
            Output::Again => "again".to_owned(),
            Output::Done(response) => match response.result().and_then(text) {
                Some(text) => format!("done {text}"),
                None => "done error".to_owned(),
            },
            Output::Declined => "declined".to_owned(),
            Output::Undeclared(required) => format!("undeclared {required}"),
            Output::Answer(id, answer) => format!("answer {} {answer}", self.labels[&id]),
            Output::Dismiss(id) => format!("dismiss {}", self.labels[&id]),
            Output::Refuse(id, code, _) => format!("refuse {} {code}", self.labels[&id]),
            Output::Cancel => "cancel".to_owned(),
        });
        told.collect()
    }
}

fn answer(label: &str, answer: &str) -> String {
    format!("answer {label} {answer}")
}
