//! What a client declared that it can be asked.

use std::borrow::Cow;

use super::message::Message;
use super::object::{edit, is_object, members, text};

/// The interactive capabilities of a client, as its `initialize` declared them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent facts, as the wire has them"
)]
pub struct ClientCapabilities {
    /// `elicitation/create` with a form.
    pub form: bool,
    /// `elicitation/create` with a URL (2025-11-25).
    pub url: bool,
    /// `sampling/createMessage`.
    pub sampling: bool,
    /// Tools in sampling (2025-11-25).
    pub sampling_tools: bool,
    /// The context of servers in sampling (2025-11-25).
    pub sampling_context: bool,
    /// `roots/list`.
    pub roots: bool,
}

/// Why a question can't be put to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// JSON-RPC code: -32601 for a method, -32602 for a mode of a method that is there.
    pub code: i32,
    /// What the server is told.
    pub message: &'static str,
    /// The capabilities object that would have allowed it (JSON text).
    pub required: &'static str,
}

/// What a client must have declared to be asked something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: methods that need no capability, and ones we never heard of.
    Nothing,
    /// Forms.
    Form,
    /// URLs.
    Url,
    /// Forms or URLs: read in one way here and in another there, it could be what was not declared.
    Ambiguous,
    /// Sampling.
    Sampling,
    /// Roots.
    Roots,
}

const FORM: &str = r#"{"elicitation":{"form":{}}}"#;
const URL: &str = r#"{"elicitation":{"url":{}}}"#;

impl ClientCapabilities {
    /// Reads the `capabilities` object of an `initialize` request. What is malformed counts as not
    /// declared; `elicitation: {}` means forms (2025-11-25 client/elicitation, "Capabilities").
    pub fn read(capabilities: Option<&str>) -> Self {
        let object = |raw: Option<&str>| raw.is_some_and(is_object);
        let Some(Ok([elicitation, sampling, roots])) = capabilities
            .filter(|raw| is_object(raw))
            .map(|raw| members(raw, ["elicitation", "sampling", "roots"]))
        else {
            return Self::default();
        };
        let [form, url] = elicitation
            .filter(|raw| is_object(raw))
            .and_then(|raw| members(raw, ["form", "url"]).ok())
            .unwrap_or_default();
        let (form, url) = (object(form), object(url));
        let [tools, context] = sampling
            .filter(|raw| is_object(raw))
            .and_then(|raw| members(raw, ["tools", "context"]).ok())
            .unwrap_or_default();
        Self {
            form: object(elicitation) && (form || !url),
            url,
            sampling: object(sampling),
            sampling_tools: object(tools),
            sampling_context: object(context),
            roots: object(roots),
        }
    }

    /// The `capabilities` object of an `initialize` (JSON text) with these in place of those that it has;
    /// none where they are the same. `modes`: the version tells forms from URLs (from 2025-11-25 on).
    pub fn in_place_of(self, capabilities: Option<&str>, modes: bool) -> Option<String> {
        let theirs = Self::read(capabilities);
        if self == theirs {
            return None;
        }
        let form = if modes { r#"{"form":{}}"# } else { "{}" };
        let elicitation = match (self.form, self.url && (modes || theirs.url)) {
            (true, true) => Some(r#"{"form":{},"url":{}}"#),
            (true, false) => Some(form),
            (false, true) => Some(r#"{"url":{}}"#),
            (false, false) => None,
        };
        let mut changes = Vec::new();
        if (self.form, self.url) != (theirs.form, theirs.url) {
            changes.push(("elicitation", elicitation));
        }
        if !self.sampling {
            changes.push(("sampling", None));
        }
        if !self.roots {
            changes.push(("roots", None));
        }
        let capabilities = capabilities.filter(|raw| is_object(raw)).unwrap_or("{}");
        edit(capabilities, &changes).ok().map(Cow::into_owned)
    }

    /// Whether the client can be asked this. Methods that need no capability, and ones we never
    /// heard of, pass.
    ///
    /// # Errors
    /// What to tell the server when the client never said that it can.
    pub fn allow(&self, question: &Message) -> Result<(), Undeclared> {
        self.meet(Need::of(question))
    }

    /// The same, of a question of which it is known what it needs.
    ///
    /// # Errors
    /// What to tell the server when the client never said that it can.
    pub fn meet(&self, need: Need) -> Result<(), Undeclared> {
        let missing = |message, required| {
            Err(Undeclared {
                code: -32601,
                message,
                required,
            })
        };
        let without = |message, required| {
            Err(Undeclared {
                code: -32602,
                message,
                required,
            })
        };
        match need {
            Need::Form | Need::Url | Need::Ambiguous if !self.form && !self.url => missing(
                "the client does not support elicitation",
                if need == Need::Url { URL } else { FORM },
            ),
            Need::Ambiguous => without("the mode is ambiguous", FORM),
            Need::Url if !self.url => {
                without("the client does not support elicitation in URL mode", URL)
            }
            Need::Form if !self.form => {
                without("the client does not support elicitation in form mode", FORM)
            }
            Need::Sampling if !self.sampling => {
                missing("the client does not support sampling", r#"{"sampling":{}}"#)
            }
            Need::Roots if !self.roots => {
                missing("the client does not support roots", r#"{"roots":{}}"#)
            }
            _ => Ok(()),
        }
    }
}

impl Need {
    /// That of a question.
    pub fn of(question: &Message) -> Self {
        match question.method() {
            "elicitation/create" => match question.param(["mode"]) {
                Ok([Some(mode)]) if text(mode).is_some_and(|mode| mode == "url") => Self::Url,
                Ok(_) => Self::Form,
                Err(_) => Self::Ambiguous,
            },
            "sampling/createMessage" => Self::Sampling,
            "roots/list" => Self::Roots,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(capabilities: &str, method: &str, params: &str) -> Option<i32> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let question = Message::parse(&text.into_bytes().into()).unwrap();
        ClientCapabilities::read(Some(capabilities))
            .allow(&question)
            .err()
            .map(|it| it.code)
    }

    #[test]
    fn elicitation_follows_the_declared_modes() {
        let form = r#"{"message":"?","requestedSchema":{}}"#;
        let url = r#"{"mode":"url","url":"https://x"}"#;
        let ambiguous = r#"{"mode":"form","mode":"url","url":"https://x"}"#;
        assert_eq!(
            code(r#"{"elicitation":{}}"#, "elicitation/create", ambiguous),
            Some(-32602)
        );
        let table = [
            (r#"{"elicitation":{}}"#, None, Some(-32602)),
            (r#"{"elicitation":{"form":{}}}"#, None, Some(-32602)),
            (r#"{"elicitation":{"url":{}}}"#, Some(-32602), None),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, None, None),
            ("{}", Some(-32601), Some(-32601)),
            (r#"{"elicitation":null}"#, Some(-32601), Some(-32601)),
            (r#"{"elicitation":true}"#, Some(-32601), Some(-32601)),
            ("7", Some(-32601), Some(-32601)),
        ];
        for (capabilities, for_form, for_url) in table {
            assert_eq!(
                code(capabilities, "elicitation/create", form),
                for_form,
                "{capabilities}"
            );
            assert_eq!(
                code(capabilities, "elicitation/create", url),
                for_url,
                "{capabilities}"
            );
        }
    }

    #[test]
    fn a_server_sees_what_can_be_answered_and_all_else_as_it_was() {
        let everything = r#"{"x":1.0,"elicitation":{"form":{"y":2}},"roots":{"listChanged":true},"sampling":{}}"#;
        let none = ClientCapabilities::default();
        let form = ClientCapabilities { form: true, ..none };
        let both = ClientCapabilities { url: true, ..form };
        let table = [
            (none, everything, true, Some(r#"{"x":1.0}"#)),
            (
                form,
                everything,
                true,
                Some(r#"{"x":1.0,"elicitation":{"form":{"y":2}}}"#),
            ),
            (form, "{}", false, Some(r#"{"elicitation":{}}"#)),
            (form, "{}", true, Some(r#"{"elicitation":{"form":{}}}"#)),
            (
                both,
                r#"{"elicitation":{}}"#,
                true,
                Some(r#"{"elicitation":{"form":{},"url":{}}}"#),
            ),
            (
                both,
                "7",
                true,
                Some(r#"{"elicitation":{"form":{},"url":{}}}"#),
            ),
            (form, r#"{"elicitation":{}}"#, true, None),
            (none, "{}", true, None),
        ];
        for (declared, capabilities, modes, expected) in table {
            let seen = declared.in_place_of(Some(capabilities), modes);
            assert_eq!(seen.as_deref(), expected, "{declared:?} {capabilities}");
        }
    }

    #[test]
    fn other_questions_follow_theirs_and_unknown_ones_pass() {
        for (method, key) in [
            ("sampling/createMessage", "sampling"),
            ("roots/list", "roots"),
        ] {
            assert_eq!(code("{}", method, "{}"), Some(-32601));
            assert_eq!(code(&format!(r#"{{"{key}":{{}}}}"#), method, "{}"), None);
        }
        assert_eq!(code("{}", "ping", "{}"), None);
        assert_eq!(code("{}", "vendor/x", "{}"), None);
    }
}
