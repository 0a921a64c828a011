//! What the protocol says, as pure code: no socket, no clock, no lock, no task, no randomness.
//!
//! The middle is a [`session::Session`]: calls of one client in flight at one server, and the
//! questions that the server asks meanwhile. The faces around it read and write one wire each:
//! [`client_legacy`] speaks with clients of 2025-03-26 … 2025-11-25, [`server_legacy`] with servers
//! of that era. A client-side face never sees a server-side one.
//!
//! # Invariants
//! - Everything is a function of its arguments; time comes in as `now`.
//! - Payloads stay the bytes they were; only named fields are edited ([`message`]).
//! - Nothing here imports another room of the crate.

pub mod capability;
pub mod client_legacy;
pub mod client_modern;
pub mod convert;
pub mod edit;
pub mod elicitation;
pub mod media;
pub mod message;
pub mod object;
pub mod parked;
pub mod replay;
pub mod server_legacy;
pub mod session;
pub mod sse;
pub mod version;
