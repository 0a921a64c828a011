//! What a legacy server said of itself when it opened a session.

use crate::protocol::object::members;
use crate::protocol::renewal;

/// The result of an `initialize`.
#[derive(Debug)]
pub(super) struct Welcome(String);

impl Welcome {
    /// Of this result (JSON text).
    pub(super) fn new(result: &str) -> Self {
        Self(result.to_owned())
    }

    /// The result, as JSON text.
    pub(super) fn result(&self) -> &str {
        &self.0
    }

    /// How the server describes itself (JSON text).
    pub(super) fn info(&self) -> Option<&str> {
        let [info] = members(self.result(), ["serverInfo"]).ok()?;
        info
    }

    /// Whether the server declared this capability.
    pub(super) fn has(&self, capability: &str) -> bool {
        renewal::has(self.result(), capability)
    }

    /// Whether the server declared `part` of this capability with the value `true`.
    pub(super) fn has_part(&self, capability: &str, part: &str) -> bool {
        renewal::has_part(self.result(), capability, part)
    }
}
