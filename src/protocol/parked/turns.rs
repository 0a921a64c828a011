//! What happens to a call, what is to be done about it, and where it is.

use std::time::Duration;

use bytes::Bytes;

use crate::protocol::capability::ClientCapabilities;
use crate::protocol::message::Message;
use crate::protocol::replay::Visit;
use crate::protocol::session::QuestionId;

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a server's questions are gathered into one round.
    pub window: Duration,
    /// How long a client may stay away.
    pub park: Duration,
    /// The most rounds of one call, counting those that ask again; clients stop at ten.
    pub rounds: u32,
    /// Whether its questions are only probably its own, as over a transport that does not say whose they
    /// are: one that its person is asked outlives it then, until they answer.
    pub guessed: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(50),
            park: Duration::from_mins(10),
            rounds: 8,
            guessed: false,
        }
    }
}

/// What happens to a call.
#[derive(Debug)]
pub enum Input<'a> {
    /// The server asks; the question is in the session's book under this id.
    Question(QuestionId, &'a Message),
    /// The question is not to be answered any more.
    Withdrawn(QuestionId),
    /// How far the call is.
    Progress(Bytes),
    /// A log notification.
    Log(Bytes),
    /// The response of the server.
    Outcome(Message),
    /// A person is done at the address with this id.
    Visited(&'a str),
    /// The client closed the request that is attached. That cancels (2026-07-28 transports).
    Gone,
    /// The call must end, because the gateway does. (A session that is lost is an outcome: the error
    /// that the client is to read when it is back.)
    End,
}

/// A retry that continues a round.
#[derive(Debug)]
pub struct Retry<'a> {
    /// The round that it answers.
    pub round: u32,
    /// What the client can be asked now.
    pub capabilities: ClientCapabilities,
    /// The answers by key (JSON text).
    pub answers: Vec<(String, &'a str)>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The attached client reads this notification.
    Forward(Bytes),
    /// The attached request ends with these questions.
    Round(u32, Vec<Asked>),
    /// The attached request ends with these addresses.
    Visits(u32, Vec<Visit>),
    /// The call is made again at the server, which did not process it.
    Again,
    /// The attached request ends with the server's response.
    Done(Message),
    /// The attached request ends because the person did not agree to visit an address.
    Declined,
    /// The attached request ends because its client did not declare this capability (JSON text).
    Undeclared(&'static str),
    /// The server gets this result (JSON text) as the answer to the question.
    Answer(QuestionId, String),
    /// The server gets `cancel` as the answer to its elicitation: nobody is there.
    Dismiss(QuestionId),
    /// The server gets an error as the answer to the question.
    Refuse(QuestionId, i32, &'static str),
    /// The call is cancelled at the server. It comes before the answers to its questions, so that
    /// no handler takes them for a reason to go on.
    Cancel,
}

/// A question as a client is asked it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Its key in `inputRequests`.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters (JSON text).
    pub params: Option<String>,
    pub(super) id: QuestionId,
    pub(super) message: Message,
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A request of the client is attached.
    Running,
    /// The client was sent away with questions.
    Parked,
    /// The outcome waits for the client.
    ParkedDone,
    /// The client was sent away with addresses, and nothing is in flight at the server.
    Visiting,
    /// The client has the end of it.
    Delivered,
    /// It was cancelled, or nobody came back in time.
    Aborted,
}
