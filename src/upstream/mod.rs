//! The servers behind the gateway and how they are reached.
//!
//! ```text
//! server::Upstream ─┬─ http       Streamable HTTP, at one of several addresses
//!                   ├─ link ─ events     HTTP+SSE
//!                   └─ programs ─ link ─ process    a program on this machine
//! ```

mod breaker;
pub mod client;
pub mod command;
mod endpoints;
pub mod era;
pub mod fault;
mod http;
mod link;
mod programs;
pub mod reply;
pub mod server;
pub mod trouble;
pub mod warden;

pub use self::programs::Whose;
