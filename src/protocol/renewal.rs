//! What makes a session at a legacy server whole again that its server has lost: what it had been told, what
//! its client was promised, and which requests may go to the new one.
//!
//! The specification has the client begin anew after a 404 (2025-03-26 … 2025-11-25 basic/transports, "Session
//! Management"). A gateway is that client, and can do it without its own client; what was at the server is lost
//! all the same, so everything is said to have changed.
//!
//! # Invariants
//! - Nothing is executed twice silently: what may have been carried out is sent again only where that changes
//!   nothing at the server.
//! - A request meets at most one renewal and is repeated at most once, whatever its server does.
//! - A session that can't be made what it was is not renewed.

use bytes::Bytes;
use serde_json::Value;

use super::message::{Kind, Message};
use super::object::{members, quoted, text};
use super::subscription::{Filter, MOST};

/// Which session at the server it is, of those that one session of a client has had.
pub type Generation = u32;

/// What came between a request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setback {
    /// The server did not know the session, so it surely did nothing.
    Unknown,
    /// The way of the answer broke: it may have been carried out.
    Broken,
}

/// How often a request has been sent, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sendings {
    renewed: bool,
    repeated: bool,
}

impl Sendings {
    /// Whether a request of this method may be sent again after a setback. `asked`: a person was asked
    /// something on its behalf.
    pub fn again(&mut self, after: Setback, method: &str, asked: bool) -> bool {
        match after {
            // What a task is called is known to the session that made it, and to no other.
            Setback::Unknown if method.starts_with("tasks/") => false,
            Setback::Unknown => !std::mem::replace(&mut self.renewed, true),
            // Who was asked must not be asked the same again for a reason that they don't see.
            Setback::Broken if asked || !is_repeatable(method) => false,
            Setback::Broken => !std::mem::replace(&mut self.repeated, true),
        }
    }

    /// Whether it has met a renewal.
    pub fn met_renewal(&self) -> bool {
        self.renewed
    }
}

/// Whether a request of this method changes nothing at the server, so that it may be repeated.
pub fn is_repeatable(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "prompts/get"
            | "completion/complete"
            | "ping"
    )
}

/// A request that a new session is told what the old one had been told with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its method.
    pub method: &'static str,
    /// Its parameters (JSON text).
    pub params: String,
    /// The resource that it subscribes.
    pub uri: Option<String>,
}

/// What a session was told that lasts: the log level and the subscriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// JSON text.
    level: Option<Box<str>>,
    /// In the order in which they were subscribed.
    uris: Vec<Box<str>>,
    /// More than is kept was subscribed.
    overfull: bool,
}

impl Standing {
    /// A request was answered.
    pub fn note(&mut self, request: &Message, response: &Message) {
        if response.kind() != Kind::Result {
            return;
        }
        match request.method() {
            "logging/setLevel" => {
                let [level] = request.param(["level"]).unwrap_or_default();
                self.level = level.map(Into::into).or_else(|| self.level.take());
            }
            "resources/subscribe" => {
                let new = uri(request).filter(|uri| !self.uris.contains(uri));
                self.uris.extend(new);
                // As many as all listens of a client may name, several times.
                if self.uris.len() > 4 * MOST {
                    self.uris.clear();
                    self.overfull = true;
                }
            }
            "resources/unsubscribe" => {
                if let Some(uri) = uri(request) {
                    self.give_up(&uri);
                }
            }
            _ => {}
        }
    }

    /// A resource is not subscribed any more.
    pub fn give_up(&mut self, uri: &str) {
        self.uris.retain(|it| **it != *uri);
    }

    /// Whether all of it is known.
    pub fn is_whole(&self) -> bool {
        !self.overfull
    }

    /// What a new session has to be told.
    pub fn requests(&self) -> Vec<Told> {
        let level = self.level.iter().map(|level| Told {
            method: "logging/setLevel",
            params: format!(r#"{{"level":{level}}}"#),
            uri: None,
        });
        let uris = self.uris.iter().map(|uri| Told {
            method: "resources/subscribe",
            params: format!(r#"{{"uri":{}}}"#, quoted(uri)),
            uri: Some(uri.to_string()),
        });
        level.chain(uris).collect()
    }

    /// What its client has to be told, since it may have missed it: that every list of which the server
    /// tells changes (`welcome`, the result of `initialize`) and every subscribed resource may be another.
    pub fn changes(&self, welcome: &str) -> Vec<Bytes> {
        let mut told = Filter::of_lists(|list| has_part(welcome, list, "listChanged"));
        told.uris = self.uris.iter().map(ToString::to_string).collect();
        told.changes()
    }
}

fn uri(request: &Message) -> Option<Box<str>> {
    let [uri] = request.param(["uri"]).ok()?;
    Some(text(uri?)?.into())
}

/// Whether a result of `initialize` (JSON text) declares this capability.
pub fn has(welcome: &str, capability: &str) -> bool {
    declared(welcome, capability).is_some()
}

/// Whether it declares `part` of this capability with the value `true`.
pub fn has_part(welcome: &str, capability: &str, part: &str) -> bool {
    let parts = declared(welcome, capability).and_then(|it| members(it, [part]).ok());
    matches!(parts, Some([Some("true")]))
}

fn declared<'w>(welcome: &'w str, capability: &str) -> Option<&'w str> {
    let [capabilities] = members(welcome, ["capabilities"]).ok()?;
    let [declared] = members(capabilities?, [capability]).ok()?;
    declared.filter(|value| *value != "null")
}

/// Whether a result of `initialize` (JSON text) holds what an earlier one promised: the same version of the
/// protocol, and no capability less.
pub fn holds(earlier: &str, later: &str) -> bool {
    let read = |result: &str| serde_json::from_str::<Value>(result).unwrap_or_default();
    let (earlier, later) = (read(earlier), read(later));
    let part = |result: &Value, name: &str| result.get(name).cloned().unwrap_or_default();
    part(&earlier, "protocolVersion") == part(&later, "protocolVersion")
        && includes(
            &part(&later, "capabilities"),
            &part(&earlier, "capabilities"),
        )
}

/// Whether what is declared includes what was.
fn includes(now: &Value, before: &Value) -> bool {
    match before {
        Value::Null | Value::Bool(false) => true,
        Value::Object(before) => {
            now.is_object()
                && before
                    .iter()
                    .all(|(name, before)| includes(now.get(name).unwrap_or(&Value::Null), before))
        }
        Value::Bool(true) => *now == Value::Bool(true),
        _ => !now.is_null(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(json: &str) -> Message {
        Message::parse(&Bytes::copy_from_slice(json.as_bytes())).unwrap()
    }

    fn told(standing: &mut Standing, method: &str, params: &str) {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let done = message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        standing.note(&message(&request), &done);
    }

    #[test]
    fn what_was_carried_out_for_certain_or_perhaps_is_sent_again_as_the_rule_says() {
        use Setback::{Broken, Unknown};
        let table = [
            ("tools/call", Unknown, false, true),
            ("tools/call", Unknown, true, true),
            ("tools/call", Broken, false, false),
            ("tools/list", Unknown, false, true),
            ("tools/list", Broken, false, true),
            ("resources/read", Broken, false, true),
            ("resources/read", Broken, true, false),
            ("prompts/get", Broken, false, true),
            ("completion/complete", Broken, false, true),
            ("ping", Broken, false, true),
            ("resources/subscribe", Unknown, false, true),
            ("resources/subscribe", Broken, false, false),
            ("logging/setLevel", Broken, false, false),
            ("tasks/result", Unknown, false, false),
            ("tasks/get", Broken, false, false),
            ("vendor/own", Unknown, false, true),
            ("vendor/own", Broken, false, false),
        ];
        for (method, setback, asked, expected) in table {
            let mut sendings = Sendings::default();
            let again = sendings.again(setback, method, asked);
            assert_eq!(again, expected, "{method} after {setback:?}");
            assert!(
                !sendings.again(setback, method, asked),
                "{method}, once more"
            );
        }
    }

    #[test]
    fn a_session_is_told_what_it_was_told_last() {
        let mut standing = Standing::default();
        assert!(standing.requests().is_empty());
        told(&mut standing, "logging/setLevel", r#"{"level":"info"}"#);
        told(&mut standing, "resources/subscribe", r#"{"uri":"a://1"}"#);
        told(&mut standing, "resources/subscribe", r#"{"uri":"a:\/\/2"}"#);
        told(&mut standing, "resources/subscribe", r#"{"uri":"a://1"}"#);
        told(&mut standing, "logging/setLevel", r#"{"level":"debug"}"#);
        told(&mut standing, "tools/call", r#"{"name":"x"}"#);
        let refused = message(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#);
        let request =
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a://3"}}"#;
        standing.note(&message(request), &refused);
        let subscribe = |uri: &str| Told {
            method: "resources/subscribe",
            params: format!(r#"{{"uri":"{uri}"}}"#),
            uri: Some(uri.to_owned()),
        };
        let level = Told {
            method: "logging/setLevel",
            params: r#"{"level":"debug"}"#.to_owned(),
            uri: None,
        };
        let all = [level.clone(), subscribe("a://1"), subscribe("a://2")];
        assert_eq!(standing.requests(), all);
        told(&mut standing, "resources/unsubscribe", r#"{"uri":"a://1"}"#);
        assert_eq!(standing.requests(), [level, subscribe("a://2")]);
        assert!(standing.is_whole());
    }

    #[test]
    fn what_is_subscribed_is_bounded_and_a_session_with_more_is_not_made_up() {
        let mut standing = Standing::default();
        for number in 0..=4 * MOST {
            assert!(standing.is_whole());
            let params = format!(r#"{{"uri":"a://{number}"}}"#);
            told(&mut standing, "resources/subscribe", &params);
        }
        assert!(!standing.is_whole());
        assert!(standing.requests().is_empty());
    }

    #[test]
    fn a_client_is_told_of_all_that_may_have_changed() {
        let mut standing = Standing::default();
        told(&mut standing, "resources/subscribe", r#"{"uri":"a://1"}"#);
        let welcome = r#"{"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"listChanged":true,"subscribe":true}}}"#;
        let methods: Vec<_> = standing
            .changes(welcome)
            .iter()
            .map(|it| Message::parse(it).unwrap().method().to_owned())
            .collect();
        assert_eq!(
            methods,
            [
                "notifications/tools/list_changed",
                "notifications/resources/list_changed",
                "notifications/resources/updated"
            ]
        );
    }

    #[test]
    fn a_promise_is_held_by_the_same_version_and_no_capability_less() {
        let result = |version: &str, capabilities: &str| {
            format!(
                r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"serverInfo":{{"name":"s"}}}}"#
            )
        };
        let v = "2025-11-25";
        let earlier = result(
            v,
            r#"{"tools":{"listChanged":true},"logging":{},"x":null,"y":false}"#,
        );
        let table = [
            (v, r#"{"tools":{"listChanged":true},"logging":{}}"#, true),
            (
                v,
                r#"{"tools":{"listChanged":true,"n":1},"logging":{"a":1},"prompts":{}}"#,
                true,
            ),
            (v, r#"{"tools":{},"logging":{}}"#, false),
            (v, r#"{"tools":{"listChanged":false},"logging":{}}"#, false),
            (v, r#"{"tools":{"listChanged":true}}"#, false),
            (v, r#"{"tools":{"listChanged":true},"logging":null}"#, false),
            (v, "{}", false),
            (
                "2025-06-18",
                r#"{"tools":{"listChanged":true},"logging":{}}"#,
                false,
            ),
        ];
        for (version, capabilities, expected) in table {
            let later = result(version, capabilities);
            assert_eq!(holds(&earlier, &later), expected, "{later}");
        }
        assert!(holds(&earlier, &earlier));
        assert!(!holds(&earlier, "{}"));
    }

    proptest! {
        /// Whatever happens to it in whatever order: a request is sent three times at most, and one that does
        /// something at the server is sent again only after the server surely did not.
        #[test]
        fn no_request_is_sent_for_ever(
            setbacks in proptest::collection::vec(any::<bool>(), 0..50),
            method in prop::sample::select(vec!["tools/call", "tools/list", "resources/read", "vendor/own", "tasks/get"]),
            asked in any::<bool>(),
        ) {
            let (mut sendings, mut sent, mut perhaps) = (Sendings::default(), 1, 0);
            for broken in setbacks {
                let setback = if broken { Setback::Broken } else { Setback::Unknown };
                perhaps += u32::from(broken);
                if !sendings.again(setback, method, asked) {
                    break;
                }
                sent += 1;
                prop_assert!(perhaps == 0 || is_repeatable(method));
            }
            prop_assert!(sent <= 3);
        }
    }
}
