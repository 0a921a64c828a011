//! The official Rust SDK on both sides: a real client and a real server, neither of which knows that
//! there is a gateway between them.
//!
//! Each test is told twice, once directly and once through the gateway: what differs is our fault.

#![expect(
    deprecated,
    reason = "sampling and roots are on their way out of MCP, and still spoken"
)]

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    ContentBlock, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, Implementation, ListRootsResult, ProgressNotificationParam, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ClientHandler, ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{Setup, within};

/// The server speaks both eras, but its tools ask by sending a request while they work, which the SDK
/// allows in sessions only.
const ERA: &str = "{ era: legacy }";

/// A client that answers as it was told to, and notes what it was asked.
#[derive(Clone, Debug)]
struct Person {
    name: &'static str,
    answer: Value,
    asked: Arc<Mutex<Vec<String>>>,
    progress: Arc<Mutex<Vec<f64>>>,
}

impl Person {
    fn new(name: &'static str, answer: Value) -> Self {
        Self {
            name,
            answer,
            asked: Arc::default(),
            progress: Arc::default(),
        }
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        ClientConfig::new(
            of::<ClientCapabilities>(all),
            Implementation::new(self.name, "1"),
        )
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap();
        self.asked
            .lock()
            .push(request["message"].as_str().unwrap().to_owned());
        Ok(of(self.answer.clone()))
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap();
        let asked = request["messages"].to_string();
        self.asked.lock().push(asked);
        let text = format!("sampled by {}", self.name);
        Ok(of(json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": text },
        })))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(of(
            json!({ "roots": [{ "uri": format!("file:///srv/{}", self.name) }] }),
        ))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().push(params.progress);
    }
}

/// A server whose tools ask back.
#[derive(Clone, Debug)]
struct Asking;

impl ServerHandler for Asking {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = match request.name.as_ref() {
            "progress" => {
                let token = context.meta.get_progress_token().expect("a progress token");
                for step in [1.0, 2.0, 3.0] {
                    let progress = ProgressNotificationParam::new(token.clone(), step);
                    context.peer.notify_progress(progress).await.unwrap();
                }
                "worked".to_owned()
            }
            tool => ask(tool, &context.peer).await,
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

#[expect(
    deprecated,
    reason = "what a newer protocol drops is still spoken by the one under test"
)]
async fn ask(tool: &str, peer: &Peer<RoleServer>) -> String {
    match tool {
        "form" => {
            let form = of::<ElicitRequestParams>(json!({
                "mode": "form", "message": "Which name?",
                "requestedSchema": { "type": "object", "properties": { "nick": { "type": "string" } } },
            }));
            shown(peer.create_elicitation(form).await)
        }
        "url" => {
            let url = of::<ElicitRequestParams>(json!({
                "mode": "url", "message": "Pay", "url": "https://pay.example.test/", "elicitationId": "e-1",
            }));
            shown(peer.create_elicitation(url).await)
        }
        "sampling" => {
            let request = of::<CreateMessageRequestParams>(json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }],
                "maxTokens": 5,
            }));
            shown(peer.create_message(request).await)
        }
        "roots" => shown(peer.list_roots().await),
        other => format!("no tool {other}"),
    }
}

fn shown<T: serde::Serialize, E: std::fmt::Debug>(answer: Result<T, E>) -> String {
    match answer {
        Ok(answer) => serde_json::to_string(&answer).unwrap(),
        Err(error) => format!("{error:?}"),
    }
}

/// Accepted, declined and cancelled, in both modes.
#[tokio::test]
async fn elicitation() {
    let accept = json!({ "action": "accept", "content": { "nick": "Mira" } });
    for answer in [
        accept,
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
    ] {
        for through in [false, true] {
            let (person, client, _gateway) = connected("mira", &answer, through).await;
            let said: Value = serde_json::from_str(&call(&client, "form").await).unwrap();
            assert_eq!(said["action"], answer["action"]);
            assert_eq!(said["content"], answer["content"]);
            let said: Value = serde_json::from_str(&call(&client, "url").await).unwrap();
            assert_eq!(said["action"], answer["action"]);
            assert_eq!(*person.asked.lock(), ["Which name?", "Pay"]);
            client.cancel().await.unwrap();
        }
    }
}

/// Sampling and roots.
#[tokio::test]
async fn sampling_and_roots() {
    for through in [false, true] {
        let (_person, client, _gateway) = connected("mira", &Value::Null, through).await;
        assert!(call(&client, "sampling").await.contains("sampled by mira"));
        assert!(call(&client, "roots").await.contains("file:///srv/mira"));
        client.cancel().await.unwrap();
    }
}

/// Progress arrives, in order, before the result does.
#[tokio::test]
async fn progress() {
    for through in [false, true] {
        let (person, client, _gateway) = connected("mira", &Value::Null, through).await;
        assert_eq!(call(&client, "progress").await, "worked");
        assert_eq!(*person.progress.lock(), [1.0, 2.0, 3.0]);
        client.cancel().await.unwrap();
    }
}

/// Two people at once, twenty questions each: nobody sees the other's.
#[tokio::test]
async fn two_people_at_once() {
    let server = serve().await;
    let gateway = Setup::new().server_at("alpha", &server, ERA).start().await;
    let url = format!("{}/mcp/alpha", gateway.url);
    let people = ["mira", "joris"].map(|name| {
        let url = url.clone();
        tokio::spawn(async move {
            let answer = json!({ "action": "accept", "content": { "nick": name } });
            let (_person, client) = connect(&url, name, &answer).await;
            for _ in 0..20 {
                let said: Value = serde_json::from_str(&call(&client, "form").await).unwrap();
                assert_eq!(said["content"]["nick"], name);
                assert!(call(&client, "roots").await.contains(name));
            }
            client.cancel().await.unwrap();
        })
    });
    for person in people {
        person.await.unwrap();
    }
}

type Running = RunningService<RoleClient, Person>;

/// A client that is connected to a server, directly or through a gateway that comes along.
async fn connected(
    name: &'static str,
    answer: &Value,
    through: bool,
) -> (Person, Running, Option<crate::support::Gateway>) {
    let server = serve().await;
    if !through {
        let (person, client) = connect(&server, name, answer).await;
        return (person, client, None);
    }
    let gateway = Setup::new().server_at("alpha", &server, ERA).start().await;
    let (person, client) = connect(&format!("{}/mcp/alpha", gateway.url), name, answer).await;
    (person, client, Some(gateway))
}

async fn connect(url: &str, name: &'static str, answer: &Value) -> (Person, Running) {
    let person = Person::new(name, answer.clone());
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = within("the SDK's handshake", person.clone().serve(transport))
        .await
        .unwrap();
    (person, client)
}

async fn call(client: &Running, tool: &'static str) -> String {
    let request = CallToolRequestParams::new(tool);
    let result = within(tool, client.call_tool(request)).await.unwrap();
    let result = serde_json::to_value(result).unwrap();
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned()
}

/// Starts the SDK's server and gives its URL.
async fn serve() -> String {
    let service: StreamableHttpService<Asking, LocalSessionManager> = StreamableHttpService::new(
        || Ok(Asking),
        Arc::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let routes = axum::Router::new().nest_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
