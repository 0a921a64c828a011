//! What the protocol says, as pure code: no socket, no clock, no lock, no task, no randomness.
//!
//! The middle is a [`session::Session`]: calls of one client in flight at one server, and the
//! questions that the server asks meanwhile. Where the two sides are of different eras, a machine holds
//! a call together: [`parked`] and [`replay`] for a modern client at a legacy server, [`rounds`] for the
//! opposite.
//!
//! The faces around read and write one wire each: [`client_legacy`] and [`server_legacy`] that of
//! 2025-03-26 … 2025-11-25, [`client_modern`] and [`server_modern`] that of 2026-07-28. A client-side
//! face never sees a server-side one: what both have to know is in [`modern`] and [`version`], and what
//! is said on one wire is put into the words of the other by [`convert`] and [`to_legacy`].
//!
//! # Invariants
//! - Everything is a function of its arguments; time comes in as `now`.
//! - Payloads stay the bytes they were; only named fields are edited ([`message`]).
//! - Nothing here imports another room of the crate.

pub mod capability;
pub mod client_legacy;
pub mod client_modern;
pub mod clock;
pub mod convert;
mod early;
pub mod elicitation;
pub mod era;
pub mod event_id;
pub mod media;
pub mod message;
pub mod mirror;
pub mod modern;
pub mod object;
pub mod parked;
pub mod renewal;
pub mod replay;
pub mod rounds;
pub mod sampling;
pub mod server_legacy;
pub mod server_modern;
pub mod session;
pub mod sse;
pub mod subscription;
pub mod tasks;
pub mod to_legacy;
pub mod version;

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
mod tests;
