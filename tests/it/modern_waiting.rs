//! Questions of a modern server wait for a modern client from the moment in which it is sent away with them,
//! until it comes back or its time is over: so long they count, and each has one end on record.

use serde_json::Value;

use crate::support::modern_server::complete;
use crate::support::{Gateway, Modern, Reply, Round, Server, Setup, accepted, json};

/// A gateway with a modern server behind it whose `questions` are these (flow YAML), and a client that can be
/// asked everything.
async fn with(questions: &str, yaml: &str) -> (Server, Gateway, Modern) {
    let server = Server::with(|habits| habits.modern = true).await;
    let more = format!("{{ era: modern, questions: {questions} }}");
    let setup = Setup::new().server_with("alpha", &server, &more);
    let gateway = setup.yaml(yaml).start().await;
    let client = Modern::new(&gateway, "alpha");
    (server, gateway, client)
}

/// A result that asks for a nickname under each key.
fn asks(keys: &[&str], state: &str) -> String {
    let form = json::form("Who?");
    let entries: Vec<_> = keys
        .iter()
        .map(|key| format!(r#""{key}":{{"method":"elicitation/create","params":{form}}}"#))
        .collect();
    format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":"{state}"}}"#,
        entries.join(",")
    )
}

/// The client calls, and its server asks this.
async fn asked(server: &Server, client: &Modern, result: &str) -> Reply {
    let call = client.call("1", "ask", "{}").start();
    server.called("ask").await.result(result);
    call.await.unwrap()
}

/// The client is sent away with a question.
async fn away(server: &Server, client: &Modern, state: &str) -> Round {
    let reply = asked(server, client, &asks(&["k"], state)).await;
    { reply }.round().await
}

/// The client comes back with these answers, and the server is done.
async fn done(server: &Server, client: &Modern, round: &Round, answers: &str) {
    let retry = client.call("1", "ask", "{}").retry("2", round, answers);
    let retry = retry.start();
    server.called("ask").await.result(&complete("done"));
    assert_eq!(json::text_of(&retry.await.unwrap().next().await), "done");
}

/// The call ends since it asks too much; the reason on record is the so-many-th of its kind.
async fn too_many(server: &Server, client: &Modern, gateway: &Gateway, refused: usize) -> String {
    let mut reply = asked(server, client, &asks(&["k"], "too many")).await;
    let text = json::text_of(&reply.next().await);
    assert!(text.contains("more than the gateway allows"), "{text}");
    let fits = |line: &Value| line["type"] == "question.answered" && line["outcome"] == "refused";
    let line = gateway
        .audited_times("the refusal", refused, fits)
        .await
        .remove(refused - 1);
    assert_eq!(line["decided_by"], "limits");
    line["reason"].as_str().unwrap().to_owned()
}

/// The ends of questions that are on record, and their reasons.
async fn ends(gateway: &Gateway, so_many: usize) -> Vec<Value> {
    let ended = |line: &Value| line["type"] == "question.answered";
    gateway
        .audited_times("the ends of questions", so_many, ended)
        .await
}

#[tokio::test]
async fn what_a_client_is_away_with_counts_until_it_comes_back() {
    let (server, gateway, client) = with("{ limits: { pending: 2 } }", "").await;
    let first = away(&server, &client, "s1").await;
    let _second = away(&server, &client, "s2").await;
    let why = too_many(&server, &client, &gateway, 1).await;
    assert_eq!(why, "question_pending");
    done(&server, &client, &first, &first.all(&accepted("ada"))).await;
    away(&server, &client, "s3").await;
    let why = too_many(&server, &client, &gateway, 2).await;
    assert_eq!(why, "question_pending");
}

#[tokio::test]
async fn a_round_with_more_questions_than_may_wait_is_put_to_nobody() {
    let (server, gateway, client) = with("{ limits: { pending: 2 } }", "").await;
    let mut reply = asked(&server, &client, &asks(&["a", "b", "c"], "s")).await;
    let text = json::text_of(&reply.next().await);
    assert!(text.contains("more than the gateway allows"), "{text}");
    let asked: Value = ends(&gateway, 1).await.remove(0);
    assert_eq!(asked["question"]["id"], r#""c""#);
    // Nothing of it waits.
    away(&server, &client, "s1").await;
    away(&server, &client, "s2").await;
}

#[tokio::test]
async fn a_person_is_asked_no_more_than_they_may_whichever_server_asks() {
    let [alpha, beta] = [
        Server::with(|habits| habits.modern = true).await,
        Server::with(|habits| habits.modern = true).await,
    ];
    let setup = Setup::new()
        .server_with("alpha", &alpha, "{ era: modern }")
        .server_with("beta", &beta, "{ era: modern }")
        .yaml("limits: { per_principal: { questions: 1 } }");
    let gateway = setup.start().await;
    let [first, second] = ["alpha", "beta"].map(|name| Modern::new(&gateway, name));
    let round = away(&alpha, &first, "s1").await;
    let why = too_many(&beta, &second, &gateway, 1).await;
    assert_eq!(why, "capacity");
    done(&alpha, &first, &round, &round.all(&accepted("ada"))).await;
    away(&beta, &second, "s2").await;
}

#[tokio::test]
async fn a_server_that_asks_too_fast_is_refused() {
    let (server, gateway, client) = with("{ limits: { rate: 2/h } }", "").await;
    for state in ["s1", "s2"] {
        let round = away(&server, &client, state).await;
        done(&server, &client, &round, &round.all(&accepted("ada"))).await;
    }
    let why = too_many(&server, &client, &gateway, 1).await;
    assert_eq!(why, "question_rate");
}

#[tokio::test]
async fn what_a_rule_answers_does_not_wait() {
    let rules = "{ limits: { pending: 1 }, rules: [ { when: 'true', decline: true } ] }";
    let (server, _gateway, client) = with(rules, "").await;
    for _ in 0..3 {
        let call = client.call("1", "ask", "{}").start();
        server.called("ask").await.result(&asks(&["k"], "s"));
        server.called("ask").await.result(&complete("done"));
        assert_eq!(json::text_of(&call.await.unwrap().next().await), "done");
    }
}

/// What is asked for again goes on waiting, the rest does not.
#[tokio::test]
async fn what_does_not_fit_waits_on() {
    let (server, gateway, client) = with("{ limits: { pending: 2 } }", "").await;
    let reply = asked(&server, &client, &asks(&["a", "b"], "s")).await;
    let round = { reply }.round().await;
    let wrong = r#"{"action":"accept","content":{}}"#;
    let answers = format!(r#"{{"a":{},"b":{wrong}}}"#, accepted("ada"));
    let retry = client.call("1", "ask", "{}").retry("2", &round, &answers);
    let again = retry.send().await.round().await;
    assert_eq!(again.only(), "b");
    away(&server, &client, "s1").await;
    let why = too_many(&server, &client, &gateway, 1).await;
    assert_eq!(why, "question_pending");
    done(&server, &client, &again, &again.all(&accepted("bob"))).await;
    away(&server, &client, "s2").await;
}

/// The server hears what there is. What it still needs it asks for again, and that is another question.
#[tokio::test]
async fn who_comes_back_with_a_part_waits_for_nothing() {
    let (server, _gateway, client) = with("{ limits: { pending: 2 } }", "").await;
    let reply = asked(&server, &client, &asks(&["a", "b"], "s")).await;
    let round = { reply }.round().await;
    let answers = format!(r#"{{"a":{}}}"#, accepted("ada"));
    done(&server, &client, &round, &answers).await;
    away(&server, &client, "s1").await;
    away(&server, &client, "s2").await;
}

#[tokio::test]
async fn what_nobody_comes_back_with_ends_with_its_time() {
    let times = "timeouts: { question: 300ms, resume: 400ms }";
    let (server, gateway, client) = with("{ limits: { pending: 1 } }", times).await;
    let late = away(&server, &client, "s1").await;
    let end = ends(&gateway, 1).await.remove(0);
    assert_eq!(
        (&end["outcome"], &end["reason"], &end["decided_by"]),
        (
            &"timeout".into(),
            &"nobody_came_back".into(),
            &"timeout".into()
        )
    );
    assert_eq!(end["question"]["id"], r#""k""#);
    assert!(end["waited_ms"].is_number(), "{end}");
    let _next = away(&server, &client, "s2").await;
    // Who comes too late has no question any more, and the server decides.
    done(&server, &client, &late, &late.all(&accepted("ada"))).await;
    gateway
        .audited("the late answer", |line| line["type"] == "answer.ignored")
        .await;
}

/// A server that has one state for all: the client calls anew, and the old question is nobody's.
#[tokio::test]
async fn who_calls_anew_is_not_held_up_by_the_call_before() {
    let (server, gateway, client) = with("{ limits: { pending: 1 } }", "").await;
    let result = asks(&["k"], "same");
    let first = asked(&server, &client, &result).await;
    { first }.round().await;
    let second = asked(&server, &client, &result).await;
    let round = { second }.round().await;
    let end = ends(&gateway, 1).await.remove(0);
    assert_eq!(
        (&end["outcome"], &end["reason"]),
        (&"lost".into(), &"replaced".into())
    );
    done(&server, &client, &round, &round.all(&accepted("ada"))).await;
    assert_eq!(ends(&gateway, 2).await[1]["outcome"], "ok");
}

/// A hook ends the request: no other question of it goes on waiting, nor has another end later.
#[tokio::test]
async fn with_a_request_that_is_refused_all_its_questions_end() {
    let refuse =
        "{ limits: { pending: 2 }, hooks: { after: { command: [\"false\"], on_error: refuse } } }";
    let times = "timeouts: { question: 500ms, resume: 400ms }";
    let (server, gateway, client) = with(refuse, times).await;
    let reply = asked(&server, &client, &asks(&["a", "b"], "s")).await;
    let round = { reply }.round().await;
    let retry = client
        .call("1", "ask", "{}")
        .retry("2", &round, &round.all(&accepted("ada")));
    let result = retry.send().await.json().await;
    assert_eq!(result["result"]["isError"], true, "{result}");
    let of_both = ends(&gateway, 2).await;
    let outcomes = [&of_both[0]["outcome"], &of_both[1]["outcome"]];
    assert_eq!(outcomes, ["refused", "cancelled"]);
    // Two more have room, and end by the clock; the first two do not end once more.
    away(&server, &client, "s1").await;
    away(&server, &client, "s2").await;
    let all = ends(&gateway, 4).await;
    assert!(
        all[2..].iter().all(|line| line["outcome"] == "timeout"),
        "{all:?}"
    );
}

#[tokio::test]
async fn a_gateway_that_ends_leaves_no_question_without_an_end() {
    let (server, mut gateway, client) = with("{ }", "").await;
    away(&server, &client, "s1").await;
    let round = away(&server, &client, "s2").await;
    done(&server, &client, &round, &round.all(&accepted("ada"))).await;
    gateway.terminate().await;
    assert_eq!(gateway.exit().await.code(), Some(0));
    let ends = ends(&gateway, 2).await;
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert_eq!(ends[0]["outcome"], "ok");
    assert_eq!(
        (&ends[1]["outcome"], &ends[1]["reason"]),
        (&"lost".into(), &"shutdown".into())
    );
}
