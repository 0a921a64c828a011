//! What is known of the tools of modern servers: which of their arguments go into headers, and whether
//! their output has to be wrapped. Both are in the list of tools, which may differ from caller to
//! caller.
//!
//! # Invariants
//! - What one principal's list says is used for that principal alone.
//! - A list that is too old costs a refusal at worst (-32020), after which it is read again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

use super::lease::Modern;
use super::now;
use super::rpc;
use crate::auth::Principal;
use crate::config::ServerName;
use crate::protocol::era::time_to_live;
use crate::protocol::object::edit;
use crate::protocol::to_legacy::{self, Tool};
use crate::upstream::server::Upstream;

/// The tools of one server as one principal sees them.
#[derive(Debug)]
pub(super) struct Known {
    tools: HashMap<String, Tool>,
    until: std::time::Instant,
}

/// The lists that are remembered.
pub(super) struct Catalogue(Cache<(ServerName, Principal), Arc<Known>>);

/// The most lists that are remembered.
const MOST: u64 = 10_000;

/// The most pages of one list.
const PAGES: usize = 100;

/// How long a list is used at least: who changes annotations says so, or refuses the call.
const SHORTEST: Duration = Duration::from_mins(5);

/// How long nothing is asked again of a server that gave no list.
const NO_LIST: Duration = Duration::from_secs(10);

/// How long a server may take to give its whole list.
const PATIENCE: Duration = Duration::from_secs(30);

impl Catalogue {
    pub(super) fn new() -> Self {
        Self(
            Cache::builder()
                .max_capacity(MOST)
                .time_to_live(Duration::from_hours(24))
                .build(),
        )
    }

    /// The tools as this principal sees them; asks the server, if that isn't known.
    pub(super) async fn of(
        &self,
        server: &Upstream,
        principal: &Principal,
        modern: &Modern,
    ) -> Arc<Known> {
        let key = (server.name().clone(), principal.clone());
        if let Some(known) = self.0.get(&key).await {
            if now() < known.until {
                return known;
            }
            self.0.invalidate(&key).await;
        }
        self.0
            .get_with(key, async {
                Arc::new(Box::pin(list(server, modern)).await)
            })
            .await
    }

    /// The list has changed, or may have.
    pub(super) async fn forget(&self, server: &ServerName, principal: &Principal) {
        let key = (server.clone(), principal.clone());
        self.0.invalidate(&key).await;
    }
}

impl Known {
    /// The tool of this name, if the list has it.
    pub(super) fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }
}

async fn list(server: &Upstream, modern: &Modern) -> Known {
    let listing = tokio::time::timeout(PATIENCE, pages(server, modern));
    if let Ok(Some((tools, fresh))) = listing.await {
        return Known {
            tools,
            until: now() + fresh.max(SHORTEST),
        };
    }
    tracing::warn!(server = %server.name(), "no list of tools from the server");
    Known {
        tools: HashMap::new(),
        until: now() + NO_LIST,
    }
}

async fn pages(server: &Upstream, modern: &Modern) -> Option<(HashMap<String, Tool>, Duration)> {
    let (mut tools, mut fresh) = (HashMap::new(), Duration::MAX);
    let mut params = "{}".to_owned();
    for _ in 0..PAGES {
        let said = rpc::say(server, modern, "tools/list", &params).await;
        let result = said.ok()??;
        let page = to_legacy::tools(&result)?;
        tools.extend(page.tools);
        fresh = fresh.min(time_to_live(&result));
        let Some(next) = page.next else {
            return Some((tools, fresh));
        };
        params = edit("{}", &[("cursor", Some(&next))]).ok()?.into_owned();
    }
    Some((tools, fresh))
}
