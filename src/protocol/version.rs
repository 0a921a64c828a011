//! Protocol versions and what each one changes on the wire.
//!
//! A version is the text it is: a gateway relays the negotiation and may meet one it has never heard
//! of. Versions are dates, so their order is the order of their text.

/// A negotiated protocol version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Box<str>);

/// The revision that has Streamable HTTP, sessions and batches.
pub const V2025_03_26: &str = "2025-03-26";
/// The revision that has elicitation and demands the version header.
pub const V2025_06_18: &str = "2025-06-18";
/// The newest revision with sessions.
pub const V2025_11_25: &str = "2025-11-25";

/// The header that names the version of a request (2025-06-18 basic/transports).
pub const VERSION_HEADER: http::HeaderName = http::HeaderName::from_static("mcp-protocol-version");
/// The header that names the session (2025-03-26 basic/transports).
pub const SESSION_HEADER: http::HeaderName = http::HeaderName::from_static("mcp-session-id");
/// The header by which a client resumes a stream.
pub const LAST_EVENT_HEADER: http::HeaderName = http::HeaderName::from_static("last-event-id");

impl Version {
    /// The version with this text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a body may be an array of messages: at 2025-03-26 alone (removed in 2025-06-18).
    pub fn has_batches(&self) -> bool {
        &*self.0 == V2025_03_26
    }

    /// Whether requests carry `MCP-Protocol-Version` (from 2025-06-18 on).
    pub fn has_header(&self) -> bool {
        &*self.0 >= V2025_06_18
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_wire() {
        let table = [
            ("2024-11-05", false, false),
            (V2025_03_26, true, false),
            (V2025_06_18, false, true),
            (V2025_11_25, false, true),
            ("2026-01-01", false, true),
        ];
        for (text, batches, header) in table {
            let version = Version::new(text);
            assert_eq!(
                (version.has_batches(), version.has_header()),
                (batches, header),
                "{text}"
            );
        }
    }
}
