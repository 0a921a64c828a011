//! `subscriptions/listen` at a legacy server: what its session hears, on the streams of those who
//! asked for it (2026-07-28 basic/patterns/subscriptions).

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::deliver::Item;
use super::super::session::LiveSession;
use super::super::streams::PIPE;
use super::super::{Answer, EventPipe};
use super::pool::Pooled;
use super::{Visit, inner_id};
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::client_legacy::Accept;
use crate::protocol::client_modern::Rejected;
use crate::protocol::message::{Kind, Message};
use crate::protocol::object::text;
use crate::protocol::subscription::{self, Filter};

/// The most resources that one listen may name.
const MOST: usize = 256;

/// Those who wait for what one session hears.
#[derive(Debug, Default)]
pub(crate) struct Listens {
    open: Mutex<Vec<Listen>>,
    /// Held while the server is told what is listened for, so that it hears it in the right order.
    turn: tokio::sync::Mutex<()>,
    /// Addresses that people are done at, the latest ones; made when somebody waits for them.
    visited: OnceLock<watch::Sender<Vec<String>>>,
}

/// How many addresses that people are done at are remembered.
const VISITED: usize = 64;

#[derive(Debug)]
struct Listen {
    /// The id of the request, as JSON text: every message of it is tagged with it.
    id: String,
    wanted: Filter,
    pipe: Sender<Item>,
    _dropped: DropGuard,
}

impl Visit<'_> {
    /// Opens a stream of what changes.
    pub(super) async fn listen(&self) -> Result<Answer, Error> {
        self.shared.limiter.pass(self.server, self.principal)?;
        let [filter] = self.message.param(["notifications"])?;
        let wanted = Filter::read(filter, MOST).map_err(Rejected::Params)?;
        match self.listen_at(self.session().await?, wanted.clone()).await {
            // The server has forgotten the session, and took nothing of it.
            Err(Error::Forgotten) => self.listen_at(self.session().await?, wanted).await,
            other => other,
        }
    }

    async fn listen_at(&self, pooled: Pooled, wanted: Filter) -> Result<Answer, Error> {
        let listens = pooled.session.listens();
        let turn = listens.turn.lock().await;
        let honoured = subscribe(&pooled, wanted).await?;
        let id = self.message.id().unwrap_or("null").to_owned();
        let (pipe, rest) = channel(PIPE);
        let acknowledged = subscription::acknowledgement(&id, &honoured);
        let dropped = CancellationToken::new();
        let attending = attend(
            pooled.clone(),
            pipe.clone(),
            honoured.uris.clone(),
            dropped.clone(),
        );
        listens.open.lock().push(Listen {
            id,
            wanted: honoured,
            pipe,
            _dropped: dropped.drop_guard(),
        });
        drop(turn);
        if pooled.session.ended.is_cancelled() {
            pooled.session.end_listens();
        }
        self.shared.tasks.spawn(attending);
        Ok(Answer::Events(EventPipe::alone(
            vec![Item::Notice(acknowledged)],
            rest,
        )))
    }
}

/// What of it the server can be heard on; subscribed to where need be.
async fn subscribe(pooled: &Pooled, wanted: Filter) -> Result<Filter, Error> {
    let (session, welcome) = (&pooled.session, &pooled.welcome);
    let mut honoured = wanted.lists_told(|list| welcome.has_part(list, "listChanged"));
    if !welcome.has_part("resources", "subscribe") {
        return Ok(honoured);
    }
    for uri in wanted.uris {
        if session.listens().wants(&uri) {
            honoured.uris.push(uri);
            continue;
        }
        let subscribed = session
            .request("resources/subscribe", &uri_params(&uri))
            .await?;
        if subscribed.kind() == Kind::Result {
            honoured.uris.push(uri);
        }
    }
    Ok(honoured)
}

/// Waits until a listen is over, and gives up at the server what nobody else listens for.
async fn attend(pooled: Pooled, pipe: Sender<Item>, uris: Vec<String>, dropped: CancellationToken) {
    let session = &pooled.session;
    tokio::select! {
        () = pipe.closed() => {}
        () = dropped.cancelled() => {}
    }
    drop(pipe);
    let listens = session.listens();
    let _turn = listens.turn.lock().await;
    listens.open.lock().retain(|it| !it.pipe.is_closed());
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
        self.listens().open.lock().retain(|listen| {
            if !listen.wanted.includes(notice) {
                return !listen.pipe.is_closed();
            }
            let Some(tagged) = subscription::tagged(notice, &listen.id) else {
                return true;
            };
            // Who does not keep up with changes can't trust what they missed: their stream ends, and
            // they read the state anew.
            listen.pipe.try_send(Item::Notice(tagged)).is_ok()
        });
    }

    /// Ends every listen with its result: the server is gone for good.
    pub(in crate::relay) fn end_listens(&self) {
        for listen in self.listens().open.lock().drain(..) {
            let complete = subscription::complete(&listen.id);
            let _gone = listen.pipe.try_send(Item::Outcome(complete));
        }
    }
}

impl Listens {
    /// The addresses that people are done at, from now on.
    pub(in crate::relay) fn visited(&self) -> watch::Receiver<Vec<String>> {
        self.visited
            .get_or_init(|| watch::channel(Vec::new()).0)
            .subscribe()
    }

    /// The server tells that a person is done at an address.
    fn visit(&self, id: String) {
        if let Some(visited) = self.visited.get() {
            visited.send_modify(|ids| {
                if ids.len() == VISITED {
                    ids.remove(0);
                }
                ids.push(id);
            });
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
