//! The policy for questions between modern clients and modern servers: questions come as results and their
//! answers with the next request, and both are looked at on their way.

use serde_json::Value;

use crate::support::modern_server::complete;
use crate::support::server::Held;
use crate::support::{Gateway, Modern, Reply, Round, Server, Setup, accepted, json, token};

const META: &str = "io.modelcontextprotocol/clientCapabilities";

/// A gateway with a modern server behind it whose `questions` are these (flow YAML), and a client that can be
/// asked everything.
async fn with(questions: &str) -> (Server, Gateway, Modern) {
    with_setup(Setup::new(), questions).await
}

async fn with_setup(setup: Setup, questions: &str) -> (Server, Gateway, Modern) {
    let server = Server::with(|habits| habits.modern = true).await;
    let more = format!("{{ era: modern, questions: {questions} }}");
    let gateway = setup.server_with("alpha", &server, &more).start().await;
    let client = Modern::new(&gateway, "alpha");
    (server, gateway, client)
}

/// A form for a nickname, as an entry of `inputRequests`.
fn form(key: &str, message: &str) -> String {
    elicitation(key, &json::form(message))
}

fn elicitation(key: &str, params: &str) -> String {
    format!(r#""{key}":{{"method":"elicitation/create", "params":{params}}}"#)
}

/// A result that asks this.
fn asks(entries: &[String], state: &str) -> String {
    let entries = entries.join(", ");
    format!(
        r#"{{"resultType":"input_required", "inputRequests":{{{entries}}},"requestState":"{state}","x":1.0}}"#
    )
}

/// Calls the tool `ask`, whose server asks this; gives what the client gets.
async fn asked(server: &Server, client: &Modern, result: &str) -> Reply {
    let call = client.call("1", "ask", "{}").start();
    server.called("ask").await.result(result);
    call.await.unwrap()
}

/// Comes back with these answers (JSON); gives what the server gets.
async fn retried(
    server: &Server,
    client: &Modern,
    round: &Round,
    answers: &str,
) -> (Held, tokio::task::JoinHandle<Reply>) {
    let retry = client.call("1", "ask", "{}").retry("2", round, answers);
    let retry = retry.start();
    (server.called("ask").await, retry)
}

fn responses(held: &Held) -> Value {
    let responses = held.seen.raw(&["params", "inputResponses"]);
    json::parse(&responses.unwrap_or_else(|| "null".to_owned()))
}

fn nick(name: &str) -> Value {
    json::parse(&accepted(name))
}

/// The text of a tool that failed.
async fn failed(reply: &mut Reply) -> String {
    let text = reply.next().await;
    assert_eq!(json::parse(&text)["result"]["isError"], true, "{text}");
    json::text_of(&text)
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |line| line["type"] == kind
}

async fn capabilities(server: &Server, client: &Modern) -> (String, String) {
    let ask = client.call("1", "echo", r#"{"x":"1"}"#);
    ask.result().await;
    let seen = server.seen_method("tools/call").pop().unwrap();
    let seen = seen.raw(&["params", "_meta", META]).unwrap();
    (
        json::raw(&ask.body(), &["params", "_meta", META]).unwrap(),
        seen,
    )
}

#[tokio::test]
async fn a_round_that_policy_leaves_alone_passes_byte_for_byte() {
    let (server, _gateway, client) = with("{ }").await;
    let result = asks(
        &[
            form("k", "Who?"),
            r#""r":{"method":"roots/list"}"#.to_owned(),
        ],
        "s\\u0031",
    );
    let mut reply = asked(&server, &client, &result).await;
    let text = reply.next().await;
    assert_eq!(text, json::result("1", &result));
    let answers = r#"{"r":{"roots": []},"k":{"action":"accept","content":{"nick":"ada"},"y":1.0}}"#;
    let retry = client
        .call("1", "ask", "{}")
        .retry("2", &Round::of(&text), answers);
    let _answer = retry.start();
    let held = server.called("ask").await;
    json::same_but_id(held.seen.text(), &retry.body());
}

#[tokio::test]
async fn a_label_is_all_that_changes() {
    let (server, _gateway, client) = with("{ label: true }").await;
    let result = asks(
        &[
            r#""r":{"method":"roots/list"}"#.to_owned(),
            form("k", "Who?"),
        ],
        "s",
    );
    let mut reply = asked(&server, &client, &result).await;
    let labelled = result
        .replace("Who?", "[alpha] Who?")
        .replace(", \"k\"", ",\"k\"");
    assert_eq!(reply.next().await, json::result("1", &labelled));
}

const ONE_RULE: &str =
    r#"{ rules: [ { name: usual, when: 'message == "Who?"', accept: { nick: ada } } ] }"#;

/// The client sees the other question alone, and the server gets both answers under their keys.
#[tokio::test]
async fn of_two_questions_a_rule_answers_one_and_the_person_the_other() {
    let (server, gateway, client) = with(ONE_RULE).await;
    let result = asks(&[form("a", "Who?"), form("b", "And who else?")], "s\\u0031");
    let round = asked(&server, &client, &result).await.round().await;
    assert_eq!((round.only(), &*round.state), ("b", r#""s\u0031""#));
    let answers = round.all(&accepted("bob"));
    let (held, retry) = retried(&server, &client, &round, &answers).await;
    assert_eq!(responses(&held)["a"], nick("ada"));
    assert_eq!(responses(&held)["b"], nick("bob"));
    let state = held.seen.raw(&["params", "requestState"]);
    assert_eq!(state.as_deref(), Some(r#""s\u0031""#));
    held.result(&complete("done"));
    assert_eq!(json::text_of(&retry.await.unwrap().next().await), "done");
    let answered = gateway
        .audited_times("both answers", 2, is("question.answered"))
        .await;
    let ids: Vec<_> = answered
        .iter()
        .map(|line| &line["question"]["id"])
        .collect();
    assert_eq!(ids, [r#""a""#, r#""b""#]);
    let asked: Vec<_> = gateway
        .audit()
        .into_iter()
        .filter(is("question.asked"))
        .collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0]["question"]["id"], r#""b""#);
}

/// The client hears of the end alone.
#[tokio::test]
async fn what_policy_answers_alone_goes_back_to_the_server_at_once() {
    let (server, gateway, client) = with(ONE_RULE).await;
    let call = client.call("1", "ask", r#"{"n":1.10}"#).start();
    let first = server.called("ask").await;
    let (id, body) = (first.id(), first.seen.text().to_owned());
    first.result(&asks(&[form("a", "Who?")], "s\\u0031"));
    let second = server.called("ask").await;
    assert_ne!(second.id(), id);
    let added = format!(
        r#","inputResponses":{{"a":{}}},"requestState":"s\u0031"}}"#,
        accepted("ada")
    );
    let expected = format!("{}{added}}}", body.strip_suffix("}}").unwrap());
    json::same_but_id(second.seen.text(), &expected);
    // The next round has its own answers and no state.
    second.result(&format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#,
        form("b", "Who?")
    ));
    let third = server.called("ask").await;
    assert_eq!(responses(&third), serde_json::json!({ "b": nick("ada") }));
    assert_eq!(third.seen.raw(&["params", "requestState"]), None);
    third.result(&complete("done"));
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "done");
    gateway
        .audited_times("the answers", 2, is("question.answered"))
        .await;
    assert!(!gateway.audit().iter().any(is("question.asked")));
}

#[tokio::test]
async fn progress_rises_over_rounds_of_which_the_client_knows_nothing() {
    let (server, _gateway, client) = with(ONE_RULE).await;
    let call = client.call("1", "ask", "{}").token("\"mine\"").start();
    let progress = |value: &str| {
        let params = format!(r#"{{"progressToken":"mine","progress":{value}}}"#);
        json::notice("notifications/progress", &params)
    };
    let stream = server.called("ask").await.stream();
    stream.send(&progress("5")).await;
    stream.result(&asks(&[form("a", "Who?")], "s")).await;
    let stream = server.called("ask").await.stream();
    for value in ["1", "6"] {
        stream.send(&progress(value)).await;
    }
    stream.result(&complete("done")).await;
    let mut reply = call.await.unwrap();
    for expected in [progress("5"), progress("6")] {
        assert_eq!(reply.next().await, expected);
    }
    assert_eq!(json::text_of(&reply.next().await), "done");
}

#[tokio::test]
async fn a_server_that_asks_again_and_again_is_not_answered_for_ever() {
    let questions = ONE_RULE.replacen('{', "{ limits: { per_call: off },", 1);
    let (server, _gateway, client) = with(&questions).await;
    let call = client.call("1", "ask", "{}").start();
    for round in 0..9 {
        let asks = asks(&[form("a", "Who?")], &format!("s{round}"));
        server.called("ask").await.result(&asks);
    }
    let text = failed(&mut call.await.unwrap()).await;
    assert!(text.contains("again and again"), "{text}");
    assert_eq!(server.seen_method("tools/call").len(), 9);
}

/// Nobody is asked, not even what would be fine; the person hears why.
#[tokio::test]
async fn a_form_that_asks_for_a_secret_ends_the_request() {
    let (server, gateway, client) = with("{ }").await;
    let login = r#"{"message":"Sign in","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}"#;
    let result = asks(&[form("a", "Who?"), elicitation("b", login)], "s");
    let text = failed(&mut asked(&server, &client, &result).await).await;
    assert!(text.contains("secret"), "{text}");
    let line = gateway
        .audited("the refusal", is("question.answered"))
        .await;
    assert_eq!(
        (&line["outcome"], &line["reason"], &line["question"]["id"]),
        (&"refused".into(), &"secrets".into(), &r#""b""#.into())
    );
    let call = gateway.audited("the call", is("call")).await;
    assert_eq!(call["reason"], "interaction_failed");
    assert!(!gateway.audit().iter().any(is("question.asked")));
}

#[tokio::test]
async fn where_there_are_no_results_that_failed_a_refusal_is_an_error() {
    let (server, _gateway, client) = with("{ elicitation: { form: refuse } }").await;
    let ask = client.request("1", "prompts/get", r#"{"name":"p"}"#);
    let refused = tokio::spawn(async move { ask.refused().await });
    let held = server.asked("prompts/get").await;
    held.result(&asks(&[form("a", "Who?")], "s"));
    let (status, code, reason) = refused.await.unwrap();
    assert_eq!((status, code, &*reason), (200, -31005, "policy_denied"));
}

#[tokio::test]
async fn people_are_sent_to_allowed_addresses_only() {
    let (server, _gateway, client) = with(r#"{ urls: { hosts: ["*.example.com"] } }"#).await;
    let page = |host: &str| {
        let params = format!(
            r#"{{"mode":"url","elicitationId":"1","url":"https://{host}/x","message":"Go"}}"#
        );
        asks(&[elicitation("a", &params)], "s")
    };
    let text = failed(&mut asked(&server, &client, &page("evil.example.org")).await).await;
    assert!(text.contains("address"), "{text}");
    let round = asked(&server, &client, &page("login.example.com")).await;
    assert_eq!({ round }.round().await.only(), "a");
}

#[tokio::test]
async fn who_can_not_be_asked_learns_what_to_declare() {
    let (server, _gateway, client) = with("{ }").await;
    let client = client.declaring(r#"{"roots":{}}"#);
    let mut reply = asked(&server, &client, &asks(&[form("a", "Who?")], "s")).await;
    assert_eq!(reply.status, 400);
    let error = &reply.json().await["error"];
    assert_eq!(error["code"], -32021);
    let required = serde_json::json!({ "elicitation": { "form": {} } });
    assert_eq!(error["data"]["requiredCapabilities"], required);
}

#[tokio::test]
async fn where_policy_may_speak_for_who_can_not_be_asked_the_server_gets_its_answer() {
    let (server, gateway, client) = with("{ when_client_cannot: decline }").await;
    let client = client.declaring("{}");
    let call = client.call("1", "ask", "{}").start();
    let held = server.called("ask").await;
    let seen = held.seen.raw(&["params", "_meta", META]).unwrap();
    assert_eq!(seen, r#"{"elicitation":{"form":{},"url":{}}}"#);
    held.result(&asks(&[form("a", "Who?")], "s"));
    let held = server.called("ask").await;
    assert_eq!(responses(&held)["a"]["action"], "decline");
    held.result(&complete("done"));
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "done");
    let line = gateway.audited("the answer", is("question.answered")).await;
    assert_eq!(line["action"], "decline");
}

#[tokio::test]
async fn a_server_sees_what_can_be_answered() {
    let (server, _gateway, client) = with("{ }").await;
    let (said, seen) = capabilities(&server, &client).await;
    assert_eq!(said, seen);
    let (server, _gateway, client) = with("{ elicitation: { url: refuse }, roots: refuse }").await;
    let (_, seen) = capabilities(&server, &client).await;
    assert_eq!(seen, r#"{"elicitation":{"form":{}},"sampling":{}}"#);
    let (server, _gateway, client) = with(ONE_RULE).await;
    let (_, seen) = capabilities(&server, &client.declaring("{}")).await;
    assert_eq!(seen, r#"{"elicitation":{"form":{},"url":{}}}"#);
}

/// What the operator does not allow, no client can declare: policy says so.
#[tokio::test]
async fn what_the_operator_does_not_allow_is_refused_by_policy() {
    let (server, _gateway, client) = with("{ sampling: refuse }").await;
    let sampling =
        r#""a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#;
    let result = asks(&[sampling.to_owned()], "s");
    let text = failed(&mut asked(&server, &client, &result).await).await;
    assert!(text.contains("does not allow"), "{text}");
}

#[tokio::test]
async fn a_headless_client_is_not_asked_but_rules_answer_for_it() {
    let (server, _gateway, client) = with("{ }").await;
    let headless = client
        .call("1", "ask", "{}")
        .header("x-contraflow-headless", "1");
    let call = headless.start();
    let held = server.called("ask").await;
    let seen = held.seen.raw(&["params", "_meta", META]);
    assert_eq!(seen.as_deref(), Some("{}"));
    held.result(&asks(&[form("a", "Who?")], "s"));
    assert_eq!(call.await.unwrap().error().await, -32021);

    let rule = "{ rules: [ { when: 'headless', accept: { nick: ada } } ] }";
    let (server, _gateway, client) = with(rule).await;
    let headless = client
        .call("1", "ask", "{}")
        .header("x-contraflow-headless", "1");
    let call = headless.start();
    server
        .called("ask")
        .await
        .result(&asks(&[form("a", "Who?")], "s"));
    let held = server.called("ask").await;
    assert_eq!(responses(&held)["a"], nick("ada"));
    held.result(&complete("done"));
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "done");
}

/// The server does not hear of answers that do not fit. The others are not asked for again.
#[tokio::test]
async fn what_does_not_fit_is_asked_again() {
    let (server, gateway, client) = with("{ }").await;
    let result = asks(&[form("a", "Who?"), form("b", "And who else?")], "s\\u0031");
    let round = asked(&server, &client, &result).await.round().await;
    let answers = format!(
        r#"{{"a":{},"b":{{"action":"accept","content":{{}}}}}}"#,
        accepted("ada")
    );
    let retry = client.call("1", "ask", "{}").retry("2", &round, &answers);
    let again = retry.send().await.round().await;
    assert_eq!((again.only(), &again.state), ("b", &round.state));
    assert!(
        again
            .message("b")
            .starts_with("And who else?\n\nPlease answer again."),
        "{}",
        again.text
    );
    let (held, retry) = retried(&server, &client, &again, &again.all(&accepted("bob"))).await;
    assert_eq!(responses(&held)["a"], nick("ada"));
    assert_eq!(responses(&held)["b"], nick("bob"));
    held.result(&complete("done"));
    assert_eq!(json::text_of(&retry.await.unwrap().next().await), "done");
    assert_eq!(server.seen_method("tools/call").len(), 2);
    let answered = gateway
        .audited_times("both answers", 2, is("question.answered"))
        .await;
    assert_eq!(answered.len(), 2, "{answered:?}");
    assert!(answered.iter().all(|line| line["action"] == "accept"));
}

#[tokio::test]
async fn what_never_fits_is_cancelled() {
    let (server, gateway, client) = with("{ }").await;
    let result = asks(&[form("a", "Who?")], "s");
    let mut round = asked(&server, &client, &result).await.round().await;
    let bad = r#"{"action":"accept","content":{"nick":7}}"#;
    for _ in 0..2 {
        let retry = client
            .call("1", "ask", "{}")
            .retry("2", &round, &round.all(bad));
        round = retry.send().await.round().await;
    }
    let (held, _retry) = retried(&server, &client, &round, &round.all(bad)).await;
    assert_eq!(
        responses(&held),
        serde_json::json!({ "a": { "action": "cancel" } })
    );
    let line = gateway.audited("the answer", is("question.answered")).await;
    assert_eq!(line["action"], "cancel");
}

/// A hook that says this when it is asked about this event.
fn hook(setup: &Setup, at: &str, said: &str) -> String {
    let event = if at == "before" {
        "Elicitation"
    } else {
        "ElicitationResult"
    };
    let file = setup.folder().join(format!("{at}.sh"));
    let script = format!(
        "cat >/dev/null\necho '{{\"hookSpecificOutput\":{{\"hookEventName\":\"{event}\",{said}}}}}'\n"
    );
    std::fs::write(&file, script).unwrap();
    format!(
        "{{ hooks: {{ {at}: {{ command: [sh, \"{}\"], timeout: 30s }} }} }}",
        file.display()
    )
}

#[tokio::test]
async fn a_hook_after_the_answer_has_the_last_word() {
    let setup = Setup::new();
    let questions = hook(
        &setup,
        "after",
        r#""action":"accept","content":{"nick":"ADA"}"#,
    );
    let (server, gateway, client) = with_setup(setup, &questions).await;
    let result = asks(
        &[
            form("a", "Who?"),
            r#""r":{"method":"roots/list"}"#.to_owned(),
        ],
        "s",
    );
    let round = asked(&server, &client, &result).await.round().await;
    let answers = format!(r#"{{"r":{{"roots":[1.0]}},"a":{}}}"#, accepted("ada"));
    let (held, _retry) = retried(&server, &client, &round, &answers).await;
    assert_eq!(
        held.seen.raw(&["params", "inputResponses"]).unwrap(),
        format!(r#"{{"r":{{"roots":[1.0]}},"a":{}}}"#, accepted("ADA"))
    );
    gateway
        .audited("the answer", |line| {
            line["type"] == "question.answered" && line["action"] == "accept"
        })
        .await;
}

#[tokio::test]
async fn a_hook_after_the_answer_can_end_the_request() {
    let setup = Setup::new();
    let questions = hook(&setup, "after", r#""action":"nonsense""#);
    let questions = questions.replace("timeout", "on_error: refuse, timeout");
    let (server, _gateway, client) = with_setup(setup, &questions).await;
    let round = asked(&server, &client, &asks(&[form("a", "Who?")], "s")).await;
    let round = { round }.round().await;
    let retry = client
        .call("1", "ask", "{}")
        .retry("2", &round, &round.all(&accepted("ada")));
    let text = failed(&mut retry.send().await).await;
    assert!(text.contains("does not allow"), "{text}");
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

#[tokio::test]
async fn a_hook_before_the_person_answers_in_their_place() {
    let setup = Setup::new();
    let questions = hook(
        &setup,
        "before",
        r#""action":"accept","content":{"nick":"ada"}"#,
    );
    let (server, _gateway, client) = with_setup(setup, &questions).await;
    let call = client.call("1", "ask", "{}").start();
    server
        .called("ask")
        .await
        .result(&asks(&[form("a", "Who?")], "s"));
    let held = server.called("ask").await;
    assert_eq!(responses(&held)["a"], nick("ada"));
    held.result(&complete("done"));
    assert_eq!(json::text_of(&call.await.unwrap().next().await), "done");
}

/// A server may have no state. Then the request itself tells which one it is.
#[tokio::test]
async fn a_round_without_state_is_known_by_its_request() {
    let (server, _gateway, client) = with(ONE_RULE).await;
    let call = |id, members: &str| {
        let params = format!(r#"{{"name":"ask","arguments":{{"n":1}}{members}}}"#);
        client.request(id, "tools/call", &params)
    };
    let first = call("1", "").start();
    let entries = [form("a", "Who?"), form("b", "And who else?")].join(",");
    let result = format!(r#"{{"resultType":"input_required","inputRequests":{{{entries}}}}}"#);
    server.called("ask").await.result(&result);
    first.await.unwrap().next().await;
    let bad = r#","inputResponses":{"b":{"action":"accept"}}"#;
    let again = call("2", bad).send().await.json().await;
    let again = &again["result"];
    assert!(again["inputRequests"]["b"].is_object(), "{again}");
    assert!(again.get("requestState").is_none(), "{again}");
    let members = format!(r#","inputResponses":{{"b":{}}}"#, accepted("bob"));
    let _retry = call("3", &members).start();
    let held = server.called("ask").await;
    assert_eq!(responses(&held)["a"], nick("ada"));
    assert_eq!(responses(&held)["b"], nick("bob"));
}

/// They go to the server as they are, which knows whose the state is; policy has nothing to say to them.
#[tokio::test]
async fn the_answers_of_another_are_unknown() {
    let keys = ["mira", "joris"].map(|name| {
        let key = token::sha256(&format!("{name}-0123456789abcdef"));
        format!("{{ name: {name}, sha256: \"{key}\" }}")
    });
    let setup = Setup::new().yaml(&format!("auth: {{ api_keys: [ {} ] }}", keys.join(", ")));
    let (server, gateway, client) = with_setup(setup, ONE_RULE).await;
    let mira = client.bearer("mira-0123456789abcdef");
    let joris = client.bearer("joris-0123456789abcdef");
    let result = asks(&[form("a", "Who?"), form("b", "And who else?")], "s");
    let round = asked(&server, &mira, &result).await.round().await;
    let bad = r#"{"b":{"action":"accept","content":{"nick":7}}}"#;
    let (held, _retry) = retried(&server, &joris, &round, bad).await;
    assert_eq!(responses(&held), json::parse(bad));
    let line = gateway
        .audited("the strange answer", is("answer.ignored"))
        .await;
    assert_eq!(
        (&line["reason"], &line["question"]["id"]),
        (&"no_such_question".into(), &r#""b""#.into())
    );
    assert_eq!(line["principal"]["subject"], "joris");
    // Hers is as it was.
    let (held, _retry) = retried(&server, &mira, &round, &round.all(&accepted("bob"))).await;
    assert_eq!(responses(&held)["a"], nick("ada"));
}

#[tokio::test]
async fn an_answer_that_can_be_read_in_two_ways_goes_nowhere() {
    let (server, _gateway, client) = with("{ }").await;
    let round = asked(&server, &client, &asks(&[form("a", "Who?")], "s")).await;
    let round = { round }.round().await;
    let twice = format!(r#"{{"a":{},"a":{{"action":"accept"}}}}"#, accepted("ada"));
    let retry = client.call("1", "ask", "{}").retry("2", &round, &twice);
    let (_, code, reason) = retry.refused().await;
    assert_eq!((code, &*reason), (-32602, "invalid_answer"));
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// A client that takes the first of two members must not be asked what policy did not see.
#[tokio::test]
async fn a_question_that_can_be_read_in_two_ways_goes_nowhere() {
    let (server, _gateway, client) = with("{ }").await;
    let result = asks(&[form("a", "Who?"), form("a", "And who else?")], "s");
    assert_eq!(asked(&server, &client, &result).await.error().await, -32603);
}

#[tokio::test]
async fn the_questions_of_a_request_are_counted_over_its_rounds() {
    let (server, gateway, client) = with("{ limits: { per_call: 2 } }").await;
    let round = asked(&server, &client, &asks(&[form("a", "Who?")], "s1")).await;
    let round = { round }.round().await;
    let (held, retry) = retried(&server, &client, &round, &round.all(&accepted("ada"))).await;
    held.result(&asks(&[form("b", "And who?")], "s2"));
    let round = retry.await.unwrap().round().await;
    let (held, retry) = retried(&server, &client, &round, &round.all(&accepted("bob"))).await;
    held.result(&asks(&[form("c", "And who else?")], "s3"));
    let text = failed(&mut retry.await.unwrap()).await;
    assert!(text.contains("more than the gateway allows"), "{text}");
    let line = gateway
        .audited("the refusal", |line| line["outcome"] == "refused")
        .await;
    assert_eq!(line["reason"], "question_per_call");
}

/// Who never comes back is remembered for a while, but only so much of it.
#[tokio::test]
async fn who_leaves_too_many_questions_open_is_not_asked_more() {
    let (server, gateway, client) = with("{ secrets: allow }").await;
    let long = form("a", &"Who? ".repeat(100_000));
    let mut rounds = 0;
    loop {
        let result = asks(std::slice::from_ref(&long), &format!("s{rounds}"));
        let message = asked(&server, &client, &result).await.json().await;
        if message["result"]["isError"] == true {
            break;
        }
        rounds += 1;
        assert!(rounds < 16, "there is no end to it");
    }
    assert!(rounds > 0);
    let line = gateway
        .audited("the refusal", |line| line["outcome"] == "refused")
        .await;
    assert_eq!(line["reason"], "capacity");
}
