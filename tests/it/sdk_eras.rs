//! The official Rust SDK as a modern server whose tools ask in rounds, and its clients of both eras in
//! front of the gateway: a client can't tell which era its server is of.

#![expect(
    deprecated,
    reason = "sampling and roots are on their way out of MCP, and still spoken"
)]

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    ContentBlock, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, Implementation, InputRequiredResult, ListRootsResult, ProgressNotificationParam,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ClientHandler, ErrorData, RoleClient, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{Gateway, Setup, within};

/// A person who answers every form in the same way.
#[derive(Clone, Debug)]
struct Person {
    answer: Value,
    progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        ClientConfig::new(
            of::<ClientCapabilities>(all),
            Implementation::new("person", "1"),
        )
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(of(self.answer.clone()))
    }

    async fn create_message(
        &self,
        _request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(of(json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "sampled" },
        })))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(of(json!({ "roots": [{ "uri": "file:///srv/mira" }] })))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().push(params.progress);
    }
}

/// A server without sessions: its state goes to the client and comes back.
#[derive(Clone, Debug)]
struct Stateless;

impl ServerHandler for Stateless {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            for step in [1.0, 2.0] {
                let progress = ProgressNotificationParam::new(token.clone(), step);
                context.peer.notify_progress(progress).await.unwrap();
            }
        }
        let answers = json!(request.input_responses);
        let asked = match request.request_state.as_deref() {
            None => json!({
                "name": { "method": "elicitation/create", "params": {
                    "mode": "form", "message": "Which name?",
                    "requestedSchema": { "type": "object", "properties": { "nick": { "type": "string" } } },
                } },
                "text": { "method": "sampling/createMessage", "params": {
                    "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }],
                    "maxTokens": 5,
                } },
            }),
            Some("one") if answers["name"]["action"] == "accept" => json!({
                "where": { "method": "roots/list" },
                "pay": { "method": "elicitation/create", "params": {
                    "mode": "url", "message": "Pay", "url": "https://pay.example.test/", "elicitationId": "e-1",
                } },
            }),
            Some(_) => {
                let text = ContentBlock::text(answers.to_string());
                return Ok(CallToolResult::success(vec![text]).into());
            }
        };
        let state = if request.request_state.is_none() {
            "one"
        } else {
            "two"
        };
        Ok(of::<InputRequiredResult>(json!({
            "resultType": "input_required", "inputRequests": asked, "requestState": state,
        }))
        .into())
    }
}

type Running = RunningService<RoleClient, Person>;

/// A client of one era or the other, and the gateway in front of the server.
async fn connected(answer: &Value, lifecycle: ClientLifecycleMode) -> (Running, Person, Gateway) {
    let gateway = Setup::new()
        .server_at("alpha", &serve().await, "{}")
        .start()
        .await;
    let person = Person {
        answer: answer.clone(),
        progress: Arc::default(),
    };
    let transport = StreamableHttpClientTransport::from_uri(format!("{}/mcp/alpha", gateway.url));
    let connecting = person.clone().serve_with_lifecycle(transport, lifecycle);
    let client = within("the SDK's handshake", connecting).await.unwrap();
    (client, person, gateway)
}

fn eras() -> [ClientLifecycleMode; 2] {
    [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    ]
}

/// Two rounds of two questions each; what the person said reaches the tool.
#[tokio::test]
async fn two_rounds_for_clients_of_both_eras() {
    let accept = json!({ "action": "accept", "content": { "nick": "Mira" } });
    for (number, era) in eras().into_iter().enumerate() {
        let (client, person, _gateway) = connected(&accept, era).await;
        let said = call(&client).await;
        assert_eq!(said["where"]["roots"][0]["uri"], "file:///srv/mira");
        assert_eq!(said["pay"]["action"], "accept");
        // Three rounds are one request to a client of sessions, and three to one without.
        let risen = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let each = if number == 0 { risen } else { [[1.0, 2.0]; 3] };
        assert_eq!(*person.progress.lock(), each.concat());
        client.cancel().await.unwrap();
    }
}

/// Declined and cancelled are answers.
#[tokio::test]
async fn a_no_is_an_answer_for_clients_of_both_eras() {
    for action in ["decline", "cancel"] {
        for era in eras() {
            let (client, _person, _gateway) = connected(&json!({ "action": action }), era).await;
            let said = call(&client).await;
            assert_eq!(said["name"]["action"], action);
            assert_eq!(said["text"]["content"]["text"], "sampled");
            client.cancel().await.unwrap();
        }
    }
}

async fn call(client: &Running) -> Value {
    let request = CallToolRequestParams::new("rounds");
    let result = within("the call", client.call_tool(request)).await.unwrap();
    let result = serde_json::to_value(result).unwrap();
    let text = result["content"][0]["text"].as_str();
    serde_json::from_str(text.unwrap_or_else(|| panic!("{result}"))).unwrap()
}

async fn serve() -> String {
    let service: StreamableHttpService<Stateless, LocalSessionManager> = StreamableHttpService::new(
        || Ok(Stateless),
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
