//! `subscriptions/listen` at a legacy server: what its session hears, on the streams of those who
//! asked for it (2026-07-28 basic/patterns/subscriptions).

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::sync::mpsc::{Sender, channel};
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
use crate::protocol::edit::{Edit, edit};
use crate::protocol::message::{self, Kind, Message};
use crate::protocol::object::{elements, members, text};

/// The most resources that one listen may name.
const MOST: usize = 256;

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

#[derive(Debug)]
struct Listen {
    /// The id of the request, as JSON text: every message of it is tagged with it.
    id: String,
    wanted: Wanted,
    pipe: Sender<Item>,
    _dropped: DropGuard,
}

/// What a client wants to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
}

impl Visit<'_> {
    /// Opens a stream of what changes.
    pub(super) async fn listen(&self) -> Result<Answer, Error> {
        self.shared.limiter.pass(self.server, self.principal)?;
        let wanted = Wanted::read(self.message)?;
        match self.listen_at(self.session().await?, wanted.clone()).await {
            // The server has forgotten the session, and took nothing of it.
            Err(Error::Forgotten) => self.listen_at(self.session().await?, wanted).await,
            other => other,
        }
    }

    async fn listen_at(&self, pooled: Pooled, wanted: Wanted) -> Result<Answer, Error> {
        let listens = pooled.session.listens();
        let turn = listens.turn.lock().await;
        let honoured = subscribe(&pooled, wanted).await?;
        let id = self.message.id().unwrap_or("null").to_owned();
        let (pipe, rest) = channel(PIPE);
        let acknowledged = acknowledgement(&id, &honoured);
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
async fn subscribe(pooled: &Pooled, wanted: Wanted) -> Result<Wanted, Error> {
    let (session, welcome) = (&pooled.session, &pooled.welcome);
    let mut honoured = Wanted {
        tools: wanted.tools && welcome.has_part("tools", "listChanged"),
        prompts: wanted.prompts && welcome.has_part("prompts", "listChanged"),
        resources: wanted.resources && welcome.has_part("resources", "listChanged"),
        uris: Vec::new(),
    };
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
        if notice.method() == "notifications/tools/list_changed" {
            self.tasked().change();
        }
        self.listens().open.lock().retain(|listen| {
            if !listen.wanted.includes(notice) {
                return !listen.pipe.is_closed();
            }
            let Some(tagged) = tagged(notice, &listen.id) else {
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
            let result = format!(
                r#"{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}"#,
                listen.id
            );
            let _gone = listen
                .pipe
                .try_send(Item::Outcome(message::result(&listen.id, &result)));
        }
    }
}

impl Listens {
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

impl Wanted {
    fn read(message: &Message) -> Result<Self, Error> {
        let [filter] = message.param(["notifications"])?;
        let filter = filter.ok_or(Rejected::Params("`notifications` is missing"))?;
        let names = [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
            "resourceSubscriptions",
        ];
        let [tools, prompts, resources, uris] = members(filter, names)
            .map_err(|_| Rejected::Params("`notifications` can't be read"))?;
        let uris = elements(uris.unwrap_or("[]"), MOST)
            .map_err(|_| Rejected::Params("`resourceSubscriptions` can't be read"))?;
        Ok(Self {
            tools: tools == Some("true"),
            prompts: prompts == Some("true"),
            resources: resources == Some("true"),
            uris: uris
                .into_iter()
                .filter_map(text)
                .map(std::borrow::Cow::into_owned)
                .collect(),
        })
    }

    fn includes(&self, notice: &Message) -> bool {
        match notice.method() {
            "notifications/tools/list_changed" => self.tools,
            "notifications/prompts/list_changed" => self.prompts,
            "notifications/resources/list_changed" => self.resources,
            "notifications/resources/updated" => {
                let Ok([Some(uri)]) = notice.param(["uri"]) else {
                    return false;
                };
                // What is updated may lie under what was subscribed to.
                text(uri).is_some_and(|uri| {
                    self.uris.iter().any(|own| {
                        uri.strip_prefix(own.as_str()).is_some_and(|rest| {
                            rest.is_empty()
                                || own.ends_with('/')
                                || rest.starts_with(['/', '?', '#'])
                        })
                    })
                })
            }
            _ => false,
        }
    }
}

fn acknowledgement(id: &str, honoured: &Wanted) -> Bytes {
    let kinds = [
        ("toolsListChanged", honoured.tools),
        ("promptsListChanged", honoured.prompts),
        ("resourcesListChanged", honoured.resources),
    ];
    let mut parts: Vec<_> = kinds
        .iter()
        .filter(|(_, wanted)| *wanted)
        .map(|(kind, _)| format!(r#""{kind}":true"#))
        .collect();
    if !honoured.uris.is_empty() {
        parts.push(format!(
            r#""resourceSubscriptions":{}"#,
            serde_json::json!(honoured.uris)
        ));
    }
    let params = format!(
        r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{{}}}}}"#,
        parts.join(",")
    );
    message::notification("notifications/subscriptions/acknowledged", &params)
}

fn tagged(notice: &Message, id: &str) -> Option<Bytes> {
    let params = notice.params().unwrap_or("{}");
    let [meta] = members(params, ["_meta"]).ok()?;
    let meta = edit(
        meta.unwrap_or("{}"),
        [("io.modelcontextprotocol/subscriptionId", Edit::Set(id))],
    )?;
    let params = edit(params, [("_meta", Edit::Set(&meta))])?;
    let whole = std::str::from_utf8(notice.bytes()).ok()?;
    edit(whole, [("params", Edit::Set(&params))]).map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::parse(&text.to_owned().into_bytes().into()).unwrap()
    }

    #[test]
    fn a_listen_hears_what_it_asked_for() {
        let wanted = Wanted::read(&message(
            r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["shop://a","shop://b/"]}}}"#,
        ))
        .unwrap();
        let table = [
            (
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#,
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"shop://a"}}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"shop://a/1"}}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"shop://ab"}}"#,
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"shop://b/2"}}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
                false,
            ),
        ];
        for (notice, heard) in table {
            assert_eq!(wanted.includes(&message(notice)), heard, "{notice}");
        }
    }

    #[test]
    fn every_message_of_a_listen_is_tagged() {
        let notice = message(r#"{"jsonrpc":"2.0","method":"m","params":{"uri":"u","n":1.0}}"#);
        assert_eq!(
            tagged(&notice, "\"7\"").unwrap(),
            r#"{"jsonrpc":"2.0","method":"m","params":{"uri":"u","n":1.0,"_meta":{"io.modelcontextprotocol/subscriptionId":"7"}}}"#
        );
        let bare = message(r#"{"jsonrpc":"2.0","method":"m"}"#);
        assert!(tagged(&bare, "7").is_some());
    }
}
