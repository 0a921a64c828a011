//! The servers behind the gateway and how they are reached.

pub mod client;
pub mod era;
pub mod fault;
pub mod http;
pub mod trouble;
