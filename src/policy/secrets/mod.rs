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
mod masks;
mod search;
mod text;
mod wording;
mod words;

use std::fmt;

pub use self::wording::Wording;
use super::form::Form;
use super::remark::line;

/// How many characters of the name of a field are told.
const MAX_NAME: usize = 60;

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
    Wording::read(form).wanted(message)
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
