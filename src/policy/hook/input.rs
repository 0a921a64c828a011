//! What a hook is told: one question, and what the person answered to it, as a JSON object.
//!
//! # Invariants
//! - Schemas, messages and values are embedded as the bytes they are.
//! - What a hook would have to guess at (a field named twice, an answer that can be read in two ways)
//!   is an error before it is asked.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;

use super::contract::{Event, Question, Unreadable};
use super::output::{Expected, Mode, Person};
use crate::protocol::object::{self, members, quoted, text};

/// One question for one hook: read once, so that what it is told and how it is understood fit.
pub(super) struct Call<'a> {
    question: Question<'a>,
    event: Event<'a>,
    mode: Mode,
    told: Told<'a>,
    fields: Vec<Field<'a>>,
    response: Option<Response<'a>>,
}

/// The parts of a question that a hook is told, raw.
struct Told<'a> {
    message: Option<&'a str>,
    mode: Option<&'a str>,
    url: Option<&'a str>,
    id: Option<&'a str>,
    schema: Option<&'a str>,
}

/// One field of a form.
struct Field<'a> {
    name: String,
    label: Cow<'a, str>,
    kind: &'static str,
    required: bool,
}

/// The person's answer.
struct Response<'a> {
    action: Cow<'a, str>,
    content: Option<&'a str>,
    /// The names, as JSON text, and the raw values of `content`.
    values: Vec<(String, &'a str)>,
}

/// The largest question, and the largest answer of a person, that a hook is told.
pub(super) const MAX_PART: usize = 1024 * 1024;

impl<'a> Call<'a> {
    /// Reads what a hook is to be told.
    pub(super) fn read(question: Question<'a>, event: Event<'a>) -> Result<Self, Unreadable> {
        if question.params.len() > MAX_PART {
            return Err(Unreadable::TooLarge);
        }
        let names = ["message", "mode", "url", "elicitationId", "requestedSchema"];
        let [message, mode, url, id, schema] =
            members(question.params, names).map_err(|_| Unreadable::Params)?;
        let told = Told {
            message,
            mode,
            url,
            id,
            schema,
        };
        let mode = match mode.map(text) {
            None => Mode::Form,
            Some(mode) => match mode.as_deref() {
                Some("form") => Mode::Form,
                Some("url") => Mode::Url,
                _ => Mode::Other,
            },
        };
        let response = match event {
            Event::Before => None,
            Event::After { user_response } => Some(Response::read(user_response)?),
        };
        Ok(Self {
            question,
            event,
            mode,
            fields: told.schema.map_or(Ok(Vec::new()), fields)?,
            told,
            response,
        })
    }

    /// What its answer has to fit.
    pub(super) fn expected(&self) -> Expected {
        Expected {
            event: self.event.name(),
            mode: self.mode,
            person: match &self.response {
                None => Person::NotAsked,
                Some(response) if response.action == "accept" => Person::Accepted,
                Some(_) => Person::Refused,
            },
        }
    }

    /// The JSON object that the hook gets. `cwd` is the folder that it runs in; empty for a URL.
    pub(super) fn input(&self, cwd: &str) -> Bytes {
        let Question {
            server,
            tool,
            principal,
            session,
            params: _,
        } = self.question;
        let mut object = Object::default();
        object.text("session_id", session);
        // A script may insist on the members that every event of the contract has.
        object.text("transcript_path", "");
        object.text("cwd", cwd);
        object.text("permission_mode", "default");
        object.text("hook_event_name", self.event.name());
        object.text("mcp_server_name", server);
        if let Some(tool) = tool {
            object.text("tool_name", &format!("mcp__{server}__{tool}"));
        }
        object.raw("message", self.told.message);
        object.raw("mode", Some(self.told.mode.unwrap_or(r#""form""#)));
        object.raw("url", self.told.url);
        object.raw("elicitation_id", self.told.id);
        object.raw("requested_schema", self.told.schema);
        object.raw("requestedSchema", self.told.schema);
        if self.mode == Mode::Form {
            let fields: Vec<String> = self.fields.iter().map(Field::json).collect();
            let form = format!(r#"{{"fields":[{}]}}"#, fields.join(","));
            object.raw("elicitation_form", Some(&form));
        }
        object.text("principal", principal);
        object.text("session", session);
        if let Some(response) = &self.response {
            object.text("action", &response.action);
            object.raw("content", response.content);
            object.raw("user_response", Some(&response.json()));
        }
        object.close().into()
    }
}

impl<'a> Response<'a> {
    fn read(raw: &'a str) -> Result<Self, Unreadable> {
        if raw.len() > MAX_PART {
            return Err(Unreadable::TooLarge);
        }
        let [action, content] =
            members(raw, ["action", "content"]).map_err(|_| Unreadable::Response)?;
        let content = unless_null(content);
        let values = content.map_or(Ok(Vec::new()), |content| {
            once_each(content).map_err(|_| Unreadable::Response)
        })?;
        Ok(Self {
            action: action.and_then(text).ok_or(Unreadable::Response)?,
            content,
            values,
        })
    }

    /// The values as members, as the scripts that there are read them, and beside them `action` and
    /// `content` where no field has that name.
    fn json(&self) -> String {
        let mut object = Object::default();
        let free = |own: &str| {
            let taken = |(name, _): &(String, _)| text(name).as_deref() == Some(own);
            !self.values.iter().any(taken)
        };
        for (name, value) in &self.values {
            object.member(name, value);
        }
        if free("action") {
            object.text("action", &self.action);
        }
        if free("content") {
            object.raw("content", self.content);
        }
        object.close()
    }
}

impl Field<'_> {
    fn json(&self) -> String {
        let Self {
            name,
            label,
            kind,
            required,
        } = self;
        format!(
            r#"{{"name":{},"label":{},"type":"{kind}","required":{required}}}"#,
            quoted(name),
            quoted(label)
        )
    }
}

/// The fields of a form, in the order in which the server names them.
fn fields<'a>(schema: &'a str) -> Result<Vec<Field<'a>>, Unreadable> {
    let [properties, required] =
        members(schema, ["properties", "required"]).map_err(|_| Unreadable::Schema)?;
    let required: HashSet<String> = required
        .and_then(|required| serde_json::from_str(required).ok())
        .unwrap_or_default();
    let properties = properties.map_or(Ok(Vec::new()), once_each)?;
    let field = |(name, raw): (String, &'a str)| field(text_of(&name), raw, &required);
    properties.into_iter().map(field).collect()
}

fn field<'a>(
    name: String,
    raw: &'a str,
    required: &HashSet<String>,
) -> Result<Field<'a>, Unreadable> {
    let [kind, title, one_of, choices] =
        members(raw, ["type", "title", "oneOf", "enum"]).map_err(|_| Unreadable::Schema)?;
    let kind = match kind.and_then(text).as_deref() {
        _ if one_of.or(choices).is_some() => "select",
        Some("array") => "multiselect",
        Some("boolean") => "boolean",
        Some("number" | "integer") => "number",
        _ => "text",
    };
    let label = title.and_then(text);
    Ok(Field {
        label: label.unwrap_or_else(|| Cow::Owned(name.clone())),
        required: required.contains(&name),
        name,
        kind,
    })
}

/// The members of an object in which every name can be read and none occurs twice: the names as JSON
/// text, the values raw.
fn once_each(raw: &str) -> Result<Vec<(String, &str)>, Unreadable> {
    let found = object::all_members(raw).map_err(|_| Unreadable::Schema)?;
    let mut names = HashSet::new();
    let once = |(name, _): &(String, _)| {
        let name = text(name).map(Cow::into_owned);
        name.is_some_and(|name| names.insert(name))
    };
    if found.iter().all(once) {
        Ok(found)
    } else {
        Err(Unreadable::Fields)
    }
}

/// The text of a member's name, which is a JSON string.
fn text_of(name: &str) -> String {
    text(name).unwrap_or_default().into_owned()
}

/// A value, unless it is the one that says that there is none.
pub(super) fn unless_null(raw: Option<&str>) -> Option<&str> {
    raw.filter(|raw| *raw != "null")
}

/// A JSON object that grows member by member.
#[derive(Default)]
struct Object(String);

impl Object {
    fn text(&mut self, name: &str, value: &str) {
        self.raw(name, Some(&quoted(value)));
    }

    fn raw(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.member(&quoted(name), value);
        }
    }

    /// A member whose name is JSON text already.
    fn member(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(name);
        self.0.push(':');
        self.0.push_str(value);
    }

    fn close(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}
