//! Hooks as they are: real listeners, asked through the crate.
//!
//! What a hook does wrong is bounded and has a defined outcome.
//!
//! # Invariants
//! - Every wait is for a condition and has a deadline. A hook that is to fail by its time gets a short
//!   one; any other gets more than it can need.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on says so by a panic, in its support too"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests drive the clock and their own tasks"
)]

mod support;

mod urls;
