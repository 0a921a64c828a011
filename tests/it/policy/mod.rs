//! What servers may ask of people, as the operator said it: who answers, what is refused, what is looked
//! at on the way back.
//!
//! `asking` is the way to the person, `answers` the way back, `absent` is where nobody sits, `hooks` are
//! programs that are asked, `eras` the same for modern clients and servers.

mod absent;
mod answers;
mod asking;
mod eras;
mod hooks;

use crate::support::{Client, EVERYTHING, Gateway, Reply, Server, Session, Setup, Stream, json};

/// A legacy client of a scripted server `memory` with this policy (flow YAML), and a call of the tool
/// `create` in whose midst it can ask.
struct Asking {
    server: Server,
    gateway: Gateway,
    session: Session,
    stream: Stream,
    reply: Reply,
}

impl Asking {
    async fn under(policy: &str) -> Self {
        Self::of(policy, EVERYTHING).await
    }

    async fn of(policy: &str, capabilities: &str) -> Self {
        let (server, gateway) = gateway(policy).await;
        let session = Client::new(&gateway, "memory").open(capabilities).await;
        Self::by(server, gateway, session).await
    }

    async fn by(server: Server, gateway: Gateway, session: Session) -> Self {
        let call = session.start(json::call("1", "create", r#"{"n":2}"#));
        let stream = server.called("create").await.stream();
        let reply = call.await.unwrap();
        Self {
            server,
            gateway,
            session,
            stream,
            reply,
        }
    }

    /// The server asks this under this id.
    async fn elicit(&self, id: &str, params: &str) {
        let question = json::request(id, "elicitation/create", params);
        self.stream.send(&question).await;
    }

    /// The server is answered so (JSON) without the person.
    async fn answered(&self, id: &str, result: &str) {
        assert_eq!(self.server.answer_to(id).await, json::result(id, result));
    }

    /// The server is refused; the code and the reason.
    async fn refused(&self, id: &str) -> (i64, String) {
        let answer = json::parse(&self.server.answer_to(id).await);
        let error = &answer["error"];
        let reason = error["data"]["reason"].as_str();
        let reason = reason.unwrap_or_else(|| panic!("not refused: {answer}"));
        (error["code"].as_i64().unwrap(), reason.to_owned())
    }

    /// Ends the call, and sees to it that the client was asked nothing since it last read.
    async fn ends_quietly(mut self) {
        self.stream.result(&json::text_result("done")).await;
        assert_eq!(json::text_of(&self.reply.next().await), "done");
        self.reply.ends().await;
    }
}

/// A gateway with a scripted server `memory` that has this policy (flow YAML).
async fn gateway(policy: &str) -> (Server, Gateway) {
    let server = Server::start().await;
    let more = format!("{{ questions: {policy} }}");
    let gateway = Setup::new()
        .server_with("memory", &server, &more)
        .start()
        .await;
    (server, gateway)
}

/// A form that asks for `name` and `size`.
const ENTITY: &str = r#"{"message":"Which one?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":1},"size":{"type":"integer","minimum":1}},"required":["name"]}}"#;
const RIGHT: &str = r#"{"action":"accept","content":{"name":"Mira","size":2}}"#;
const WRONG: &str = r#"{"action":"accept","content":{"name":"Mira","size":0}}"#;
const DECLINE: &str = r#"{"action":"decline"}"#;
const CANCEL: &str = r#"{"action":"cancel"}"#;
