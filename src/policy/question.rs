//! A question as policy sees it: who asks what of whom, in the midst of which call.

use std::borrow::Cow;

use super::form::{Form, NotAForm};
use crate::protocol::object::{members, text};

/// A question, and what is known about the one who is to answer it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The server that asks, by its name in the configuration.
    pub server: &'q str,
    /// `elicitation/create`, `sampling/createMessage`, `roots/list`, or a method never heard of.
    pub method: &'q str,
    /// Its raw `params` (JSON text).
    pub params: &'q str,
    /// The tool whose call caused it, if a tool did.
    pub tool: Option<&'q str>,
    /// The raw `arguments` of that call (JSON text).
    pub arguments: Option<&'q str>,
    /// Whom it is for.
    pub person: Person<'q>,
}

/// Whom a question is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Person<'q> {
    /// As logs name them.
    pub name: &'q str,
    /// Who vouches for them; `key` for API keys, empty without authentication.
    pub issuer: &'q str,
    /// What that one calls them.
    pub subject: &'q str,
    /// The OAuth client that acts for them.
    pub oauth_client: &'q str,
    /// What logs call the session.
    pub session: &'q str,
    /// The name and the version of the client program, as it says.
    pub client: (&'q str, &'q str),
    /// Whether nobody sits there who could be asked this: it was said so, or the client can't.
    pub headless: bool,
}

/// What kind of question it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Elicitation by a form.
    Form,
    /// Elicitation by a URL.
    Url,
    /// Sampling.
    Sampling,
    /// Roots.
    Roots,
    /// Something else: policy has no say in it.
    #[default]
    Other,
}

impl Kind {
    /// Whether its answer has an action.
    pub fn is_elicitation(self) -> bool {
        matches!(self, Self::Form | Self::Url)
    }

    /// As rules and records call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
            Self::Other => "other",
        }
    }
}

impl<'q> Question<'q> {
    /// What kind it is. A mode that was never heard of is a form's, as servers of before have none.
    pub fn kind(&self) -> Kind {
        self.content().kind
    }

    /// What the person is told; empty where there is nothing.
    pub fn message(&self) -> Cow<'q, str> {
        self.text("message").unwrap_or_default()
    }

    /// Where the person is to be sent.
    pub fn url(&self) -> Cow<'q, str> {
        self.text("url").unwrap_or_default()
    }

    /// The form that it shows.
    ///
    /// # Errors
    /// When what it asks for is none.
    pub fn form(&self) -> Result<Form, NotAForm> {
        let [schema] = members(self.params, ["requestedSchema"]).unwrap_or_default();
        Form::read(schema.unwrap_or("{}"))
    }

    fn text(&self, name: &'static str) -> Option<Cow<'q, str>> {
        let [value] = members(self.params, [name]).ok()?;
        text(value?)
    }

    /// What it says if it is an elicitation, read once.
    pub(super) fn content(&self) -> Content<'q> {
        let elicitation = self.method == "elicitation/create";
        let parts = elicitation.then(|| parts(self.params));
        let [mode, message, url, schema] = parts.unwrap_or_default();
        let kind = match self.method {
            "elicitation/create" if mode.and_then(text).as_deref() == Some("url") => Kind::Url,
            "elicitation/create" => Kind::Form,
            "sampling/createMessage" => Kind::Sampling,
            "roots/list" => Kind::Roots,
            _ => Kind::Other,
        };
        Content {
            kind,
            message,
            url,
            schema,
        }
    }
}

/// What an elicitation says (JSON texts).
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'q> {
    pub(super) kind: Kind,
    message: Option<&'q str>,
    url: Option<&'q str>,
    schema: Option<&'q str>,
}

impl<'q> Content<'q> {
    /// What the person is told; empty where there is nothing.
    pub(super) fn message(&self) -> Cow<'q, str> {
        self.message.and_then(text).unwrap_or_default()
    }

    /// Where the person is to be sent.
    pub(super) fn url(&self) -> Cow<'q, str> {
        self.url.and_then(text).unwrap_or_default()
    }

    /// The schema of the form (JSON text).
    pub(super) fn schema(&self) -> &'q str {
        self.schema.unwrap_or("{}")
    }
}

/// The raw mode, message, URL and schema. One that could be read in two ways is not there, and takes none of the
/// others with it.
fn parts(params: &str) -> [Option<&str>; 4] {
    const NAMES: [&str; 4] = ["mode", "message", "url", "requestedSchema"];
    members(params, NAMES).unwrap_or_else(|_| {
        NAMES.map(|name| {
            let [value] = members(params, [name]).unwrap_or_default();
            value
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_read_in_two_ways_takes_nothing_else_with_it() {
        let params =
            r#"{"mode":"url","message":"a","Message":"b","url":"https://x","requestedSchema":{}}"#;
        let [mode, message, url, schema] = parts(params);
        assert_eq!((mode, message), (Some("\"url\""), None));
        assert_eq!((url, schema), (Some("\"https://x\""), Some("{}")));
        assert_eq!(parts("[]"), [None; 4]);
    }
}
