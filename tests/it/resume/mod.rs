//! Streams break, and nothing of what they carry is lost: `client` is a client that comes back to its
//! stream, `server` a server's stream that the gateway takes up again.

mod client;
mod server;
