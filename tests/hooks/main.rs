//! Hooks as they are: real commands in bash with `jq`, real listeners, asked through the crate.
//!
//! What a hook does wrong is bounded and has a defined outcome, and nothing that it started is left.
//!
//! # Invariants
//! - Every wait is for a condition and has a deadline. A hook that is to fail by its time gets a short
//!   one; any other gets more than it can need.
//! - Scripts are written by a process of their own: a file that this process has open for writing can't
//!   be executed by the children of another test.

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

mod answers;
mod bounds;
mod examples;
mod leftovers;
mod logs;
mod start;
mod urls;
