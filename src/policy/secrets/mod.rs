//! Whether a form asks for a secret: a password, an API key, a token, a PIN, a card number, a seed
//! phrase, a one-time code.
//!
//! "Servers MUST NOT use form mode elicitation to request sensitive information such as passwords, API
//! keys, access tokens, or payment credentials", and must send a person to a URL of their own for that
//! (2026-07-28 client/elicitation; 2025-11-25 says it in other words, and 2025-06-18 without the way
//! out). What is typed into a form passes the client, the model's context and every log on the way.
//! "Sensitive" are "secrets and credentials that grant access or authorize transactions": names,
//! addresses and other personal data are not meant, and are not looked for.
//!
//! What a form asks for is told by its words, so this is a matter of judgement: each phrase that names
//! a secret counts by what the words around it make of it, and by where it stands. Only text that is
//! free can be a secret, and numbers where the secret is one.
//!
//! # Invariants
//! - The name, title and description of a field are read, and the message; values that can be chosen,
//!   examples and defaults are not what is asked for.
//! - Fields that are added to a form don't make it harmless.
//! - The work is linear in the form.

mod fields;
mod grammar;
mod letters;
mod lexicon;
mod search;
mod text;
mod words;

use std::fmt;

use self::fields::{Place, Takes};
use self::grammar::{BARE, Part};
use self::search::{Named, Role, Said, named};
use self::text::{Text, Word};
use self::words::Strength;
use super::form::Form;
use super::remark::line;

/// How many characters of the name of a field are told.
const MAX_NAME: usize = 60;

/// How many bytes of a message are read; of a longer one its beginning and its end.
const MAX_MESSAGE: usize = 64 * 1024;

/// A secret that a form asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The name of the field into which it would be typed.
    pub field: String,
    /// What it is.
    pub what: Secret,
}

/// The kinds of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Secret {
    /// A password or a passphrase.
    Password,
    /// The key of an API, or another key that is a text.
    ApiKey,
    /// A token, or a cookie that is one.
    Token,
    /// What two programs share: a client secret, a signing secret.
    Shared,
    /// The PIN of a card or a device.
    Pin,
    /// The number of a payment card.
    CardNumber,
    /// The security code of a payment card.
    CardCode,
    /// A code that is good for once: of a text message, an authenticator, a list.
    OneTimeCode,
    /// The words from which a wallet can be restored.
    SeedPhrase,
    /// A private key.
    PrivateKey,
    /// A whole login.
    Login,
    /// What only one person should know.
    SecurityAnswer,
}

/// The secret that a form asks for, if it asks for one; the first field counts. `message` is that of
/// the question.
///
/// ```
/// use contraflow::policy::{form::Form, secrets::{Secret, wanted}};
/// let form = |field: &str| Form::read(&format!(r#"{{"type":"object","properties":{{{field}}}}}"#)).unwrap();
/// let asks = form(r#""host":{"type":"string"},"dbPassword":{"type":"string"}"#);
/// let found = wanted("Connect to the database", &asks).unwrap();
/// assert_eq!((found.field.as_str(), found.what), ("dbPassword", Secret::Password));
/// let harmless = form(r#""password_policy":{"type":"string"},"apiKeyName":{"type":"string"}"#);
/// assert_eq!(wanted("Set the password policy", &harmless), None);
/// ```
pub fn wanted(message: &str, form: &Form) -> Option<Wanted> {
    let schema = form.schema();
    let told = |name| schema.get(name).and_then(serde_json::Value::as_str);
    let mut told_all = both_ends(message);
    for more in ["title", "description"].into_iter().filter_map(told) {
        told_all.push('\n');
        told_all.push_str(more);
    }
    let message = Message::read(&told_all);
    fields::places(form).iter().find_map(|place| {
        let what = message.judge(place)?;
        // Beside all fields there is no name.
        let unnamed = place.field.is_empty();
        let field = if unnamed { place.title } else { place.field };
        Some(Wanted {
            field: field.to_owned(),
            what,
        })
    })
}

/// A message without the middle that nobody reads, if it is that long.
fn both_ends(message: &str) -> String {
    if message.len() <= MAX_MESSAGE {
        return message.to_owned();
    }
    let first = message.floor_char_boundary(MAX_MESSAGE / 2);
    let last = message.ceil_char_boundary(message.len() - MAX_MESSAGE / 2);
    let part = |part: Option<&str>| part.unwrap_or_default().to_owned();
    part(message.get(..first)) + "\n" + &part(message.get(last..))
}

/// The message of a question, and the secrets that it names.
struct Message {
    text: Text,
    named: Vec<Named>,
}

impl Message {
    fn read(text: &str) -> Self {
        let text = Text::read(text);
        let named = named(&text, Role::Prose);
        Self { text, named }
    }

    /// The secret that is typed into a place, as the place says or else the message.
    fn judge(&self, place: &Place<'_>) -> Option<Secret> {
        if place.takes == Takes::Nothing {
            return None;
        }
        if place.format == "password" {
            return Some(Secret::Password);
        }
        let field = Field::read(place);
        let fits = |what: &Secret| place.takes == Takes::Text || what.is_number();
        let own = field.asked(self).filter(fits);
        own.or_else(|| field.asked_by(self).filter(fits))
    }
}

/// The texts of a place, and the secrets that they name.
struct Field {
    name: Text,
    title: Text,
    description: Text,
    by_name: Vec<Named>,
    by_title: Vec<Named>,
    by_description: Vec<Named>,
    /// Its answer must be in a format that no secret has.
    is_formatted: bool,
}

impl Field {
    fn read(place: &Place<'_>) -> Self {
        let name = Text::read(&place.name);
        let title = Text::read(place.title);
        let description = Text::read(place.description);
        Self {
            by_name: named(&name, Role::Label),
            by_title: named(&title, Role::Label),
            by_description: named(&description, Role::Prose),
            name,
            title,
            description,
            is_formatted: place.is_formatted(),
        }
    }

    /// The secret that the place itself asks for. One whose answer must be a date or an address can be
    /// misnamed, but not misdescribed.
    fn asked(&self, message: &Message) -> Option<Secret> {
        let counts = |named: &&Named| named.said != Said::About && !self.excuses(named, message);
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
        let shown = if self.title.words.is_empty() {
            &self.name
        } else {
            &self.title
        };
        let bare = BARE.iter().find_map(|(part, secrets)| {
            let is = |word: &Word| word.is(*part);
            let rest = |word: &Word| is(word) || word.is(Part::Verb) || word.is(Part::Void);
            let only = shown.words.iter().any(is) && shown.words.iter().all(rest);
            let mut all = message.named.iter();
            all.find(|named| only && secrets.contains(&named.what))
        });
        let ordinary = |text: &Text| text.words.iter().any(|word| word.is(Part::Ordinary));
        let named = if ordinary(&self.name) || ordinary(&self.title) {
            bare
        } else {
            bare.or_else(|| {
                message.named.iter().find(|named| {
                    named.said == Said::Ordered
                        && !self.excuses(named, message)
                        && !speaks_of(&self.by_title, named.what)
                        && !speaks_of(&self.by_description, named.what)
                })
            })
        };
        named.map(|named| named.what)
    }

    /// Whether something around tells that a phrase means something else here.
    fn excuses(&self, named: &Named, message: &Message) -> bool {
        named.excuses.is_some_and(|excuses| {
            let own = [&self.name, &self.title, &self.description];
            let weak = named.strength != Strength::Strong;
            let around = own.into_iter().chain(weak.then_some(&message.text));
            let mut words = excuses.split_whitespace();
            let around: Vec<_> = around.collect();
            words.any(|word| around.iter().any(|text| text.vocabulary.contains(word)))
        })
    }
}

/// Whether a secret is spoken of, and not asked for.
fn speaks_of(texts: &[Named], what: Secret) -> bool {
    let mut same = texts.iter().filter(|named| named.what == what).peekable();
    same.peek().is_some() && same.all(|named| named.said == Said::About)
}

impl Secret {
    /// Whether it can be typed as a number.
    fn is_number(self) -> bool {
        matches!(
            self,
            Self::Pin | Self::CardNumber | Self::CardCode | Self::OneTimeCode
        )
    }
}

impl Wanted {
    /// What the server is told whose form is refused, with the way that it "MUST" take instead
    /// (2025-11-25 client/elicitation).
    pub fn refusal(&self) -> String {
        format!(
            "{self}; a form must not ask for secrets: send the person to a page of the server, in URL mode (`mode: url`)"
        )
    }

    /// What a person is told above the message, where such forms are let pass.
    pub fn warning(&self) -> String {
        format!(
            "Careful: {self}. What you type here passes programs that should not see it; a server can ask for it on a page of its own."
        )
    }
}

/// As in ``the field `pw` asks for a password``.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the field `{}` asks for {}",
            line(&self.field, MAX_NAME),
            self.what
        )
    }
}

/// As in `a password`.
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password => "a password",
            Self::ApiKey => "an API key",
            Self::Token => "a token",
            Self::Shared => "a secret",
            Self::Pin => "a PIN",
            Self::CardNumber => "a card number",
            Self::CardCode => "the security code of a card",
            Self::OneTimeCode => "a one-time code",
            Self::SeedPhrase => "a seed phrase",
            Self::PrivateKey => "a private key",
            Self::Login => "a login",
            Self::SecurityAnswer => "the answer to a security question",
        })
    }
}

#[cfg(test)]
mod tests;
