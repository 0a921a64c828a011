//! Who waits for what on a link: each message of the server finds its reader here.
//!
//! Of a legacy server only responses and progress say what they belong to; what else comes belongs to the
//! session (2024-11-05 … 2025-11-25 basic/transports), and to its only request where there is but one. A
//! modern server asks nothing, and its notifications name the request that they are about (2026-07-28
//! transports/stdio), by its progress token or the id of its subscription.
//!
//! # Invariants
//! - A response goes to who waits for its id, once. What was said of a request before that is read before it.
//! - What a legacy server asks and what it withdraws are read in their order, whatever requests there are.
//! - On a link of requests progress tokens are ours: clients choose theirs freely, and two may choose
//!   the same one.
//! - What a closed link still holds ends; nothing new begins on it.

use std::collections::HashMap;

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::protocol::message::{Kind, Message};
use crate::protocol::modern::META_SUBSCRIPTION;
use crate::protocol::object::{edit, members, text};

/// What a link is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Manner {
    /// One session with a legacy server.
    Session,
    /// Requests to a modern server that stand for themselves.
    Requests,
}

/// The messages for one reader that wait for it.
const ROOM: usize = 64;

/// Who waits on a link.
#[derive(Debug)]
pub(super) struct Books {
    manner: Manner,
    waiting: HashMap<Box<str>, Waiting>,
    closed: bool,
}

#[derive(Debug)]
struct Waiting {
    to: Sender<Bytes>,
    /// Until `initialize` is answered, all that comes is for who has said it.
    opening: bool,
    /// It is a subscription: what comes for it says so.
    listens: bool,
    /// The progress token (JSON text) that its client has chosen.
    token: Option<Box<str>>,
}

/// Where a message goes.
#[derive(Debug)]
pub(super) enum Place {
    /// To this reader, so.
    Reader(Sender<Bytes>, Bytes),
    /// To who reads what belongs to no request.
    Rest,
    /// To nobody.
    Nobody,
}

impl Books {
    pub(super) fn new(manner: Manner) -> Self {
        Self {
            manner,
            waiting: HashMap::new(),
            closed: false,
        }
    }

    /// Expects the response to a request. Gives the request as it is sent, and what comes to read; none
    /// when the link is closed.
    pub(super) fn expect(&mut self, request: &Message) -> Option<(Bytes, Receiver<Bytes>)> {
        if self.closed {
            return None;
        }
        let id = request.id().unwrap_or("null");
        let (sent, token) = match self.manner {
            Manner::Session => (request.bytes().clone(), token(request).map(Into::into)),
            Manner::Requests => match with_token(request, id, |_| id.to_owned()) {
                Some((sent, token)) => (sent, Some(token)),
                None => (request.bytes().clone(), None),
            },
        };
        let (to, comes) = channel(ROOM);
        let waiting = Waiting {
            to,
            opening: self.manner == Manner::Session && request.method() == "initialize",
            listens: request.method() == "subscriptions/listen",
            token,
        };
        self.waiting.insert(id.into(), waiting);
        Some((sent, comes))
    }

    /// Nobody waits for it any more. Whether somebody did.
    pub(super) fn forget(&mut self, id: &str) -> bool {
        self.waiting.remove(id).is_some()
    }

    /// The response to a request has come and is too large: who waits for it gets an empty message, which is
    /// the last one. Whether somebody does.
    pub(super) fn spoil(&mut self, id: &str) -> bool {
        let Some(waiting) = self.take(id) else {
            return false;
        };
        // A reader with much to read learns that nothing more comes.
        let _full = waiting.to.try_send(Bytes::new());
        true
    }

    /// Who waits for the response with this id (JSON text), and does so no more.
    fn take(&mut self, id: &str) -> Option<Waiting> {
        if let Some(waiting) = self.waiting.remove(id) {
            return Some(waiting);
        }
        let own = self.waiting.keys().find(|own| same(own, id))?.clone();
        self.waiting.remove(&own)
    }

    /// Where a message of the server goes.
    pub(super) fn sort(&mut self, message: &Message) -> Place {
        let bytes = || message.bytes().clone();
        if message.is_response() {
            let waiting = message.id().and_then(|id| self.take(id));
            return match (waiting, self.manner) {
                (Some(waiting), _) => Place::Reader(waiting.to, bytes()),
                (None, Manner::Session) => Place::Rest,
                (None, Manner::Requests) => Place::Nobody,
            };
        }
        match self.manner {
            Manner::Session => {
                let opening = self.waiting.values().find(|waiting| waiting.opening);
                let reader = opening.or_else(|| self.during(message));
                reader.map_or(Place::Rest, |it| Place::Reader(it.to.clone(), bytes()))
            }
            Manner::Requests if message.kind() == Kind::Notification => self.about(message),
            Manner::Requests => Place::Nobody,
        }
    }

    /// Whose request a message of a legacy server is surely about, or most probably.
    fn during(&self, message: &Message) -> Option<&Waiting> {
        match (message.kind(), message.method()) {
            // A withdrawal must not overtake its question.
            (Kind::Request, _) | (_, "notifications/cancelled") => None,
            (_, "notifications/progress") => {
                let [token] = message.param(["progressToken"]).ok()?;
                let token = token?;
                let own = |it: &&Waiting| it.token.as_deref().is_some_and(|own| same(own, token));
                self.waiting.values().find(own)
            }
            _ if self.waiting.len() == 1 => self.waiting.values().next(),
            _ => None,
        }
    }

    /// Who reads a notification of a modern server.
    fn about(&self, notice: &Message) -> Place {
        let [token, meta] = notice.param(["progressToken", "_meta"]).unwrap_or_default();
        if let Some(token) = token {
            let Some(waiting) = self.waiting.get(token) else {
                return Place::Nobody;
            };
            let bytes = match &waiting.token {
                Some(theirs) => notice.replacing(token, theirs),
                None => return Place::Nobody,
            };
            return Place::Reader(waiting.to.clone(), bytes);
        }
        let subscription = meta.and_then(|meta| members(meta, [META_SUBSCRIPTION]).ok());
        let waiting = if let Some([Some(id)]) = subscription {
            self.waiting.get(id)
        } else {
            // It does not say; where there is but one call, it must be that.
            let mut calls = self.waiting.values().filter(|it| !it.listens);
            calls.next().filter(|_| calls.next().is_none())
        };
        waiting.map_or(Place::Nobody, |it| {
            Place::Reader(it.to.clone(), notice.bytes().clone())
        })
    }

    /// Nothing comes any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether nobody waits.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Whether two ids or tokens (JSON text) are the same, however they are spelled.
fn same(one: &str, other: &str) -> bool {
    one == other || (text(one).is_some() && text(one) == text(other))
}

/// The progress token of a request (JSON text).
fn token(request: &Message) -> Option<&str> {
    let [meta] = request.param(["_meta"]).ok()?;
    let [token] = members(meta?, ["progressToken"]).ok()?;
    token
}

/// A request under this id (JSON text) with another progress token, made of its own; and the token that it had.
/// None: it has no token.
pub(super) fn with_token(
    request: &Message,
    id: &str,
    other: impl FnOnce(&str) -> String,
) -> Option<(Bytes, Box<str>)> {
    let params = request.params()?;
    let [meta] = members(params, ["_meta"]).ok()?;
    let meta = meta?;
    let [token] = members(meta, ["progressToken"]).ok()?;
    let token = token?;
    let meta = edit(meta, &[("progressToken", Some(&other(token)))]).ok()?;
    let params = edit(params, &[("_meta", Some(&meta))]).ok()?;
    Some((request.with_body(id, &params), token.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn request(id: u32, meta: &str) -> Message {
        message(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{meta}}}}}"#
        ))
    }

    /// What a reader got of these messages.
    fn read(books: &mut Books, comes: &mut Receiver<Bytes>, messages: &[&str]) -> Vec<String> {
        for text in messages {
            if let Place::Reader(to, bytes) = books.sort(&message(text)) {
                to.try_send(bytes).unwrap();
            }
        }
        std::iter::from_fn(|| comes.try_recv().ok())
            .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn a_response_goes_to_who_waits_for_it_and_only_once() {
        let mut books = Books::new(Manner::Session);
        let (_, mut one) = books.expect(&request(1, "{}")).unwrap();
        let (_, mut two) = books.expect(&request(2, "{}")).unwrap();
        let answer = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
        assert_eq!(read(&mut books, &mut two, &[answer]), [answer]);
        assert!(one.try_recv().is_err());
        assert!(matches!(books.sort(&message(answer)), Place::Rest));
        assert!(two.blocking_recv().is_none(), "nothing follows an answer");
    }

    /// Some write `\/` for `/` in every text.
    #[test]
    fn a_response_finds_who_waits_for_it_however_its_id_is_spelled() {
        let mut books = Books::new(Manner::Session);
        let ask = message(r#"{"jsonrpc":"2.0","id":"1/2","method":"tools/list"}"#);
        let (_, mut comes) = books.expect(&ask).unwrap();
        let answer = r#"{"jsonrpc":"2.0","id":"1\/2","result":{}}"#;
        assert_eq!(read(&mut books, &mut comes, &[answer]), [answer]);
    }

    #[test]
    fn what_a_legacy_server_asks_withdraws_or_says_of_no_request_belongs_to_the_session() {
        let mut books = Books::new(Manner::Session);
        let (_, _comes) = books.expect(&request(1, "{}")).unwrap();
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#,
        ] {
            assert!(matches!(books.sort(&message(text)), Place::Rest));
        }
    }

    #[test]
    fn progress_is_read_by_who_asked_for_it_however_its_token_is_spelled() {
        let mut books = Books::new(Manner::Session);
        let meta = |token: &str| format!(r#"{{"progressToken":{token}}}"#);
        let (_, mut one) = books.expect(&request(1, &meta("1"))).unwrap();
        let (_, mut two) = books.expect(&request(2, &meta(r#""é""#))).unwrap();
        let progress = |token: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token}}}}}"#
            )
        };
        let (of_one, of_two) = (progress("1"), progress(r#""\u00e9""#));
        assert_eq!(read(&mut books, &mut one, &[&of_one]), [of_one]);
        assert_eq!(read(&mut books, &mut two, &[&of_two]), [of_two]);
        let text = progress(r#""1""#);
        assert!(matches!(books.sort(&message(&text)), Place::Rest));
    }

    #[test]
    fn what_a_legacy_server_says_is_about_its_only_request() {
        let mut books = Books::new(Manner::Session);
        let (_, mut one) = books.expect(&request(1, "{}")).unwrap();
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let (_, _two) = books.expect(&request(2, "{}")).unwrap();
        assert!(
            matches!(books.sort(&message(log)), Place::Rest),
            "one of two"
        );
        books.forget("2");
        assert_eq!(read(&mut books, &mut one, &[log, answer]), [log, answer]);
        assert!(matches!(books.sort(&message(log)), Place::Rest), "of none");
    }

    #[test]
    fn all_is_for_who_opens_the_session_until_that_is_answered() {
        let mut books = Books::new(Manner::Session);
        let open = message(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        let (_, mut comes) = books.expect(&open).unwrap();
        let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
        assert_eq!(
            read(&mut books, &mut comes, &[ping, answer]),
            [ping, answer]
        );
        assert!(matches!(books.sort(&message(ping)), Place::Rest));
    }

    #[test]
    fn two_clients_may_choose_the_same_progress_token() {
        let mut books = Books::new(Manner::Requests);
        let (sent, mut one) = books
            .expect(&request(1, r#"{"progressToken":"t"}"#))
            .unwrap();
        let (_, mut two) = books
            .expect(&request(2, r#"{"progressToken":"t"}"#))
            .unwrap();
        let sent = message(std::str::from_utf8(&sent).unwrap());
        assert!(sent.params().unwrap().contains(r#""progressToken":1"#));
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#;
        assert_eq!(
            read(&mut books, &mut two, &[progress]),
            [progress.replace(r#""progressToken":2"#, r#""progressToken":"t""#)]
        );
        assert!(one.try_recv().is_err());
    }

    #[test]
    fn progress_that_nobody_asked_for_is_nobodys() {
        let mut books = Books::new(Manner::Requests);
        let (_, _comes) = books.expect(&request(1, "{}")).unwrap();
        for token in ["1", "7", r#""t""#] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token}}}}}"#
            );
            assert!(
                matches!(books.sort(&message(&text)), Place::Nobody),
                "{token}"
            );
        }
    }

    #[test]
    fn a_notification_that_names_its_subscription_goes_there() {
        let mut books = Books::new(Manner::Requests);
        let (_, mut one) = books.expect(&request(1, "{}")).unwrap();
        let (_, mut two) = books.expect(&request(2, "{}")).unwrap();
        let changed = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"{META_SUBSCRIPTION}":1}}}}}}"#
        );
        assert_eq!(read(&mut books, &mut one, &[&changed]), [changed]);
        let unnamed = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        assert!(matches!(books.sort(&message(unnamed)), Place::Nobody));
        books.forget("1");
        let listen = r#"{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{}}"#;
        let (_, _listening) = books.expect(&message(listen)).unwrap();
        assert_eq!(read(&mut books, &mut two, &[unnamed]), [unnamed]);
    }

    #[test]
    fn a_modern_server_asks_nothing() {
        let mut books = Books::new(Manner::Requests);
        let (_, _comes) = books.expect(&request(1, "{}")).unwrap();
        let asks = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#;
        assert!(matches!(books.sort(&message(asks)), Place::Nobody));
    }

    #[test]
    fn a_closed_link_takes_nothing_and_ends_what_waits() {
        let mut books = Books::new(Manner::Session);
        let (_, comes) = books.expect(&request(1, "{}")).unwrap();
        books.close();
        assert!(comes.is_closed() && books.is_closed() && books.is_idle());
        assert!(books.expect(&request(2, "{}")).is_none());
    }
}
