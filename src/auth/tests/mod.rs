//! What authentication promises, told by examples. Keys are made at run time; issuers are real
//! servers on loopback; the clock of a request is an argument.

mod audiences;
mod connections;
mod credentials;
mod discovery;
mod issuers;
mod metadata;
mod schedule;
mod support;
mod tokens;
