//! Checks what a person answered against the form they were shown.
//!
//! "Clients SHOULD validate all responses against the provided schema", and servers too (2025-11-25
//! client/elicitation, "Form Mode Security"): not all do, so the gateway does. A form of the flat subset is checked by what
//! it says of each field. A schema outside of it is checked as it is, as far as that can be done in
//! bounded time; the rest is left to the server that wrote it.
//!
//! # Invariants
//! - A fault says what is wanted, and repeats neither what was typed nor a name that the client made
//!   up.
//! - A field that was not asked for is refused, unless the schema says itself which others there are.

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use super::{Checks, Fault, reason, schema};
use crate::policy::form::Form;
use crate::policy::json;
use crate::protocol::object::entries;

/// The largest content that is read, in bytes of JSON.
pub const MAX_CONTENT: usize = 256 * 1024;

/// Of a long list of wrong values no more are looked at.
const MAX_ERRORS: usize = 1000;

impl Form {
    /// Checks the `content` (JSON text) of an accepted answer. Where an answer has none, `{}` is to be
    /// checked.
    ///
    /// # Errors
    /// What is wrong with it: the whole first, then the fields in their order, one fault each.
    ///
    /// ```
    /// use contraflow::policy::form::Form;
    /// let form = Form::read(r#"{"type":"object","properties":{
    ///     "seats":{"type":"integer","minimum":1},"mail":{"type":"string","format":"email"}},
    ///     "required":["seats"]}"#).unwrap();
    /// assert!(form.check(r#"{"seats":3.0,"mail":"mira@example.com"}"#).is_ok());
    /// let faults = form.check(r#"{"seats":0,"mail":"mira"}"#).unwrap_err();
    /// let reasons: Vec<_> = faults.iter().map(|fault| fault.reason.as_str()).collect();
    /// assert_eq!(reasons, ["must be at least 1", "is not an e-mail address"]);
    /// ```
    pub fn check(&self, content: &str) -> Result<(), Vec<Fault>> {
        self.check_with(&Checks::default(), content)
    }

    /// The same, with what may have been compiled for this form before.
    pub(in crate::policy) fn check_with(
        &self,
        checks: &Checks,
        content: &str,
    ) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::new(self);
        if content.len() > MAX_CONTENT {
            faults.whole("is too long");
            return faults.end();
        }
        let Ok(named) = entries(content) else {
            faults.whole("can't be read");
            return faults.end();
        };
        let values = Value::Object(faults.read(&named));
        checks.validate(self, &values, |validator| {
            faults.validate(validator, &values);
        });
        faults.end()
    }
}

/// What is wrong with one answer, at most one thing in each place.
struct Faults<'f> {
    form: &'f Form,
    whole: Option<String>,
    fields: Vec<Option<String>>,
}

impl<'f> Faults<'f> {
    fn new(form: &'f Form) -> Self {
        Self {
            form,
            whole: None,
            fields: vec![None; form.fields().len()],
        }
    }

    /// The values of all fields that can be read.
    fn read(&mut self, named: &[(std::borrow::Cow<'_, str>, &str)]) -> Map<String, Value> {
        let mut values = Map::new();
        let mut strangers = 0;
        for (name, raw) in named {
            match json::value(raw) {
                _ if values.contains_key(&**name) => self.field(name, "is answered twice"),
                Ok(value) => {
                    strangers += usize::from(!schema::knows(self.form, name));
                    values.insert(name.clone().into_owned(), value);
                }
                Err(_) => self.field(name, "can't be read"),
            }
        }
        match strangers {
            0 => {}
            1 => self.whole("has a field that nobody asked for"),
            more => self.whole(format!("has {more} fields that nobody asked for")),
        }
        values
    }

    fn validate(&mut self, validator: &Validator, values: &Value) {
        for error in validator.iter_errors(values).take(MAX_ERRORS) {
            let name = place(&error);
            let field = name.as_deref().and_then(|name| self.form.field(name));
            let reason = reason::of(&error, field);
            match name {
                Some(name) => self.field(&name, reason),
                None => self.whole(reason),
            }
        }
    }

    fn whole(&mut self, reason: impl Into<String>) {
        self.whole.get_or_insert_with(|| reason.into());
    }

    fn field(&mut self, name: &str, reason: impl Into<String>) {
        let mut fields = self.form.fields().iter().zip(&mut self.fields);
        match fields.find(|(field, _)| field.name == name) {
            Some((_, fault)) => {
                fault.get_or_insert_with(|| reason.into());
            }
            None => self.whole(reason),
        }
    }

    fn end(self) -> Result<(), Vec<Fault>> {
        let whole = self.whole.map(|reason| Fault {
            field: None,
            reason,
        });
        let fields = self.form.fields().iter().zip(self.fields);
        let fields = fields.filter_map(|(field, reason)| {
            Some(Fault {
                field: Some(field.name.clone()),
                reason: reason?,
            })
        });
        let faults: Vec<_> = whole.into_iter().chain(fields).collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }
}

/// The field that an error is about, if it is about one.
fn place(error: &ValidationError<'_>) -> Option<String> {
    match error.instance_path().into_iter().next() {
        Some(LocationSegment::Property(name)) => Some(name.into_owned()),
        Some(LocationSegment::Index(_)) => None,
        None => match error.kind() {
            ValidationErrorKind::Required { property } => property.as_str().map(str::to_owned),
            _ => None,
        },
    }
}
