//! `subscriptions/listen` at a legacy server: what its session hears, on the streams of those who
//! asked for it (2026-07-28 basic/patterns/subscriptions).
//!
//! # Invariant
//! - What the server was told for a listen that does not come about, or is over, it is told to forget, unless
//!   somebody else listens for it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc::channel;
use tokio::sync::{MutexGuard, broadcast};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::deliver::Item;
use super::super::session::LiveSession;
use super::super::streams::{PIPE, Pipe};
use super::super::{Answer, EventPipe, Shared};
use super::listening::Listening;
use super::pool::{Key, Pooled};
use super::{Visit, inner_id};
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_legacy::Accept;
use crate::protocol::client_modern::Rejected;
use crate::protocol::message::{Kind, Message};
use crate::protocol::object::text;
use crate::protocol::subscription::{self, Filter, MOST};

/// Those who wait for what one session hears.
#[derive(Debug, Default)]
pub(crate) struct Listens {
    open: Mutex<Vec<Listen>>,
    /// Held while the server is told what is listened for, so that it hears it in the right order.
    turn: tokio::sync::Mutex<()>,
    /// Addresses that people are done at, for the calls in flight; made when there is one.
    visited: OnceLock<broadcast::Sender<String>>,
}

/// How many addresses that people are done at wait for a call to hear of them.
const VISITED: usize = 64;

/// A listen, at the session where it is at the moment.
#[derive(Debug)]
pub(super) struct Listen {
    /// The id of the request, as JSON text: every message of it is tagged with it.
    pub(super) id: String,
    pub(super) wanted: Filter,
    pub(super) pipe: Pipe,
    /// Set when less is told than it was promised.
    pub(super) less: CancellationToken,
    pub(super) _dropped: DropGuard,
}

impl Visit<'_> {
    /// Opens a stream of what changes.
    pub(super) async fn listen(&self) -> Result<Answer, Error> {
        self.shared.limiter.pass(self.server, self.principal)?;
        let [filter] = self.message.param(["notifications"])?;
        let wanted = Filter::read(filter, MOST).map_err(Rejected::Params)?;
        match self.listen_at(self.session().await?, &wanted).await {
            // The server has forgotten the session, and took nothing of it.
            Err(Error::Forgotten) => self.listen_at(self.session().await?, &wanted).await,
            other => other,
        }
    }

    async fn listen_at(&self, pooled: Pooled, wanted: &Filter) -> Result<Answer, Error> {
        let opening = Opening {
            shared: Arc::clone(self.shared),
            key: self.key(),
            single: self.is_single(),
            declared: self.request.capabilities,
            id: self.message.id().unwrap_or("null").to_owned(),
            wanted: wanted.clone(),
        };
        let left = CancellationToken::new();
        let _stays = left.clone().drop_guard();
        // Apart, so that it comes to its end also when the client leaves in the midst of it.
        let opening = self.shared.tasks.spawn(opening.open(pooled, left));
        opening.await.unwrap_or(Err(Error::SessionEnded))
    }
}

/// A listen that is being opened.
struct Opening {
    shared: Arc<Shared>,
    key: Key,
    single: bool,
    declared: ClientCapabilities,
    id: String,
    wanted: Filter,
}

impl Opening {
    /// Subscribes, and lets the client hear. `left` says that it is gone.
    async fn open(self, pooled: Pooled, left: CancellationToken) -> Result<Answer, Error> {
        let session = Arc::clone(&pooled.session);
        let _turn = session.listens().turn().await;
        let honoured = subscribe(&pooled, &self.wanted, || left.is_cancelled()).await?;
        let acknowledged = subscription::acknowledgement(&self.id, &honoured);
        // There is room for a word about each thing, which is said when it moves.
        let (pipe, rest) = channel(PIPE + honoured.len());
        let listening = Listening {
            shared: Arc::clone(&self.shared),
            key: self.key,
            single: self.single,
            declared: self.declared,
            id: self.id,
            honoured,
            pipe,
        };
        let place = listening.join(pooled, &[]);
        self.shared.tasks.spawn(listening.run(place));
        let first = vec![Item::Notice(acknowledged)];
        // When nobody takes it, it is a listen whose client is gone.
        Ok(Answer::Events(EventPipe::alone(first, rest)))
    }
}

/// What of it the server can be heard on; subscribed to where need be. Who calls it holds the turn, and says
/// whether the client has `left` meanwhile.
///
/// # Errors
/// When the server can't be asked, or the client has left. Then nothing stays subscribed to for it.
pub(super) async fn subscribe(
    pooled: &Pooled,
    wanted: &Filter,
    left: impl Fn() -> bool,
) -> Result<Filter, Error> {
    let session = &pooled.session;
    let mut honoured = wanted.lists_told(|list| pooled.has_part(list, "listChanged"));
    if !pooled.has_part("resources", "subscribe") {
        return Ok(honoured);
    }
    for uri in &wanted.uris {
        let agreed = if left() {
            Err(Error::Cancelled)
        } else if session.listens().wants(uri) {
            Ok(true)
        } else {
            let params = uri_params(uri);
            let subscribed = session.request("resources/subscribe", &params).await;
            subscribed.map(|response| response.kind() == Kind::Result)
        };
        match agreed {
            Ok(true) => honoured.uris.push(uri.clone()),
            Ok(false) => {}
            Err(error) => {
                // What came of the last one is not known.
                honoured.uris.push(uri.clone());
                give_up(pooled, honoured.uris).await;
                return Err(error);
            }
        }
    }
    Ok(honoured)
}

/// Gives up at the server what nobody listens for any more.
pub(super) async fn unsubscribe(pooled: &Pooled, given_up: Filter) {
    let _turn = pooled.session.listens().turn().await;
    give_up(pooled, given_up.uris).await;
}

/// The same for these resources. Who calls it holds the turn.
pub(super) async fn give_up(pooled: &Pooled, uris: Vec<String>) {
    let session = &pooled.session;
    let listens = session.listens();
    for uri in uris {
        if session.is_gone() {
            return;
        }
        if listens.wants(&uri) {
            continue;
        }
        let params = uri_params(&uri);
        if let Err(error) = session.request("resources/unsubscribe", &params).await {
            tracing::debug!(session = session.tag(), %error, "a subscription was not given up");
        }
    }
}

fn uri_params(uri: &str) -> String {
    format!(r#"{{"uri":{}}}"#, serde_json::Value::from(uri))
}

impl LiveSession {
    /// Sends a request of the gateway's own, and waits for the response.
    pub(in crate::relay) async fn request(
        self: &Arc<Self>,
        method: &str,
        params: &str,
    ) -> Result<Message, Error> {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
            inner_id()
        );
        let request = Message::parse(&Bytes::from(request))?;
        let only_json = Accept {
            json: true,
            events: false,
        };
        let admission = Admission::of_the_gateway();
        match self.call(request, only_json, admission).await? {
            Answer::Json(_, response) => Ok(Message::parse(&response)?),
            _ => Err(Error::Misbehaved("answered with a stream".into())),
        }
    }

    /// Passes what changed to those who listen for it.
    pub(in crate::relay) fn tell_listeners(&self, notice: &Message) {
        if notice.method() == "notifications/elicitation/complete" {
            if let Ok([Some(id)]) = notice.param(["elicitationId"])
                && let Some(id) = text(id)
            {
                self.listens().visit(id.into_owned());
            }
            return;
        }
        if notice.method() == "notifications/tools/list_changed" {
            self.tasked().change();
        }
        let mut open = self.listens().open.lock();
        open.retain(|listen| listen.hears(notice));
    }
}

impl Listen {
    /// Passes a notification on, if it is about something that is wanted; whether the listen may stay.
    fn hears(&self, notice: &Message) -> bool {
        if !self.wanted.includes(notice) {
            return !self.pipe.is_closed();
        }
        let Some(tagged) = subscription::tagged(notice, &self.id) else {
            return true;
        };
        // Who does not keep up with changes can't trust what they missed: their stream ends, and they
        // read the state anew.
        self.pipe.try_send(Item::Notice(tagged)).is_ok()
    }
}

impl Listens {
    /// The turn to tell the server what is listened for.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// One more listens, and hears first what may have been missed.
    pub(super) fn join(&self, listen: Listen, missed: &[Message]) {
        let mut open = self.open.lock();
        if missed.iter().all(|notice| listen.hears(notice)) {
            open.push(listen);
        }
    }

    /// Who writes into this pipe listens no more.
    pub(super) fn leave(&self, pipe: &Pipe) {
        self.open.lock().retain(|it| !it.pipe.same_channel(pipe));
    }

    /// This resource is not heard of any more.
    pub(in crate::relay) fn tell_less(&self, uri: &str) {
        self.open.lock().retain(|listen| {
            let promised = listen.wanted.uris.iter().any(|own| own == uri);
            if promised {
                listen.less.cancel();
            }
            !promised
        });
    }

    /// The addresses that people are done at, from now on.
    pub(in crate::relay) fn visited(&self) -> broadcast::Receiver<String> {
        self.visited
            .get_or_init(|| broadcast::channel(VISITED).0)
            .subscribe()
    }

    /// The server tells that a person is done at an address.
    fn visit(&self, id: String) {
        if let Some(visited) = self.visited.get() {
            let _nobody = visited.send(id);
        }
    }

    /// Whether somebody listens for this resource.
    fn wants(&self, uri: &str) -> bool {
        let listens = self.open.lock();
        let mut open = listens.iter().filter(|listen| !listen.pipe.is_closed());
        open.any(|listen| listen.wanted.uris.iter().any(|own| own == uri))
    }

    /// Whether anybody listens.
    pub(in crate::relay) fn any(&self) -> bool {
        self.open
            .lock()
            .iter()
            .any(|listen| !listen.pipe.is_closed())
    }
}
