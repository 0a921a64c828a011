//! Asks a server what it is: for the operator who wants to know before anybody calls it.

use super::greet::greet;
use tokio_util::task::TaskTracker;

use crate::config::{Config, Server};
use crate::error::Error;
use crate::protocol::message::{self, Message};
use crate::protocol::object::{all_members, elements, members, text};
use crate::protocol::version::V2025_11_25;
use crate::upstream::era::{GATEWAY, Spoken};
use crate::upstream::server::Upstream;

/// What a server says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// `legacy` or `modern`.
    pub era: &'static str,
    /// The versions of the protocol that it named.
    pub versions: Vec<String>,
    /// The names of the capabilities that it declared.
    pub capabilities: Vec<String>,
}

/// Asks a server for its era, and then in that era what it can do. A session that is opened for that
/// is ended.
///
/// # Errors
/// When it can't be reached, or its answers are none.
pub async fn probe(server: &Server, config: &Config) -> Result<Found, Error> {
    let tasks = TaskTracker::new();
    let server = Upstream::new(server, config, &tasks, None)
        .map_err(|error| Error::Capacity(error.to_string().into()))?;
    let found = find_out(&server, config).await;
    // What was started for that ends before the answer is given.
    server.close();
    tasks.close();
    tasks.wait().await;
    found
}

async fn find_out(server: &Upstream, config: &Config) -> Result<Found, Error> {
    match server.spoken().await.map_err(|unknown| unknown.error)? {
        Spoken::Modern(discovered) => {
            let [versions, capabilities] =
                members(&discovered, ["supportedVersions", "capabilities"]).unwrap_or_default();
            Ok(Found {
                era: "modern",
                versions: strings(versions),
                capabilities: names(capabilities),
            })
        }
        Spoken::Legacy => legacy(server, config).await,
    }
}

async fn legacy(server: &Upstream, config: &Config) -> Result<Found, Error> {
    let params = format!(
        r#"{{"protocolVersion":"{V2025_11_25}","capabilities":{{}},"clientInfo":{GATEWAY}}}"#
    );
    let request = Message::parse(&message::request("0", "initialize", &params))?;
    let greeting = greet(server, &request, config.timeouts.call).await?;
    let response = Message::parse(&greeting.response("0"))?;
    let Some(version) = greeting.version else {
        return Err(Error::Misbehaved("refused to open a session".into()));
    };
    if greeting.wire.is_held() {
        // It may not offer this, which is no fault.
        let _told = server.end(&greeting.wire).await;
    }
    let [capabilities] =
        members(response.result().unwrap_or("{}"), ["capabilities"]).unwrap_or_default();
    Ok(Found {
        era: "legacy",
        versions: vec![version.to_string()],
        capabilities: names(capabilities),
    })
}

fn strings(list: Option<&str>) -> Vec<String> {
    let list = elements(list.unwrap_or("[]"), 32).unwrap_or_default();
    list.into_iter()
        .filter_map(text)
        .map(std::borrow::Cow::into_owned)
        .collect()
}

fn names(object: Option<&str>) -> Vec<String> {
    let members = all_members(object.unwrap_or("{}")).unwrap_or_default();
    members
        .iter()
        .filter_map(|(name, _)| text(name))
        .map(std::borrow::Cow::into_owned)
        .collect()
}
