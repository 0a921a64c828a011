//! What happens to a question and to its answer: is it a form that may be asked, what may be
//! answered to it, and where may a person be sent.
//!
//! ```text
//! question ──► form      what is asked, and whether it is the flat form of the specification
//!          ──► secrets   whether it asks for a password or the like
//!          ──► urls      whether a person may be sent there
//! answer ────► answer    what it says; content only where it belongs, and only what fits the form
//! again ─────► remark    the same question with a line of the gateway's
//! ```
//!
//! Everything here is pure: who asks and waits is `relay`.
//!
//! # Invariants
//! - Decisions come from the parsed body, and what could be read in two ways is refused.
//! - What passes stays the bytes it was; an edit changes one named member.
//! - No text of this room holds a value that somebody typed.

pub mod answer;
pub mod form;
mod json;
pub mod remark;
pub mod secrets;
pub mod urls;
