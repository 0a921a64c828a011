//! Protocol versions and what each one changes on the wire.
//!
//! A version is the text it is: a gateway relays the negotiation and may meet one it has never heard
//! of. Versions are dates, so their order is the order of their text.

/// A negotiated protocol version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Box<str>);

/// The first revision.
pub const V2024_11_05: &str = "2024-11-05";
/// The revision that has Streamable HTTP, sessions and batches.
pub const V2025_03_26: &str = "2025-03-26";
/// The revision that has elicitation and demands the version header.
pub const V2025_06_18: &str = "2025-06-18";
/// The newest revision with sessions.
pub const V2025_11_25: &str = "2025-11-25";

/// The revision without sessions, in which each request says all about itself.
pub const V2026_07_28: &str = "2026-07-28";

/// The modern revisions that the gateway speaks, the best one first.
pub const MODERN: &[&str] = &[V2026_07_28];
/// The revisions with sessions, the newest first.
pub const LEGACY: &[&str] = &[V2025_11_25, V2025_06_18, V2025_03_26, V2024_11_05];

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

    /// Whether an HTTP+SSE session takes batches: that transport belongs to 2024-11-05, which has JSON-RPC as
    /// it is, batches and all.
    pub fn has_batches_on_a_line(&self) -> bool {
        self.has_batches() || &*self.0 == V2024_11_05
    }

    /// Whether clients can be asked by elicitation, and tools answer with structure (from 2025-06-18
    /// on).
    pub fn has_elicitation(&self) -> bool {
        &*self.0 >= V2025_06_18
    }

    /// Whether an elicitation has a mode, a URL or choices with titles (from 2025-11-25 on).
    pub fn has_modes(&self) -> bool {
        &*self.0 >= V2025_11_25
    }

    /// Whether a model's answer may have several blocks of content (from 2025-11-25 on).
    pub fn has_blocks(&self) -> bool {
        &*self.0 >= V2025_11_25
    }

    /// Whether a server declares completions (from 2025-03-26 on).
    pub fn has_completions(&self) -> bool {
        &*self.0 >= V2025_03_26
    }

    /// Whether events may have ids, with which a client resumes a stream (from 2025-03-26 on).
    pub fn has_event_ids(&self) -> bool {
        &*self.0 >= V2025_03_26
    }

    /// Whether a stream begins with an event that has an id and no data, which older clients can't read
    /// (from 2025-11-25 on).
    pub fn has_priming(&self) -> bool {
        &*self.0 >= V2025_11_25
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
