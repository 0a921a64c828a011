//! Contraflow: the bidirectional gateway for the Model Context Protocol.
//!
//! Clients call servers through it, and what a server asks in the middle of a call finds its way
//! back to the one person whose call caused it.
//!
//! # Two eras, four faces
//!
//! ```text
//!   client side                     the middle                      server side
//!  ┌────────────────┐         ┌──────────────────┐          ┌────────────────┐
//!  │ legacy face    │ request │  a conversation: │ request  │ legacy face    │
//!  │ (sessions, SSE)│ ──────▶ │  its calls, its  │ ───────▶ │ (a session)    │
//!  ├────────────────┤ answer  │  questions, the  │ answer   ├────────────────┤
//!  │ modern face    │ ◀────── │  outcome of each │ ◀─────── │ modern face    │
//!  │ (stateless)    │ question└──────────────────┘ question │ (rounds)       │
//!  └────────────────┘                                       └────────────────┘
//! ```
//!
//! | | legacy server | modern server |
//! |---|---|---|
//! | **legacy client** | [`relay`]: `session`, `exchange` | `relay::driver` on [`protocol::rounds`] |
//! | **modern client** | `relay::modern` on [`protocol::parked`] | `relay::through` |
//!
//! The two cells across eras are pure state machines with a thin driver each. What changes between the
//! eras on the way is in [`protocol::convert`] (to modern) and [`protocol::to_legacy`].
//!
//! # The way of a request
//!
//! ```text
//! client ──POST──► http::listener ─► http::connection ─► http::mcp, http::visit
//!                    1 route      which server
//!                    2 who        auth: a principal, or 401 with a challenge
//!                    3 envelope   protocol::message: id and method, borrowed from the bytes
//!                    4 session    relay: found by id, server and principal
//!                    5 limit      limit: may they ask now
//!                    6 exchange   relay::exchange ─► upstream::server ─► upstream::client ─► server
//!                                 all in the task of the client's connection, until the answer has a head
//!                                 a session that the server has lost: relay::renew
//! client ◄─SSE── http::stream ◄── relay::deliver ◄── protocol::session ◄── relay::exchange
//!                                   │ question
//!                                   └► relay::judge walks it through policy: a rule or a hook answers,
//!                                      or relay::question asks the person; who booked it owes the answer
//! ```
//!
//! A client of HTTP+SSE has one stream for all of it: `http::line` and `relay::line` stand where `http::visit` and
//! the streams of a session stand for others; the rest is the same.
//!
//! # The rooms, and who may reach whom
//!
//! ```text
//! main → cli → gateway        builds and connects all
//!                 │
//!                 ▼
//!               http ──► auth ─────────► upstream::client      leaves that all may use:
//!                 │  ──► limit                                 config (read-only), error, telemetry
//!                 ▼
//!               relay ─► policy ───────► upstream::client, upstream::command
//!                 │  ──► upstream
//!                 ▼
//!              protocol   imports nothing of the crate
//! ```
//!
//! # The laws
//!
//! 1. Every question is answered exactly once: by the client, a rule, a hook, a timeout or the teardown.
//! 2. A question reaches only the session and principal of the exchange that caused it. The route
//!    comes from the exchange, never from anything that a caller sends.
//! 3. Nothing waits for ever, and a person's thinking time has its own clock.
//! 4. What is not understood passes unchanged, byte for byte.
//! 5. Nothing is executed twice silently.
//! 6. Credentials, session ids and event ids end at the gateway, in both directions.
//! 7. Everything is bounded; full is a clear error to the one who filled it.
//! 8. There is one teardown path.
//! 9. Protocol decisions are pure code.
//! 10. Every decision is on the record: who, which server, what, outcome, why; never the secret.
//! 11. What decides is the parsed body, once, and never a header alone.

pub mod auth;
pub mod cli;
pub mod config;
pub mod error;
mod gateway;
mod http;
pub mod limit;
pub mod policy;
pub mod protocol;
pub mod relay;
pub mod telemetry;
pub mod upstream;

pub use self::gateway::{Gateway, StartError};
