//! The behaviours of Contraflow, from outside: real sockets, the real binary, one module a promise.
//!
//! Every test starts a gateway process of its own with a configuration of its own, puts scripted
//! servers behind it and plays the clients itself. The support below knows nothing of the crate's
//! insides: what a test says is what a user would see.
//!
//! # Invariants
//! - Nothing leaves loopback, every port is 0, every wait is for a condition and has a deadline.
//! - "Nothing arrived" is never shown by waiting: a later message on the same road is the fence.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that can't go on says so by a panic, in its support too"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests drive the clock and their own tasks"
)]

mod support;

mod answers;
mod approval;
mod ask;
mod audit;
mod auth;
mod batch;
mod bodies;
mod cancellation;
mod caps;
mod challenges;
mod demo;
mod eras;
mod fidelity;
mod garbage;
mod hosts;
mod ids;
mod legacy_client_modern_server;
mod limits;
mod listen;
mod load;
mod modern_calls;
mod modern_client_modern_server;
mod modern_envelope;
mod modern_leaving;
mod modern_load;
mod modern_notices;
mod modern_sessions;
mod modern_tasks;
mod modern_waiting;
mod notices;
mod operator;
mod parked;
mod policy;
mod policy_modern;
mod questions;
mod rehearsal;
mod reports;
mod resume;
mod sdk;
mod sdk_eras;
mod secrets;
mod session_ends;
mod session_lost;
mod sessions;
mod shutdown;
mod sse_face;
mod startup;
mod stdio;
mod tidy;
mod timeouts;
mod tokens;
mod transport;
mod unanswerable;
mod upstream_faults;
mod versions;
