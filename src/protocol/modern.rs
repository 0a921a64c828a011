//! What both sides of the revision without sessions (2026-07-28) say and know: the names in `_meta`, and
//! which requests may be answered by questions. The faces of the two sides read it here, since they don't
//! see each other.

/// The member of `_meta` that names the version.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` that says what the client can be asked.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The member of `_meta` that names the client.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// The member of `_meta` that asks for log messages.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The member of `_meta` that names the server.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// The member of `_meta` that names the subscription that a message belongs to.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Whether a request with this method may be answered by questions (2026-07-28 patterns/mrtr).
pub fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// `_meta` in which a server describes itself; `info` is JSON text.
pub fn meta_of_server(info: &str) -> String {
    format!(r#"{{"{META_SERVER}":{info}}}"#)
}
