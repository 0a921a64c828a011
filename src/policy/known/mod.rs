//! The forms that a server has asked with: a schema is read once, and compiled once.
//!
//! Servers ask with the same few forms again and again; what differs is the message, and that is judged
//! each time ([`secrets`](super::secrets)). What is found in a schema depends on nothing but its text.
//!
//! # Invariants
//! - Only the same text, byte for byte, is the same form.
//! - A server can send endless different schemas: the memory is bounded, in number and in bytes, each weighed with
//!   what it may come to hold.
//! - A form that was met once goes before one that was met again since, and a large one is not kept at all.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::RwLock;
use serde_json::Value;

use super::answer::{Checks, Fault};
use super::form::{Form, NotAForm};
use super::secrets::Wording;

/// The most forms of a server that are remembered.
const MAX_FORMS: usize = 64;

/// The most that they may weigh together, in bytes.
const MAX_WEIGHT: usize = 1 << 20;

/// The most that one of them may weigh.
const MAX_FORM: usize = MAX_WEIGHT / 8;

/// What a part of a schema weighs: its value, what is read of it, and what it is compiled to.
const PART: usize = 1024;

/// A form, and what its answers are checked with.
#[derive(Debug)]
pub(super) struct Known {
    /// The form.
    pub(super) form: Form,
    checks: Checks,
}

impl Known {
    /// Checks the content of an answer, as [`Form::check`] does.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn check(&self, content: &str) -> Result<(), Vec<Fault>> {
        self.form.check_with(&self.checks, content)
    }
}

impl From<Form> for Known {
    fn from(form: Form) -> Self {
        let checks = Checks::up_to(2 * parts(form.schema()));
        Self { form, checks }
    }
}

/// What was read of a schema.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) form: Arc<Known>,
    /// What its words say of secrets.
    pub(super) wording: Arc<Wording>,
}

/// The forms of one server.
#[derive(Default)]
pub(super) struct Forms {
    kept: RwLock<Kept>,
}

#[derive(Default)]
struct Kept {
    by_text: HashMap<Arc<str>, Entry>,
    /// Their texts, from that which goes next to the newest.
    queue: VecDeque<Arc<str>>,
    weight: usize,
}

struct Entry {
    read: Read,
    weight: usize,
    /// Whether it was met again since it came, or since it was spared.
    again: AtomicBool,
}

impl Forms {
    /// Reads a schema (JSON text), or finds what was read of it.
    ///
    /// # Errors
    /// When it is no form. That is found out anew each time.
    pub(super) fn read(&self, schema: &str) -> Result<Read, NotAForm> {
        if let Some(entry) = self.kept.read().by_text.get(schema) {
            // Not written where it is so already: others read it at the same time.
            if !entry.again.load(Relaxed) {
                entry.again.store(true, Relaxed);
            }
            return Ok(entry.read.clone());
        }
        let form = Form::read(schema)?;
        let wording = Wording::read(&form);
        let weight = 2 * schema.len() + PART * parts(form.schema()) + wording.size();
        let read = Read {
            form: Arc::new(form.into()),
            wording: Arc::new(wording),
        };
        if weight <= MAX_FORM {
            self.kept.write().keep(schema, &read, weight);
        }
        Ok(read)
    }
}

impl Kept {
    fn keep(&mut self, schema: &str, read: &Read, weight: usize) {
        if self.by_text.contains_key(schema) {
            return;
        }
        while self.by_text.len() >= MAX_FORMS || self.weight + weight > MAX_WEIGHT {
            if !self.drop_one() {
                return;
            }
        }
        let text: Arc<str> = schema.into();
        let entry = Entry {
            read: read.clone(),
            weight,
            again: AtomicBool::new(false),
        };
        self.weight += weight;
        self.queue.push_back(Arc::clone(&text));
        self.by_text.insert(text, entry);
    }

    /// Drops the oldest that was not met again; the others that are passed by have to prove themselves anew.
    fn drop_one(&mut self) -> bool {
        while let Some(text) = self.queue.pop_front() {
            match self.by_text.get(&text) {
                Some(entry) if entry.again.swap(false, Relaxed) => self.queue.push_back(text),
                Some(entry) => {
                    self.weight -= entry.weight;
                    self.by_text.remove(&text);
                    return true;
                }
                None => {}
            }
        }
        false
    }
}

impl fmt::Debug for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept.read();
        f.debug_struct("Forms")
            .field("kept", &kept.by_text.len())
            .field("weight", &kept.weight)
            .finish_non_exhaustive()
    }
}

/// How many values there are in one, itself too.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(parts).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(parts).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
