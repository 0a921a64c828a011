//! Tools that run only when their person approves (`approve: ["delete_*"]`): in all four combinations of
//! eras the gateway asks before the server hears of the call, and nothing but `accept` lets it through.

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::support::modern_server::complete;
use crate::support::{
    Ask, Client, EVERYTHING, Gateway, Modern, NOTHING, Reply, Round, Server, Session, Setup, json,
    token,
};

const APPROVE: &str = r#"{ approve: ["delete_*"] }"#;
const ACCEPT: &str = r#"{"action":"accept","content":{}}"#;
const ARGUMENTS: &str = r#"{"id":7,"deep":{"n":1.10}}"#;

/// Whether the client and the server are modern.
#[derive(Clone, Copy, Debug)]
struct Cell {
    client: bool,
    server: bool,
}

const CELLS: [Cell; 4] = [
    Cell {
        client: false,
        server: false,
    },
    Cell {
        client: true,
        server: false,
    },
    Cell {
        client: false,
        server: true,
    },
    Cell {
        client: true,
        server: true,
    },
];

/// A client of one cell.
enum Caller {
    Legacy(Session),
    Modern(Modern),
}

/// A person who was asked.
#[expect(clippy::large_enum_variant, reason = "a test holds a few of them")]
enum Asked {
    Legacy(Session, Reply, String),
    Modern(Ask, Round),
}

/// An answer that is on its way.
#[expect(clippy::large_enum_variant, reason = "a test holds a few of them")]
enum Coming {
    Here(Reply),
    Later(JoinHandle<Reply>),
}

impl Cell {
    async fn server(self) -> Server {
        Server::with(|habits| {
            habits.modern = self.server;
            if self.server {
                habits.capabilities = r#"{"tools":{"listChanged":true}}"#;
            }
        })
        .await
    }

    async fn client(self, gateway: &Gateway, capabilities: &str) -> Caller {
        if self.client {
            return Caller::Modern(Modern::new(gateway, "alpha").declaring(capabilities));
        }
        Caller::Legacy(Client::new(gateway, "alpha").open(capabilities).await)
    }

    async fn scene(self, more: &str, yaml: &str) -> (Server, Gateway, Caller) {
        let server = self.server().await;
        let setup = Setup::new().server_with("alpha", &server, more);
        let gateway = setup.yaml(yaml).start().await;
        let caller = self.client(&gateway, EVERYTHING).await;
        (server, gateway, caller)
    }

    /// What a tool of the server gives that ran.
    fn ran(self) -> String {
        if self.server {
            complete("it ran")
        } else {
            json::text_result("it ran")
        }
    }
}

impl Caller {
    fn call(&self, tool: &str, arguments: &str) -> JoinHandle<Reply> {
        match self {
            Self::Legacy(session) => session.start(json::call("1", tool, arguments)),
            Self::Modern(client) => client.call("1", tool, arguments).start(),
        }
    }

    /// Calls a tool, and is asked about it.
    async fn asked(&self, tool: &str, arguments: &str) -> Asked {
        let mut reply = self.call(tool, arguments).await.unwrap();
        match self {
            Self::Legacy(session) => {
                let question = reply.question("elicitation/create").await;
                Asked::Legacy(session.clone(), reply, question)
            }
            Self::Modern(client) => {
                Asked::Modern(client.call("1", tool, arguments), reply.round().await)
            }
        }
    }

    async fn works(&self) {
        match self {
            Self::Legacy(session) => session.works().await,
            Self::Modern(client) => client.works().await,
        }
    }
}

impl Asked {
    /// The parameters of the question.
    fn params(&self) -> Value {
        match self {
            Self::Legacy(_, _, question) => json::parse(question)["params"].clone(),
            Self::Modern(_, round) => json::parse(&round.part(round.only(), "params")),
        }
    }

    fn message(&self) -> String {
        self.params()["message"].as_str().unwrap().to_owned()
    }

    /// The person says this (JSON).
    async fn says(self, result: &str) -> Coming {
        match self {
            Self::Legacy(session, reply, question) => {
                session.answer(&question, result).await;
                Coming::Here(reply)
            }
            Self::Modern(ask, round) => {
                Coming::Later(ask.retry("2", &round, &round.all(result)).start())
            }
        }
    }
}

impl Coming {
    /// The result, and what the client is told on the way to it is left out.
    async fn result(self) -> Value {
        let mut reply = match self {
            Self::Here(reply) => reply,
            Self::Later(reply) => reply.await.unwrap(),
        };
        loop {
            let message = reply.json().await;
            if message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }
}

/// The calls of `delete_x` that the server has seen.
fn runs(server: &Server) -> usize {
    let calls = server.seen_method("tools/call");
    let fits = |seen: &&crate::support::server::Seen| seen.tool().as_deref() == Some("delete_x");
    calls.iter().filter(fits).count()
}

/// A result that says that the call did not run, and why.
fn not_run(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_approved_call_runs() {
    for cell in CELLS {
        let (server, gateway, caller) = cell.scene(APPROVE, "").await;
        let asked = caller.asked("delete_x", ARGUMENTS).await;
        let message = asked.message();
        for part in [r#""delete_x""#, r#""alpha""#, r#""id": 7"#, r#""n": 1.10"#] {
            assert!(message.contains(part), "{cell:?} {message}");
        }
        let schema = serde_json::json!({ "type": "object", "properties": {} });
        assert_eq!(asked.params()["requestedSchema"], schema);
        assert_eq!(runs(&server), 0, "{cell:?}");
        let coming = asked.says(ACCEPT).await;
        let held = server.called("delete_x").await;
        assert_eq!(
            held.seen.raw(&["params", "arguments"]).as_deref(),
            Some(ARGUMENTS)
        );
        assert_eq!(held.seen.raw(&["params", "requestState"]), None);
        assert_eq!(held.seen.raw(&["params", "inputResponses"]), None);
        held.result(&cell.ran());
        let result = coming.result().await;
        assert_eq!(result["content"][0]["text"], "it ran", "{cell:?}");
        assert_eq!(runs(&server), 1);
        assert!(server.answers().is_empty(), "the server asked nothing");
        let asked = gateway
            .audited("the question", |line| line["type"] == "question.asked")
            .await;
        assert_eq!(asked["question"]["id"], r#""approval""#);
        let answered = gateway
            .audited("the answer", |line| line["type"] == "question.answered")
            .await;
        assert_eq!(answered["question"]["id"], r#""approval""#);
        assert_eq!(answered["action"], "accept");
        assert_eq!(answered["decided_by"], "person", "{cell:?}");
    }
}

#[tokio::test]
async fn nothing_but_accept_lets_a_call_run() {
    for cell in CELLS {
        let (server, gateway, caller) = cell.scene(APPROVE, "").await;
        for action in ["decline", "cancel"] {
            let asked = caller.asked("delete_x", ARGUMENTS).await;
            let answer = format!(r#"{{"action":"{action}"}}"#);
            let result = asked.says(&answer).await.result().await;
            assert!(not_run(&result).contains("not approved"), "{cell:?}");
            gateway
                .audited(action, |line| {
                    line["type"] == "question.answered" && line["action"] == action
                })
                .await;
        }
        let line = gateway
            .audited("the call", |line| {
                line["type"] == "call" && line["reason"] == "not_approved"
            })
            .await;
        assert_eq!(
            (&line["target"], &line["outcome"]),
            (&"delete_x".into(), &"refused".into())
        );
        caller.works().await;
        assert_eq!(runs(&server), 0, "{cell:?}");
    }
}

#[tokio::test]
async fn nobody_approves_in_time() {
    let times = "timeouts: { resume: 400ms }";
    let more = r#"{ approve: ["delete_*"], questions: { timeout: 300ms } }"#;
    for cell in CELLS {
        let yaml = if cell.client {
            "timeouts: { resume: 400ms, question: 300ms }"
        } else {
            times
        };
        let (server, gateway, caller) = cell.scene(more, yaml).await;
        let asked = caller.asked("delete_x", ARGUMENTS).await;
        let line = gateway
            .audited("the end of the question", |line| {
                line["type"] == "question.answered"
            })
            .await;
        assert_eq!(line["outcome"], "timeout", "{cell:?}");
        assert_eq!(line["decided_by"], "timeout", "{cell:?}");
        match asked {
            Asked::Legacy(_, reply, _) => {
                assert!(not_run(&Coming::Here(reply).result().await).contains("in time"));
            }
            Asked::Modern(ask, round) => {
                let late = ask.retry("2", &round, &round.all(ACCEPT)).refused().await;
                assert_eq!(late, (200, -32602, "state_expired".to_owned()), "{cell:?}");
            }
        }
        caller.works().await;
        assert_eq!(runs(&server), 0, "{cell:?}");
    }
}

#[tokio::test]
async fn who_can_not_be_asked_can_not_call() {
    for cell in CELLS {
        let server = cell.server().await;
        let setup = Setup::new().server_with("alpha", &server, APPROVE);
        let gateway = setup.start().await;
        let mute = cell.client(&gateway, NOTHING).await;
        let client = Client::new(&gateway, "alpha").with("x-contraflow-headless", "1");
        let headless = if cell.client {
            let mut modern = Modern::new(&gateway, "alpha");
            modern.client = client;
            Caller::Modern(modern)
        } else {
            Caller::Legacy(client.open(EVERYTHING).await)
        };
        for (caller, so_many) in [(mute, 1), (headless, 2)] {
            let reply = caller.call("delete_x", ARGUMENTS).await.unwrap();
            let result = Coming::Here(reply).result().await;
            assert!(not_run(&result).contains("nobody can be asked"), "{cell:?}");
            let line = ends(&gateway, so_many).await;
            assert_eq!(line["reason"], "undeclared", "{cell:?}");
            assert_eq!(line["decided_by"], "client", "{cell:?}");
            caller.works().await;
        }
        assert_eq!(runs(&server), 0, "{cell:?}");
    }
}

#[tokio::test]
async fn other_tools_are_not_asked_about() {
    for cell in CELLS {
        let (server, _gateway, caller) = cell.scene(APPROVE, "").await;
        for tool in ["read", "Delete_x", "undelete_x"] {
            let call = caller.call(tool, "{}");
            server.called(tool).await.result(&cell.ran());
            let result = Coming::Later(call).result().await;
            assert_eq!(result["content"][0]["text"], "it ran", "{cell:?} {tool}");
        }
    }
}

#[tokio::test]
async fn a_call_whose_tool_could_be_another_one_is_refused() {
    for cell in CELLS.into_iter().filter(|cell| !cell.client) {
        let (server, _gateway, caller) = cell.scene(APPROVE, "").await;
        let Caller::Legacy(session) = &caller else {
            panic!("a legacy client")
        };
        for params in [
            r#"{"name":["delete_x"],"arguments":{}}"#,
            r#"{"name":"read","Name":"delete_x"}"#,
            r#"{"name":"delete_x","arguments":{"a":1,"a":2}}"#,
        ] {
            let mut reply = session.post(json::request("1", "tools/call", params)).await;
            assert_eq!(reply.error().await, -32600, "{params}");
        }
        caller.works().await;
        assert_eq!(server.seen_method("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn long_arguments_are_cut_and_can_play_no_tricks() {
    for cell in CELLS {
        let (_server, _gateway, caller) = cell.scene(APPROVE, "").await;
        let arguments = format!(
            r#"{{"a":"{}","b":"{}"}}"#,
            "\u{202e}x\u{7f}",
            "long".repeat(9000)
        );
        let asked = caller.asked("delete_x", &arguments).await;
        let message = asked.message();
        assert!(message.len() <= 4096, "{}", message.len());
        assert!(message.contains("SHA-256"), "{message}");
        assert!(message.contains(r"\u202ex\u007f"), "{message}");
        let odd = message.chars().find(|it| *it != '\n' && it.is_control());
        assert_eq!(odd, None);
    }
}

/// Whoever has the state of another can do nothing with it, whatever they say.
#[tokio::test]
async fn an_approval_is_its_persons_alone() {
    for cell in CELLS.into_iter().filter(|cell| cell.client) {
        let server = cell.server().await;
        let keys = ["mira", "joris"].map(|name| {
            let key = token::sha256(&format!("{name}-0123456789abcdef"));
            format!("{{ name: {name}, sha256: \"{key}\" }}")
        });
        let gateway = Setup::new()
            .server_with("alpha", &server, APPROVE)
            .yaml(&format!("auth: {{ api_keys: [ {} ] }}", keys.join(", ")))
            .start()
            .await;
        let client = Modern::new(&gateway, "alpha");
        let mira = client.bearer("mira-0123456789abcdef");
        let joris = client.bearer("joris-0123456789abcdef");
        let ask = mira.call("1", "delete_x", ARGUMENTS);
        let round = ask.send().await.round().await;
        let stolen = joris
            .call("1", "delete_x", ARGUMENTS)
            .retry("2", &round, &round.all(ACCEPT));
        let refused = (200, -32602, "state_invalid".to_owned());
        assert_eq!(stolen.refused().await, refused, "{cell:?}");
        assert_eq!(runs(&server), 0);
        let approved = ask.retry("3", &round, &round.all(ACCEPT)).start();
        server.called("delete_x").await.result(&cell.ran());
        Coming::Later(approved).result().await;
    }
}

#[tokio::test]
async fn an_approval_counts_once_and_for_what_was_shown() {
    for cell in CELLS.into_iter().filter(|cell| cell.client) {
        let (server, _gateway, caller) = cell.scene(APPROVE, "").await;
        let Asked::Modern(ask, round) = caller.asked("delete_x", ARGUMENTS).await else {
            panic!("a modern client")
        };
        let retry = ask.retry("2", &round, &round.all(ACCEPT));
        let changed = retry.clone().param("arguments", r#"{"id":8}"#);
        let mismatch = (200, -32602, "state_mismatch".to_owned());
        assert_eq!(changed.refused().await, mismatch, "{cell:?}");
        let other = retry.clone().param("name", r#""delete_y""#);
        assert_eq!(other.refused().await, mismatch, "{cell:?}");
        let running = retry.start();
        server.called("delete_x").await.result(&cell.ran());
        Coming::Later(running).result().await;
        let consumed = (200, -32602, "state_consumed".to_owned());
        assert_eq!(retry.id("3").refused().await, consumed, "{cell:?}");
        assert_eq!(runs(&server), 1);
    }
}

/// To say nothing is not to approve, nor to decline.
#[tokio::test]
async fn who_comes_back_without_an_answer_is_asked_again() {
    for cell in CELLS.into_iter().filter(|cell| cell.client) {
        let (server, _gateway, caller) = cell.scene(APPROVE, "").await;
        let Asked::Modern(ask, round) = caller.asked("delete_x", ARGUMENTS).await else {
            panic!("a modern client")
        };
        let again = ask.retry("2", &round, "{}").send().await.round().await;
        assert_eq!(runs(&server), 0, "{cell:?}");
        let running = ask.retry("3", &again, &again.all(ACCEPT)).start();
        server.called("delete_x").await.result(&cell.ran());
        Coming::Later(running).result().await;
        assert_eq!(runs(&server), 1, "{cell:?}");
    }
}

/// A state that the gateway did not give is no approval.
#[tokio::test]
async fn a_state_that_is_made_up_lets_nothing_through() {
    for cell in CELLS.into_iter().filter(|cell| cell.client) {
        let (server, _gateway, caller) = cell.scene(APPROVE, "").await;
        let Caller::Modern(client) = &caller else {
            panic!("a modern client")
        };
        let call = client.call("1", "delete_x", ARGUMENTS);
        for state in [r#""mine""#, r#""cf1.AAAA~mine""#, r#""~""#] {
            let forged = call
                .clone()
                .param("requestState", state)
                .param("inputResponses", r#"{"approve":{"action":"accept"}}"#);
            let refused = (200, -32602, "state_invalid".to_owned());
            assert_eq!(forged.refused().await, refused, "{cell:?} {state}");
        }
        caller.works().await;
        assert_eq!(runs(&server), 0, "{cell:?}");
    }
}

/// What the server asks in the midst of an approved call comes through, and its state comes back to it;
/// the person is not asked again.
#[tokio::test]
async fn the_rounds_of_a_server_follow_its_approval() {
    for state in [r#","requestState":"s~1""#, ""] {
        let cell = CELLS[3];
        let (server, _gateway, caller) = cell.scene(APPROVE, "").await;
        let Asked::Modern(ask, round) = caller.asked("delete_x", ARGUMENTS).await else {
            panic!("a modern client")
        };
        let running = ask.retry("2", &round, &round.all(ACCEPT)).start();
        let held = server.called("delete_x").await;
        json::same_but_id(held.seen.text(), &ask.body());
        let params = json::form("Sure?");
        held.result(&format!(
            r#"{{"resultType":"input_required","inputRequests":{{"k":{{"method":"elicitation/create","params":{params}}}}}{state}}}"#
        ));
        let round = running.await.unwrap().round().await;
        assert_eq!(round.only(), "k");
        let sure = crate::support::accepted("Mira");
        let retry = ask.retry("3", &round, &round.all(&sure));
        let running = retry.start();
        let held = server.called("delete_x").await;
        let back = held.seen.raw(&["params", "requestState"]);
        let expected = (!state.is_empty()).then_some(r#""s~1""#);
        assert_eq!(back.as_deref(), expected);
        let answer = held.seen.raw(&["params", "inputResponses", "k"]);
        assert_eq!(answer.as_deref(), Some(sure.as_str()));
        held.result(&cell.ran());
        Coming::Later(running).result().await;
        let consumed = (200, -32602, "state_consumed".to_owned());
        assert_eq!(retry.id("4").refused().await, consumed);
        assert_eq!(runs(&server), 2);
    }
}

/// A server that forgot its session meanwhile did not get the call, so it goes to a new session; the person
/// is not asked again.
#[tokio::test]
async fn one_approval_is_enough_for_one_call() {
    let cell = CELLS[1];
    let (server, gateway, caller) = cell.scene(APPROVE, "").await;
    let asked = caller.asked("delete_x", ARGUMENTS).await;
    server.forget();
    let coming = asked.says(ACCEPT).await;
    server.called("delete_x").await.result(&cell.ran());
    assert_eq!(coming.result().await["content"][0]["text"], "it ran");
    let asked = gateway.audit();
    let asked = asked.iter().filter(|line| line["type"] == "question.asked");
    assert_eq!(asked.count(), 1);
}

/// What is cancelled, or ends, while its person is asked is nothing that the server ever hears of.
#[tokio::test]
async fn a_call_that_ends_before_its_approval_is_no_matter_of_the_server() {
    let cell = CELLS[0];
    let (server, gateway, caller) = cell.scene(APPROVE, "").await;
    let Asked::Legacy(session, mut reply, question) = caller.asked("delete_x", "{}").await else {
        panic!("a legacy client")
    };
    session
        .notify("notifications/cancelled", r#"{"requestId":1}"#)
        .await;
    let called_off = reply.next().await;
    assert_eq!(
        json::raw(&called_off, &["params", "requestId"]),
        Some(json::id(&question))
    );
    gateway
        .audited("the cancelled call", |line| {
            line["type"] == "call" && line["outcome"] == "cancelled"
        })
        .await;
    caller.works().await;
    let _asked = caller.asked("delete_x", "{}").await;
    session.delete().await;
    gateway
        .audited("the end", |line| line["type"] == "session.closed")
        .await;
    assert!(server.seen_method("notifications/cancelled").is_empty());
    assert!(server.answers().is_empty());
    assert_eq!(runs(&server), 0);
}

/// A batch is no way around.
#[tokio::test]
async fn each_member_of_a_batch_is_asked_about() {
    let cell = CELLS[0];
    let server = cell.server().await;
    let setup = Setup::new().server_with("alpha", &server, APPROVE);
    let gateway = setup.start().await;
    let client = Client::new(&gateway, "alpha");
    let session = client.open_at("2025-03-26", r#"{"elicitation":{}}"#).await;
    let calls = ["1", "2"].map(|id| json::call(id, "delete_x", "{}"));
    let mut reply = session.post(format!("[{}]", calls.join(","))).await;
    let first = reply.question("elicitation/create").await;
    let second = reply.question("elicitation/create").await;
    session.answer(&first, r#"{"action":"decline"}"#).await;
    not_run(&reply.json().await["result"]);
    session.answer(&second, ACCEPT).await;
    server.called("delete_x").await.result(&cell.ran());
    assert_eq!(json::text_of(&reply.next().await), "it ran");
    assert_eq!(runs(&server), 1);
}

/// The record of the end of a question, which is so many-th one.
async fn ends(gateway: &Gateway, so_many: usize) -> Value {
    let ended = |line: &Value| line["type"] == "question.answered";
    let mut lines = gateway
        .audited_times("the end of a question", so_many, ended)
        .await;
    lines.swap_remove(so_many - 1)
}

/// The question counts as one of its person's.
#[tokio::test]
async fn approvals_are_within_the_limit_on_questions() {
    let one = "limits: { per_principal: { questions: 1 } }";
    for cell in CELLS.into_iter().filter(|cell| !cell.client) {
        let (server, gateway, caller) = cell.scene(APPROVE, one).await;
        let Caller::Legacy(session) = &caller else {
            panic!("a legacy client")
        };
        let _open = caller.asked("delete_x", "{}").await;
        let reply = session.call("2", "delete_x", "{}").await;
        let result = Coming::Here(reply).result().await;
        assert!(not_run(&result).contains("too many"), "{cell:?}");
        assert_eq!(ends(&gateway, 1).await["decided_by"], "limits", "{cell:?}");
        assert_eq!(runs(&server), 0);
    }
    // A modern client that does not come back loses its oldest question.
    let (server, _gateway, caller) = CELLS[3].scene(APPROVE, one).await;
    let Asked::Modern(ask, first) = caller.asked("delete_x", "{}").await else {
        panic!("a modern client")
    };
    let second = caller.asked("delete_x", "{}").await;
    let lost = ask.retry("3", &first, &first.all(ACCEPT)).refused().await;
    assert_eq!(lost, (200, -32602, "state_consumed".to_owned()));
    let coming = second.says(ACCEPT).await;
    server.called("delete_x").await.result(&CELLS[3].ran());
    coming.result().await;
}
