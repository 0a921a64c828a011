//! Clients of HTTP+SSE, the transport of 2024-11-05: one stream, which is the session, and an address to
//! post to, which the stream begins with.
//!
//! `doors` is who gets in and what is refused there, `people` whose a stream is, `calls` what goes to and fro,
//! `ends` how a session ends, `modern` the same in front of a modern server.

mod calls;
mod doors;
mod ends;
mod modern;
mod people;

use hyper::StatusCode;

use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, Gateway, Reply, Server, Setup, json};

/// Somebody who holds such a stream.
struct Old {
    /// Posts to the address that the stream began with.
    client: Client,
    stream: Reply,
    /// The address as it was told.
    address: String,
}

impl Old {
    /// Opens a stream; `client` is one of the server's endpoint.
    async fn connect(client: &Client) -> Self {
        let mut stream = knock(client).await;
        assert_eq!(stream.status, 200, "GET");
        let first = stream.event().await.unwrap();
        assert_eq!(first.event.as_deref(), Some("endpoint"), "{first:?}");
        let address = first.data.unwrap();
        let origin = client.url.find("/mcp/").unwrap();
        let mut client = client.with("accept", "*/*");
        client.url = format!("{}{address}", &client.url[..origin]);
        Self {
            client,
            stream,
            address,
        }
    }

    /// The whole handshake.
    async fn open_at(client: &Client, version: &str, capabilities: &str) -> Self {
        let mut old = Self::connect(client).await;
        old.post(&initialize(version, capabilities)).await;
        let initialized = old.stream.next().await;
        assert_eq!(json::id(&initialized), "\"init\"", "{initialized}");
        old.post(&json::notice("notifications/initialized", "{}"))
            .await;
        old
    }

    async fn open(client: &Client) -> Self {
        Self::open_at(client, "2024-11-05", EVERYTHING).await
    }

    /// Posts what is taken, and has its answer on the stream, if it has one.
    async fn post(&self, body: &str) {
        let mut reply = self.client.post(body.to_owned()).await;
        let said = reply.text().await;
        assert_eq!((reply.status.as_u16(), said.as_str()), (202, ""), "{body}");
    }

    /// Posts what is not taken: the status.
    async fn refused(&self, body: &str) -> StatusCode {
        let mut reply = self.client.post(body.to_owned()).await;
        let error = reply.json().await;
        assert_eq!(error["error"]["data"]["source"], "gateway", "{error}");
        reply.status
    }

    async fn call(&self, id: &str, tool: &str) {
        self.post(&json::call(id, tool, "{}")).await;
    }

    async fn answer(&self, question: &str, result: &str) {
        self.post(&json::result(&json::id(question), result)).await;
    }

    /// Shows that the session still works, by a call that reaches the server.
    async fn works(&mut self) {
        let call = json::call("\"works\"", "echo", r#"{"x":"alive"}"#);
        self.post(&call).await;
        let answer = self.stream.next().await;
        assert_eq!(json::id(&answer), "\"works\"", "{answer}");
        assert_eq!(json::text_of(&answer), r#""alive""#);
    }
}

/// Asks for a stream.
async fn knock(client: &Client) -> Reply {
    let mut client = client.with("accept", "text/event-stream");
    client.url.push_str("/sse");
    client.get().await
}

/// A gateway that serves such clients, with the scripted server behind it as `alpha`, and more YAML.
async fn gateway(yaml: &str) -> (Server, Gateway) {
    let server = Server::start().await;
    let gateway = before(&server, yaml).await;
    (server, gateway)
}

async fn before(server: &Server, yaml: &str) -> Gateway {
    let setup = Setup::new().server("alpha", server);
    setup
        .yaml(&format!("legacy_sse: true\n{yaml}"))
        .start()
        .await
}

async fn triple() -> (Server, Gateway, Old) {
    let (server, gateway) = gateway("").await;
    let old = Old::open(&Client::new(&gateway, "alpha")).await;
    (server, gateway, old)
}
