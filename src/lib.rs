//! Contraflow: the bidirectional gateway for the Model Context Protocol.

pub mod auth;
pub mod cli;
pub mod config;
pub mod limit;
pub mod telemetry;
pub mod upstream;
