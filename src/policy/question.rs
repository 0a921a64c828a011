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
        match self.method {
            "elicitation/create" if self.text("mode").as_deref() == Some("url") => Kind::Url,
            "elicitation/create" => Kind::Form,
            "sampling/createMessage" => Kind::Sampling,
            "roots/list" => Kind::Roots,
            _ => Kind::Other,
        }
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
        Form::read(self.schema())
    }

    /// The schema of it (JSON text).
    pub(super) fn schema(&self) -> &'q str {
        let [schema] = members(self.params, ["requestedSchema"]).unwrap_or_default();
        schema.unwrap_or("{}")
    }

    fn text(&self, name: &'static str) -> Option<Cow<'q, str>> {
        let [value] = members(self.params, [name]).ok()?;
        text(value?)
    }
}
