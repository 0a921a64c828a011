//! Says `initialize` to a server and reads its answer, however it comes.

use std::time::Duration;

use bytes::Bytes;

use super::inbound::{Inbound, Reading};
use super::now;
use crate::error::Error;
use crate::protocol::era::is_modern_refusal;
use crate::protocol::message::{self, Body, Kind, Message};
use crate::protocol::object::{members, text};
use crate::protocol::server_legacy::Answered;
use crate::protocol::version::Version;
use crate::upstream::client::ClientError;
use crate::upstream::fault::no_message;
use crate::upstream::reply::Reply;
use crate::upstream::server::{Connected, Upstream, Wire};
use crate::upstream::trouble::Trouble;

/// How long a server may take to open a session, if a call may take longer: meanwhile it holds a
/// place among the sessions. Clients commonly wait a minute: with what it takes to find out the era before, that
/// is long enough for them to hear which server it was that said nothing.
const PATIENCE: Duration = Duration::from_secs(45);

/// The id of `initialize` towards the server; calls count from 1.
const ID: &str = "0";

/// The most messages that are kept of what comes before the answer.
const MOST_EARLY: usize = 64;

/// What a server answered to `initialize`.
pub(super) struct Greeting {
    /// Its response, under our id.
    response: Message,
    /// The version that it chose; none when it refused.
    pub(super) version: Option<Version>,
    /// The session that it opened.
    pub(super) wire: Wire,
    /// What it sent before its answer.
    pub(super) early: Vec<Inbound>,
}

impl Greeting {
    /// Whether the server refused in a way that shows it to be a modern one.
    pub(super) fn is_from_modern(&self) -> bool {
        is_modern_refusal(&self.response)
    }

    /// The result, as JSON text; none when it refused.
    pub(super) fn result(&self) -> Option<&str> {
        self.response.result()
    }

    /// The response for the request with this id (JSON text).
    pub(super) fn response(&self, id: &str) -> Bytes {
        match (self.response.kind(), self.response.id()) {
            // A server that could not read the id leaves it out.
            (Kind::Error, None) => {
                let error = self.response.error().unwrap_or("{}");
                Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
            }
            _ => self.response.with_id(id),
        }
    }
}

/// Sends `initialize`, and waits for the answer as long as for a call (`call`), 45 s at most. A
/// session that a server opens in vain is ended.
///
/// # Errors
/// When the server can't be reached, or its answer is none.
pub(super) async fn greet(
    server: &Upstream,
    request: &Message,
    call: Duration,
) -> Result<Greeting, Error> {
    let (began, patience) = (now(), call.min(PATIENCE));
    let slow = || {
        server.troubles().tell(&Trouble::Slow(patience));
        Error::Slow(patience)
    };
    let sent = tokio::time::timeout(patience, post(server, request.with_id(ID)));
    let (wire, reply) = sent.await.unwrap_or_else(|_| Err(slow()))?;
    let left = patience.saturating_sub(now().saturating_duration_since(began));
    let read = tokio::time::timeout(left, read(server, &wire, reply));
    let read = read.await.unwrap_or_else(|_| Err(slow()));
    if wire.is_held() && !matches!(&read, Ok((_, Some(_), _))) {
        let _told = tokio::time::timeout(Duration::from_secs(2), server.end(&wire)).await;
    }
    let (response, version, early) = read?;
    Ok(Greeting {
        response,
        wire: wire.speaking(version.clone()),
        version,
        early,
    })
}

async fn post(server: &Upstream, body: Bytes) -> Result<(Wire, Reply), Error> {
    let lost = |error| {
        server.troubles().tell(&Trouble::Lost(&error));
        Error::from(error)
    };
    let mut posted = post_once(server, body.clone()).await;
    // Surely nothing was sent, and the server may have another address.
    for _ in 1..server.places().max(2) {
        if posted.as_ref().is_err_and(ClientError::is_away) {
            posted = post_once(server, body.clone()).await;
        }
    }
    let (wire, reply) = posted.map_err(lost)?;
    match (wire, reply) {
        (Some(wire), Ok(reply)) => Ok((wire.in_session(reply.session()), reply)),
        (_, Ok(reply)) => {
            server.troubles().tell(&Trouble::Answered(&reply.head()));
            Err(reply.refused().unwrap_or_else(|| no_message(reply.status)))
        }
        (_, Err(why)) => Err(Error::Misbehaved(why.into())),
    }
}

/// Reaches the server, and says `initialize`; where it can't be said, what the server does instead.
async fn post_once(
    server: &Upstream,
    body: Bytes,
) -> Result<(Option<Wire>, Result<Reply, &'static str>), ClientError> {
    match server.connect().await? {
        Connected::Wire(wire) => {
            let reply = server.post(&wire, body).await?;
            Ok((Some(wire), Ok(reply)))
        }
        Connected::Refused(reply) => Ok((None, Ok(*reply))),
        Connected::NoAddress(why) => Ok((None, Err(why))),
    }
}

async fn read(
    server: &Upstream,
    wire: &Wire,
    reply: Reply,
) -> Result<(Message, Option<Version>, Vec<Inbound>), Error> {
    let head = reply.head();
    let useless = |error| {
        server.troubles().tell(&Trouble::Answered(&head));
        Err(error)
    };
    let misbehaved = |text: &'static str| useless(Error::Misbehaved(text.into()));
    let status = reply.status;
    if let Some(error) = reply.refused() {
        return useless(error);
    }
    let (response, early) = match reply.what {
        Answered::Events => from_events(server, wire, reply).await,
        Answered::Json | Answered::Refused | Answered::Broken => {
            (from_body(server, reply).await, Vec::new())
        }
        _ => (None, Vec::new()),
    };
    let Some(response) = response else {
        if wire.is_link() {
            server.troubles().tell(&Trouble::Cut);
            return Err(Error::Misbehaved(
                "ended before it answered initialize".into(),
            ));
        }
        return useless(no_message(status));
    };
    let version = match response.result().map(chosen) {
        None => None,
        Some(Some(version)) => Some(version),
        Some(None) => return misbehaved("answered initialize without a protocol version"),
    };
    Ok((response, version, early))
}

async fn from_body(server: &Upstream, reply: Reply) -> Option<Message> {
    let lost = |error| server.troubles().tell(&Trouble::Lost(&error));
    match Body::parse(&reply.whole().await.map_err(lost).ok()?).ok()? {
        Body::Single(message) => Some(message).filter(Message::is_response),
        Body::Batch(members) => members
            .iter()
            .filter_map(|member| Message::parse(member).ok())
            .find(Message::is_response),
    }
}

/// The answer in a stream, and what came before it. A server that pings waits for us before it goes on.
async fn from_events(
    server: &Upstream,
    wire: &Wire,
    reply: Reply,
) -> (Option<Message>, Vec<Inbound>) {
    let mut reading = Reading::new(reply);
    let mut early = Vec::new();
    while let Ok(Some(inbound)) = reading.next().await {
        match inbound {
            Inbound::Message(message) if message.is_response() && message.id() == Some(ID) => {
                reading.finish();
                return (Some(message), early);
            }
            Inbound::Message(message)
                if message.kind() == Kind::Request && message.method() == "ping" =>
            {
                let pong = message::result(message.id().unwrap_or("null"), "{}");
                let _heard = server.post(wire, pong).await;
            }
            inbound if early.len() < MOST_EARLY => early.push(inbound),
            _ => {
                tracing::warn!(server = %server.name(), "too much before the answer to initialize");
            }
        }
    }
    (None, early)
}

fn chosen(result: &str) -> Option<Version> {
    let [version] = members(result, ["protocolVersion"]).ok()?;
    let version = text(version?)?;
    // It goes into logs and headers.
    let plain = version.len() <= 32 && version.bytes().all(|byte| byte.is_ascii_graphic());
    plain.then(|| Version::new(&version))
}
