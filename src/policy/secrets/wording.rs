//! What the words of a form say of secrets, and what a message makes of it.
//!
//! What a schema says is the same each time its form is asked, so it is read once, and of its texts no more is kept
//! than what a message can still change.

use std::borrow::Cow;

use serde_json::Value;

use super::fields::{Place, Takes, places};
use super::grammar::{BARE, Part};
use super::lexicon::Excuses;
use super::search::{Named, Role, Said, named};
use super::text::{Text, Word};
use super::words::Strength;
use super::{Secret, Wanted};
use crate::policy::form::Form;

/// How many bytes of a message are read; of a longer one its beginning and its end.
pub(super) const MAX_MESSAGE: usize = 64 * 1024;

/// What a form says of secrets, before the message is known.
#[derive(Debug)]
pub struct Wording {
    /// What the schema tells of the whole form, which is read as the end of the message.
    told: String,
    /// The places into which something can be typed.
    fields: Vec<Field>,
}

impl Wording {
    /// That of a form.
    pub fn read(form: &Form) -> Self {
        let schema = form.schema();
        let mut told = String::new();
        for word in ["title", "description"] {
            if let Some(text) = schema.get(word).and_then(Value::as_str) {
                told.push('\n');
                told.push_str(text);
            }
        }
        Self {
            told,
            fields: places(form).iter().filter_map(Field::read).collect(),
        }
    }

    /// The secret that the form asks for with this message, if it asks for one; the first field counts.
    pub fn wanted(&self, message: &str) -> Option<Wanted> {
        if self.fields.is_empty() {
            return None;
        }
        let mut message = both_ends(message);
        if !self.told.is_empty() {
            message.to_mut().push_str(&self.told);
        }
        let message = Message::read(&message);
        self.fields.iter().find_map(|field| {
            let what = field.judge(&message)?;
            Some(Wanted {
                field: field.called.clone(),
                what,
            })
        })
    }

    /// How many bytes it takes, about.
    pub fn size(&self) -> usize {
        let lists =
            |field: &Field| field.by_name.len() + field.by_title.len() + field.by_description.len();
        let fields = self.fields.iter().map(|field| {
            size_of::<Field>() + field.called.len() + lists(field) * size_of::<Named>()
        });
        self.told.len() + fields.sum::<usize>()
    }
}

/// A message without the middle that nobody reads, if it is that long.
fn both_ends(message: &str) -> Cow<'_, str> {
    if message.len() <= MAX_MESSAGE {
        return message.into();
    }
    let first = message.floor_char_boundary(MAX_MESSAGE / 2);
    let last = message.ceil_char_boundary(message.len() - MAX_MESSAGE / 2);
    let part = |part: Option<&str>| part.unwrap_or_default().to_owned();
    (part(message.get(..first)) + "\n" + &part(message.get(last..))).into()
}

/// The secrets that the message of a question names, and what it excuses.
struct Message {
    named: Vec<Named>,
    excuses: Excuses,
}

impl Message {
    fn read(text: &str) -> Self {
        let text = Text::read(text);
        Self {
            named: named(&text, Role::Prose),
            excuses: text.excuses(),
        }
    }
}

/// A place, and the secrets that its texts name.
#[derive(Debug)]
struct Field {
    /// What it is called where it asks for a secret.
    called: String,
    takes: Takes,
    /// Its answer must be in the format of a password.
    is_password: bool,
    /// Its answer must be in a format that no secret has.
    is_formatted: bool,
    /// Its texts are plainly about something else.
    is_ordinary: bool,
    /// What it can stand for, where it says nothing by itself.
    bare: Vec<&'static [Secret]>,
    by_name: Vec<Named>,
    by_title: Vec<Named>,
    by_description: Vec<Named>,
    excuses: Excuses,
}

impl Field {
    /// None where nothing can be typed.
    fn read(place: &Place<'_>) -> Option<Self> {
        if place.takes == Takes::Nothing {
            return None;
        }
        let name = Text::read(&place.name);
        let title = Text::read(place.title);
        let description = Text::read(place.description);
        let ordinary = |text: &Text<'_>| text.words.iter().any(|word| word.is(Part::Ordinary));
        let shown = if title.words.is_empty() {
            &name
        } else {
            &title
        };
        let bare = BARE.iter().filter(|(part, _)| {
            let is = |word: &Word<'_>| word.is(*part);
            let rest = |word: &Word<'_>| is(word) || word.is(Part::Verb) || word.is(Part::Void);
            shown.words.iter().any(is) && shown.words.iter().all(rest)
        });
        // Beside all fields there is no name.
        let called = if place.field.is_empty() {
            place.title
        } else {
            place.field
        };
        Some(Self {
            called: called.to_owned(),
            takes: place.takes,
            is_password: place.format == "password",
            is_formatted: place.is_formatted(),
            is_ordinary: ordinary(&name) || ordinary(&title),
            bare: bare.map(|(_, secrets)| *secrets).collect(),
            by_name: named(&name, Role::Label),
            by_title: named(&title, Role::Label),
            by_description: named(&description, Role::Prose),
            excuses: name.excuses() | title.excuses() | description.excuses(),
        })
    }

    /// The secret that is typed into it, as it says or else the message.
    fn judge(&self, message: &Message) -> Option<Secret> {
        if self.is_password {
            return Some(Secret::Password);
        }
        let fits = |what: &Secret| self.takes == Takes::Text || what.is_number();
        let own = self.asked(message).filter(fits);
        own.or_else(|| self.asked_by(message).filter(fits))
    }

    /// The secret that the place itself asks for. One whose answer must be a date or an address can be
    /// misnamed, but not misdescribed.
    fn asked(&self, message: &Message) -> Option<Secret> {
        let counts = |named: &&Named| named.said != Said::About && !self.excuses(**named, message);
        let title = self.by_title.iter().find(counts);
        let name = self.by_name.iter().filter(counts).find(|named| {
            // A person answers what they see, and the name is not shown where a title is.
            let weak = named.strength != Strength::Strong;
            let described = weak && speaks_of(&self.by_description, named.what);
            !described && !speaks_of(&self.by_title, named.what)
        });
        let description = self.by_description.iter().find(counts);
        let described = description.filter(|_| !self.is_formatted);
        title.or(name).or(described).map(|named| named.what)
    }

    /// The secret that the message asks for, if the place says nothing else of itself.
    fn asked_by(&self, message: &Message) -> Option<Secret> {
        if self.is_formatted {
            return None;
        }
        let bare = self.bare.iter().find_map(|secrets| {
            let mut all = message.named.iter();
            all.find(|named| secrets.contains(&named.what))
        });
        let named = if self.is_ordinary {
            bare
        } else {
            bare.or_else(|| {
                message.named.iter().find(|named| {
                    named.said == Said::Ordered
                        && !self.excuses(**named, message)
                        && !speaks_of(&self.by_title, named.what)
                        && !speaks_of(&self.by_description, named.what)
                })
            })
        };
        named.map(|named| named.what)
    }

    /// Whether something around tells that a phrase means something else here.
    fn excuses(&self, named: Named, message: &Message) -> bool {
        let weak = named.strength != Strength::Strong;
        named.excuses.meets(self.excuses) || (weak && named.excuses.meets(message.excuses))
    }
}

/// Whether a secret is spoken of, and not asked for.
fn speaks_of(texts: &[Named], what: Secret) -> bool {
    let mut same = texts.iter().filter(|named| named.what == what).peekable();
    same.peek().is_some() && same.all(|named| named.said == Said::About)
}
