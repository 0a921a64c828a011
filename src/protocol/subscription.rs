//! Subscriptions to what changes (2026-07-28 basic/patterns/subscriptions): what somebody wants to hear
//! of, and the messages by which they hear it.

use bytes::Bytes;

use super::message::{self, Message};
use super::modern::META_SUBSCRIPTION;
use super::object::{edit, elements, members, quoted, text};

/// The most resources that one client may want to hear of at once.
pub const MOST: usize = 256;

/// The lists that can change, by the capabilities that they belong to.
const LISTS: [&str; 3] = ["tools", "prompts", "resources"];

/// What somebody wants to hear of, or has been promised to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Which of [`LISTS`].
    lists: [bool; LISTS.len()],
    /// The resources.
    pub uris: Vec<String>,
}

impl Filter {
    /// The lists that are `told` of, by the names of their capabilities; no resources.
    pub fn of_lists(told: impl Fn(&str) -> bool) -> Self {
        Self {
            lists: LISTS.map(told),
            uris: Vec::new(),
        }
    }

    /// Reads the `notifications` of a request or an acknowledgement (JSON text), with at most `most`
    /// resources.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(filter: Option<&str>, most: usize) -> Result<Self, &'static str> {
        let filter = filter.ok_or("`notifications` is missing")?;
        let [tools, prompts, resources, uris] = members(
            filter,
            [
                "toolsListChanged",
                "promptsListChanged",
                "resourcesListChanged",
                "resourceSubscriptions",
            ],
        )
        .map_err(|_| "`notifications` can't be read")?;
        let uris = elements(uris.unwrap_or("[]"), most)
            .map_err(|_| "`resourceSubscriptions` can't be read")?;
        Ok(Self {
            lists: [tools, prompts, resources].map(|wanted| wanted == Some("true")),
            uris: uris
                .into_iter()
                .filter_map(text)
                .map(std::borrow::Cow::into_owned)
                .collect(),
        })
    }

    /// As a request or an acknowledgement says it: a JSON object.
    pub fn to_json(&self) -> String {
        let lists = self
            .lists()
            .map(|list| format!(r#""{list}ListChanged":true"#));
        let uris: Vec<_> = self.uris.iter().map(|uri| quoted(uri)).collect();
        let uris =
            (!uris.is_empty()).then(|| format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        let all: Vec<_> = lists.chain(uris).collect();
        format!("{{{}}}", all.join(","))
    }

    /// The lists of it that are `told` of; no resources.
    #[must_use]
    pub fn lists_told(&self, told: impl Fn(&str) -> bool) -> Self {
        Self::of_lists(|list| self.lists().any(|it| it == list) && told(list))
    }

    /// How many things it is about.
    pub fn len(&self) -> usize {
        self.lists().count() + self.uris.len()
    }

    /// Whether it is about nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a notification is about something of it.
    pub fn includes(&self, notice: &Message) -> bool {
        if notice.method() == "notifications/resources/updated" {
            let [uri] = notice.param(["uri"]).unwrap_or_default();
            return uri
                .and_then(text)
                .is_some_and(|uri| self.uris.iter().any(|own| covers(own, &uri)));
        }
        self.lists().any(|list| {
            let rest = notice.method().strip_prefix("notifications/");
            rest.and_then(|rest| rest.strip_prefix(list)) == Some("/list_changed")
        })
    }

    /// A notification about each thing of it: what is to be said when changes may have been missed.
    pub fn changes(&self) -> Vec<Bytes> {
        let lists = self
            .lists()
            .map(|list| message::notification(&format!("notifications/{list}/list_changed"), "{}"));
        let updated = |uri: &String| {
            let params = format!(r#"{{"uri":{}}}"#, quoted(uri));
            message::notification("notifications/resources/updated", &params)
        };
        lists.chain(self.uris.iter().map(updated)).collect()
    }

    fn lists(&self) -> impl Iterator<Item = &'static str> {
        let wanted = LISTS.into_iter().zip(self.lists);
        wanted.filter_map(|(list, wanted)| wanted.then_some(list))
    }
}

/// Whether who wants to hear of the resource `own` hears of `uri`: it is the same, or lies under it
/// (`ResourceUpdatedNotification` in the schema of each version: it may be of a sub-resource).
pub fn covers(own: &str, uri: &str) -> bool {
    uri.strip_prefix(own).is_some_and(|rest| {
        rest.is_empty() || own.ends_with('/') || rest.starts_with(['/', '?', '#'])
    })
}

/// The first message of the subscription with this id (JSON text): what it will be told of.
pub fn acknowledgement(id: &str, honoured: &Filter) -> Bytes {
    let params = format!(
        r#"{{"_meta":{{"{META_SUBSCRIPTION}":{id}}},"notifications":{}}}"#,
        honoured.to_json()
    );
    message::notification("notifications/subscriptions/acknowledged", &params)
}

/// A notification for the subscription with this id (JSON text); none when it is ambiguous.
pub fn tagged(notice: &Message, id: &str) -> Option<Bytes> {
    let params = notice.params().unwrap_or("{}");
    let [meta] = members(params, ["_meta"]).ok()?;
    let meta = edit(meta.unwrap_or("{}"), &[(META_SUBSCRIPTION, Some(id))]).ok()?;
    let params = edit(params, &[("_meta", Some(&meta))]).ok()?;
    let whole = std::str::from_utf8(notice.bytes()).ok()?;
    let whole = edit(whole, &[("params", Some(&params))]).ok()?;
    Some(Bytes::from(whole.into_owned()))
}

/// The last message of the subscription with this id (JSON text), when it ends in order.
pub fn complete(id: &str) -> Bytes {
    let result = format!(r#"{{"resultType":"complete","_meta":{{"{META_SUBSCRIPTION}":{id}}}}}"#);
    message::result(id, &result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::parse(&text.to_owned().into_bytes().into()).unwrap()
    }

    fn updated(uri: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
        )
    }

    #[test]
    fn a_resource_covers_itself_and_what_lies_under_it() {
        let table = [
            ("file:///a", "file:///a", true),
            ("file:///a", "file:///a/", true),
            ("file:///a", "file:///a/b/c", true),
            ("file:///a", "file:///a?page=2", true),
            ("file:///a", "file:///a#top", true),
            ("file:///a/", "file:///a/b", true),
            ("shop://", "shop://a", true),
            // The same letters are not the same place.
            ("file:///a", "file:///ab", false),
            ("file:///a", "file:///a.txt", false),
            ("file:///a", "file:///A", false),
            // What is above is not covered, nor is anything by nothing.
            ("file:///a/", "file:///a", false),
            ("file:///a/b", "file:///a", false),
            ("", "file:///a", false),
        ];
        for (own, uri, covered) in table {
            assert_eq!(covers(own, uri), covered, "{own} {uri}");
        }
    }

    #[test]
    fn a_listen_hears_what_it_asked_for() {
        let text = r#"{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["shop://a","shop://b/"]}"#;
        let wanted = Filter::read(Some(text), 2).unwrap();
        let list = |kind: &str| {
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/{kind}/list_changed"}}"#)
        };
        let table = [
            (list("tools"), true),
            (list("prompts"), false),
            (list("resources"), false),
            (list("vendor"), false),
            (updated("shop://a"), true),
            (updated("shop://a/1"), true),
            (updated("shop://ab"), false),
            (updated("shop://b/2"), true),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/message"}"#.into(),
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated"}"#.into(),
                false,
            ),
        ];
        for (notice, heard) in table {
            assert_eq!(wanted.includes(&message(&notice)), heard, "{notice}");
        }
        assert_eq!(wanted.len(), 3);
    }

    #[test]
    fn a_filter_is_read_as_it_is_written() {
        for text in [
            "{}",
            r#"{"promptsListChanged":true}"#,
            r#"{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a\"b"]}"#,
        ] {
            let filter = Filter::read(Some(text), 1).unwrap();
            assert_eq!(filter.to_json(), text);
            assert_eq!(filter.is_empty(), text == "{}");
        }
        assert!(Filter::read(None, 1).is_err());
        for text in [
            "7",
            "null",
            r#"{"resourceSubscriptions":7}"#,
            r#"{"resourceSubscriptions":["a","b"]}"#,
            r#"{"toolsListChanged":true,"toolslistchanged":true}"#,
        ] {
            assert!(Filter::read(Some(text), 1).is_err(), "{text}");
        }
    }

    #[test]
    fn only_what_a_server_tells_of_is_honoured() {
        let wanted = Filter::of_lists(|list| list != "resources");
        let honoured = wanted.lists_told(|list| list != "tools");
        assert_eq!(honoured, Filter::of_lists(|list| list == "prompts"));
    }

    #[test]
    fn everything_may_have_changed() {
        let mut filter = Filter::of_lists(|list| list == "prompts");
        filter.uris.push("shop://a".into());
        let changes = filter.changes();
        let expected = [
            r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}"#,
            &updated("shop://a"),
        ];
        assert_eq!(changes, expected);
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
        assert_eq!(
            acknowledgement("7", &Filter::of_lists(|list| list == "tools")),
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"notifications":{"toolsListChanged":true}}}"#
        );
        assert_eq!(
            complete("7"),
            r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#
        );
    }
}
