//! What the front door promises of connections and routes, told by examples.

mod connections;
mod routes;
mod streams;
mod support;
