//! `server/discover` for a legacy server: what it said when a session was opened, as a modern client
//! reads it (2026-07-28 server/discover).

use std::borrow::Cow;

use super::pool::{Key, Pooled};
use super::{NOTHING, Visit};
use crate::error::Error;
use crate::protocol::message;
use crate::protocol::modern::meta_of_server;
use crate::protocol::object::{edit, members};
use crate::protocol::version::V2026_07_28;

use super::super::Answer;
use super::super::welcome::Welcome;

/// How long a client may keep it, in milliseconds.
const TTL_MS: u32 = 60_000;

impl Visit<'_> {
    /// Answers `server/discover`. Any session will do: what a server is does not depend on who asks.
    pub(super) async fn discover(&self) -> Result<Answer, Error> {
        let _admission = self.admit()?;
        let pooled = if self.is_single() {
            let key = Key {
                profile: Some(NOTHING),
                ..self.key()
            };
            self.shared.single(&key, NOTHING).await?
        } else {
            self.shared
                .pooled(&self.key(), self.request.capabilities)
                .await?
        };
        let id = self.message.id().unwrap_or("null");
        Ok(Answer::Json(200, message::result(id, &discovered(&pooled))))
    }
}

fn discovered(pooled: &Pooled) -> String {
    pooled.said(of).unwrap_or_else(|| "{}".to_owned())
}

fn of(welcome: &Welcome) -> String {
    let [capabilities, instructions] =
        members(welcome.result(), ["capabilities", "instructions"]).unwrap_or_default();
    // Tasks of the revision before are another thing than the extension of the same name.
    let capabilities = capabilities.unwrap_or("{}");
    let capabilities =
        edit(capabilities, &[("tasks", None)]).unwrap_or(Cow::Borrowed(capabilities));
    let result = format!(
        r#"{{"resultType":"complete","supportedVersions":["{V2026_07_28}"],"capabilities":{capabilities},"ttlMs":{TTL_MS},"cacheScope":"private"}}"#
    );
    let meta = welcome.info().map(meta_of_server);
    let said = [("instructions", instructions), ("_meta", meta.as_deref())];
    match edit(&result, &said) {
        Ok(whole) => whole.into_owned(),
        Err(_) => result,
    }
}
