//! What the behaviours are told with: a gateway process, a scripted server, a raw client.

pub(crate) mod client;
pub(crate) mod gateway;
mod habits;
pub(crate) mod json;
pub(crate) mod modern;
pub(crate) mod modern_server;
mod script;
pub(crate) mod server;
pub(crate) mod token;

use std::future::Future;
use std::time::Duration;

pub(crate) use client::{Client, Reply, Session};
pub(crate) use gateway::{Gateway, Setup};
pub(crate) use modern::{Ask, Modern, Round, accepted};
pub(crate) use server::{Server, Stream};

/// How long anything that must happen may take. Generous: it decides nothing, it only ends a test
/// that would hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Waits for `future`, and says what was awaited when it does not come.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}

/// A gateway with the scripted server behind it as `alpha`, and nothing else configured.
pub(crate) async fn pair() -> (Server, Gateway) {
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    (server, gateway)
}

/// The same, and a session at `alpha` that declared every capability.
pub(crate) async fn triple() -> (Server, Gateway, Session) {
    let (server, gateway) = pair().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    (server, gateway, session)
}

/// A gateway with the scripted server behind it, and a modern client that can be asked everything.
pub(crate) async fn modern() -> (Server, Gateway, Modern) {
    let (server, gateway) = pair().await;
    let client = Modern::new(&gateway, "alpha");
    (server, gateway, client)
}

/// A gateway that knows `mira` and `joris` by their keys, and both as modern clients of `alpha`.
pub(crate) async fn two_people() -> (Server, Gateway, Modern, Modern) {
    let server = Server::start().await;
    let keys = ["mira", "joris"].map(|name| {
        let key = token::sha256(&format!("{name}-0123456789abcdef"));
        format!("{{ name: {name}, sha256: \"{key}\" }}")
    });
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml(&format!("auth: {{ api_keys: [ {} ] }}", keys.join(", ")))
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    let mira = client.bearer("mira-0123456789abcdef");
    let joris = client.bearer("joris-0123456789abcdef");
    (server, gateway, mira, joris)
}

/// Client capabilities that allow every question.
pub(crate) const EVERYTHING: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}"#;
/// Client capabilities that allow none.
pub(crate) const NOTHING: &str = "{}";
