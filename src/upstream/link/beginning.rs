//! What the beginning and the end of a message say that is too large to be read as a whole. Some write its id at the
//! end.
//!
//! # Invariants
//! - Only members of the message itself count: an id may stand anywhere in what it carries.
//! - What was left out is not guessed.

use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What a message is that is too large.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// The response to the request with this id (JSON text).
    Response(String),
    /// A request with this id (JSON text), which wants an answer.
    Request(String),
    /// Nobody waits for it.
    Notification,
    /// Its beginning does not say.
    Unknown,
}

/// The members that came before the message was cut off.
#[derive(Debug, Default)]
struct Seen {
    id: Option<String>,
    method: Option<String>,
    asks: bool,
    answers: bool,
}

impl Begun {
    /// What begins and ends so.
    pub(super) fn read(beginning: &[u8], end: &[u8]) -> Self {
        let mut seen = Seen::default();
        let mut json = serde_json::Deserializer::from_slice(beginning);
        // It ends in the midst of something, which is an error and no matter.
        let _cut_off = (&mut seen).deserialize(&mut json);
        seen.id = seen.id.or_else(|| last_id(end));
        let notifies = |method: &String| method.starts_with("notifications/");
        match seen {
            Seen { method, .. } if method.as_ref().is_some_and(notifies) => Self::Notification,
            Seen {
                id: Some(id),
                asks: false,
                answers: true,
                ..
            } => Self::Response(id),
            Seen {
                id: Some(id),
                asks: true,
                answers: false,
                ..
            } => Self::Request(id),
            _ => Self::Unknown,
        }
    }
}

/// The id (JSON text) of a message, if that is the last thing in it: what stands right before the brace that ends
/// the message belongs to the message itself.
fn last_id(end: &[u8]) -> Option<String> {
    const NAME: &str = r#""id":"#;
    // It may begin in the midst of a letter.
    let end = String::from_utf8_lossy(end);
    let members = end.trim_end().strip_suffix('}')?;
    let (before, id) = members.rsplit_once(NAME)?;
    let follows = before.trim_end().ends_with([',', '{']);
    let id = id.trim();
    let whole = serde_json::from_str::<&RawValue>(id).is_ok() && !id.starts_with(['{', '[']);
    (follows && whole).then(|| id.to_owned())
}

impl<'de> DeserializeSeed<'de> for &mut Seen {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Seen {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut id = None;
        while let Some(name) = map.next_key::<String>()? {
            // A number that something follows is a whole one.
            self.id = self.id.take().or_else(|| id.take());
            match name.as_str() {
                "id" => id = Some(map.next_value::<&RawValue>()?.get().to_owned()),
                "method" => {
                    self.asks = true;
                    self.method = Some(map.next_value()?);
                }
                other => {
                    self.asks |= other == "params";
                    self.answers |= matches!(other, "result" | "error");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_it_is_before_it_is_cut_off() {
        let response = |id: &str| Begun::Response(id.to_owned());
        let request = |id: &str| Begun::Request(id.to_owned());
        for (beginning, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"x":""#, response("1")),
            (r#"{"id": "a\/b" ,"error":{"x":""#, response(r#""a\/b""#)),
            (r#"{"result":{"id":2},"id":1,"x":""#, response("1")),
            (r#"{"result":{},"id":1"#, Begun::Unknown),
            (r#"{"result":{"id":1,"#, Begun::Unknown),
            (r#"{"id":1,"x":""#, Begun::Unknown),
            (r#"{"id":1,"method":"m","params":""#, request("1")),
            (r#"{"id":1,"params":""#, request("1")),
            (r#"{"id":1,"params":{},"result":""#, Begun::Unknown),
            (r#"{"method":"m","params":""#, Begun::Unknown),
            (
                r#"{"method":"notifications/m","params":""#,
                Begun::Notification,
            ),
            (r#"[{"id":1,"result":""#, Begun::Unknown),
            ("", Begun::Unknown),
        ] {
            let read = Begun::read(beginning.as_bytes(), b"");
            assert_eq!(read, expected, "{beginning}");
        }
    }

    #[test]
    fn an_id_may_be_the_last_thing_in_a_message() {
        for (end, expected) in [
            (r#"xxx"},"jsonrpc":"2.0","id":7}"#, Some("7")),
            (r#"xxx"}, "id" : 7 }"#, None),
            (r#"xxx"}, "id": "a" }  "#, Some(r#""a""#)),
            // That of something in the message.
            (r#"xxx","id":7}}"#, None),
            // That of a text.
            (r#"xxx,"id":7"}"#, None),
            (r#"xxx,"id":7,"x":1}"#, None),
            (r#"xxx,"id":{"a":1}}"#, None),
            ("}", None),
            ("", None),
        ] {
            let expected = expected.map_or(Begun::Unknown, |id| Begun::Response(id.to_owned()));
            let read = Begun::read(br#"{"result":{"x":"xxx"#, end.as_bytes());
            assert_eq!(read, expected, "{end}");
        }
    }
}
