//! The servers behind the gateway and how they are reached.

pub mod client;
pub mod era;
pub mod fault;
mod http;
pub mod reply;
pub mod server;
pub mod trouble;
