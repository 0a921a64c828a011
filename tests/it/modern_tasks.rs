//! A legacy server runs a tool as a task and in no other way (2025-11-25 basic/utilities/tasks). A modern
//! client calls it as any other: the gateway creates the task, waits for its outcome, brings its
//! questions, and cancels it.

use crate::support::server::{Held, Seen};
use crate::support::{Gateway, Modern, Server, Setup, Stream, accepted, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A gateway with these settings, and a server that runs `long` as a task only.
async fn tasked(yaml: &str) -> (Server, Gateway, Modern) {
    tasked_with(yaml, "{}").await
}

/// The same, with these settings of the server.
async fn tasked_with(yaml: &str, more: &str) -> (Server, Gateway, Modern) {
    let server = Server::with(|habits| {
        habits.capabilities =
            r#"{"tools":{"listChanged":true},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#;
    })
    .await;
    let setup = Setup::new().server_with("alpha", &server, more);
    let gateway = setup.yaml(yaml).start().await;
    let client = Modern::new(&gateway, "alpha");
    (server, gateway, client)
}

/// The server lists its tools, of which this one runs as a task only, on two pages.
async fn lists(server: &Server, tool: &str) {
    let first = server.asked("tools/list").await;
    assert_eq!(first.seen.raw(&["params", "cursor"]), None);
    first.result(
        r#"{"tools":[{"name":"short","execution":{"taskSupport":"optional"}}],"nextCursor":"p2"}"#,
    );
    let second = server.asked("tools/list").await;
    assert_eq!(
        second.seen.raw(&["params", "cursor"]).as_deref(),
        Some("\"p2\"")
    );
    second.result(&format!(
        r#"{{"tools":[{{"name":"{tool}","execution":{{"taskSupport":"required"}}}}]}}"#
    ));
}

/// The task as the server's answer to a call.
fn task(id: &str) -> String {
    format!(
        r#"{{"task":{{"taskId":"{id}","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":60000}}}}"#
    )
}

/// The server makes a task of a call of `long`: the call, and the request for the outcome.
async fn creates(server: &Server, id: &str) -> (Seen, Held) {
    let held = server.called("long").await;
    let call = held.seen.clone();
    let ttl = call.raw(&["params", "task", "ttl"]);
    assert!(
        ttl.is_some_and(|ttl| ttl.parse::<u64>().is_ok()),
        "{}",
        call.text()
    );
    held.result(&task(id));
    let waiting = server.asked("tasks/result").await;
    assert_eq!(
        waiting.seen.raw(&["params", "taskId"]),
        Some(format!("\"{id}\""))
    );
    assert_eq!(waiting.seen.session(), call.session());
    (call, waiting)
}

/// The `_meta` of a message that belongs to a task.
fn related(id: &str) -> String {
    format!(r#""_meta":{{"{RELATED}":{{"taskId":"{id}"}}}}"#)
}

/// The server asks for a nick in the midst of a task.
async fn elicit(stream: &Stream, question: &str, id: &str) {
    let form = json::form("Who?");
    let params = format!("{},{}}}", &form[..form.len() - 1], related(id));
    stream
        .send(&json::request(question, "elicitation/create", &params))
        .await;
}

/// A task may ask as soon as it exists, which the gateway hears on another connection: before the question, after
/// it, or between the two requests that the call is made of. It is asked of the call that became the task,
/// never of another one, and is not refused.
#[tokio::test]
async fn a_task_that_asks_before_its_outcome_is_asked_for() {
    let (server, _gateway, client) = tasked("").await;
    let first = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-0").await;
    waiting.result(&json::text_result("done"));
    first.await.unwrap().next().await;
    let standalone = server.last_get_stream().await;
    for number in 1..20 {
        let (id, task_id) = (number.to_string(), format!("t-{number}"));
        let ask = client.call("1", "long", "{}");
        let going = ask.start();
        let held = server.called("long").await;
        // Younger, and what has no known cause would go to it.
        let other = client.call("2", "short", "{}").start();
        let elsewhere = server.called("short").await;
        if number % 2 == 0 {
            elicit(&standalone, &id, &task_id).await;
            // So long that the gateway has read it.
            client.works().await;
            held.result(&task(&task_id));
        } else {
            held.result(&task(&task_id));
            elicit(&standalone, &id, &task_id).await;
        }
        let waiting = server.asked("tasks/result").await;
        let round = going.await.unwrap().round().await;
        let going = ask
            .retry(&id, &round, &round.all(&accepted("Mira")))
            .start();
        let answer = json::parse(&server.answer_to(&id).await);
        assert_eq!(answer["result"]["content"]["nick"], "Mira", "{answer}");
        waiting.result(&json::text_result("done"));
        assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
        elsewhere.result(&json::text_result("other"));
        assert_eq!(json::text_of(&other.await.unwrap().next().await), "other");
    }
}

/// A question that names a task of which nobody knows is no reason to hold up what comes after it.
#[tokio::test]
async fn a_question_of_an_unknown_task() {
    let (server, _gateway, client) = tasked("").await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let (_, _waiting) = creates(&server, "t-1").await;
    let standalone = server.last_get_stream().await;
    elicit(&standalone, "7", "t-other").await;
    elicit(&standalone, "8", "t-1").await;
    let round = going.await.unwrap().round().await;
    assert!(!round.state.is_empty());
}

/// Policy knows the tool and its arguments, though the question comes in the request for the outcome.
#[tokio::test]
async fn policy_knows_which_tool_a_task_is_of() {
    let rules = r#"{ questions: { limits: { per_call: 1 }, rules: [ { when: 'tool == "long" && arguments.n == 1', decline: true } ] } }"#;
    let (server, gateway, client) = tasked_with("", rules).await;
    let going = client.call("1", "long", r#"{"n":1}"#).start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    let stream = waiting.stream();
    elicit(&stream, "7", "t-1").await;
    let answer = json::parse(&server.answer_to("7").await);
    assert_eq!(answer["result"]["action"], "decline", "{answer}");
    elicit(&stream, "8", "t-1").await;
    assert_eq!(server.error_to("8").await, -31006, "the second of one call");
    let ended = gateway
        .audited("the rule", |line| line["decided_by"] == "rule")
        .await;
    assert_eq!(ended["action"], "decline");
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}

/// The whole way without a question: an ordinary call with an ordinary result.
#[tokio::test]
async fn a_tool_that_runs_as_a_task_only() {
    let (server, _gateway, client) = tasked("").await;
    let going = client
        .call("1", "long", r#"{"n":1.10}"#)
        .token("\"t\"")
        .start();
    lists(&server, "long").await;
    let (call, waiting) = creates(&server, "t-1").await;
    assert_eq!(
        call.raw(&["params", "arguments"]).as_deref(),
        Some(r#"{"n":1.10}"#)
    );
    let stream = waiting.stream();
    let status = task("t-1").replace("{\"task\":", "");
    let status = json::notice("notifications/tasks/status", &status[..status.len() - 1]);
    stream.send(&status).await;
    let token = call.raw(&["params", "_meta", "progressToken"]).unwrap();
    let params = format!(
        r#"{{"progressToken":{token},"progress":1,{}}}"#,
        related("t-1")
    );
    stream
        .send(&json::notice("notifications/progress", &params))
        .await;
    let result = format!(r#"{{"content":[],"n":1.0,{}}}"#, related("t-1"));
    stream.result(&result).await;
    let mut reply = going.await.unwrap();
    let progress = reply.next().await;
    assert_eq!(
        json::raw(&progress, &["params"]).as_deref(),
        Some(r#"{"progressToken":"t","progress":1}"#),
        "the status of the task is not the client's"
    );
    let text = reply.next().await;
    let message = json::parse(&text);
    assert_eq!(message["result"]["resultType"], "complete");
    assert_eq!(json::raw(&text, &["result", "n"]).as_deref(), Some("1.0"));
    assert!(!text.contains("t-1") && !text.contains(RELATED), "{text}");
    // The list is known now, and other tools are called as ever.
    let going = client.call("2", "short", "{}").start();
    let held = server.called("short").await;
    assert_eq!(held.seen.raw(&["params", "task"]), None);
    held.result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.seen_method("tools/list").len(), 2);
}

/// A question of the task is the call's: the client is sent away with it, and the answer names the task
/// to the server.
#[tokio::test]
async fn a_question_in_the_midst_of_a_task() {
    let (server, _gateway, client) = tasked("").await;
    let ask = client.call("1", "long", "{}");
    let going = ask.start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    let stream = waiting.stream();
    elicit(&stream, "7", "t-1").await;
    let round = going.await.unwrap().round().await;
    assert_eq!(round.part(round.only(), "params"), json::form("Who?"));
    let going = ask
        .retry("2", &round, &round.all(&accepted("Mira")))
        .start();
    let answer = json::parse(&server.answer_to("7").await);
    assert_eq!(answer["result"]["content"]["nick"], "Mira");
    assert_eq!(answer["result"]["_meta"][RELATED]["taskId"], "t-1");
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    assert_eq!(server.seen_method("tools/call").len(), 1);
}

/// A question that names its task belongs to the call that became it, on whatever stream it comes.
#[tokio::test]
async fn a_question_of_a_task_on_other_streams() {
    let (server, _gateway, client) = tasked("").await;
    let ask = client.call("1", "long", "{}");
    let going = ask.start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    let stream = waiting.stream();
    // Younger, and what has no known cause would go to it.
    let other = client.call("2", "short", "{}").start();
    let elsewhere = server.called("short").await.stream();
    let standalone = server.last_get_stream().await;
    let mut going = going;
    for (number, from) in [(7, &standalone), (8, &elsewhere)] {
        let id = number.to_string();
        elicit(from, &id, "t-1").await;
        let round = going.await.unwrap().round().await;
        going = ask
            .retry(&id, &round, &round.all(&accepted("Mira")))
            .start();
        server.answer_to(&id).await;
    }
    stream.result(&json::text_result("done")).await;
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    elsewhere.result(&json::text_result("other")).await;
    assert_eq!(json::text_of(&other.await.unwrap().next().await), "other");
}

/// How the task ends is how the call ends: a tool that failed, or an error, of the task or of the
/// request for its outcome.
#[tokio::test]
async fn a_task_that_fails() {
    let (server, _gateway, client) = tasked("").await;
    let table = [
        (
            r#""result":{"isError":true,"content":[{"type":"text","text":"it failed"}]}"#,
            "it failed",
        ),
        (
            r#""error":{"code":-32603,"message":"it broke"}"#,
            "it broke",
        ),
        (
            r#""error":{"code":-32602,"message":"no such task"}"#,
            "no such task",
        ),
    ];
    for (number, (body, reads)) in table.into_iter().enumerate() {
        let going = client.call("1", "long", "{}").start();
        if number == 0 {
            lists(&server, "long").await;
        }
        let (_, waiting) = creates(&server, "t-1").await;
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},{body}}}"#, waiting.id());
        waiting.respond(200, "application/json", &body);
        let mut reply = going.await.unwrap();
        let text = reply.next().await;
        assert_eq!(reply.status, 200);
        assert!(text.contains(reads), "{text}");
        assert_eq!(json::id(&text), "1");
    }
    client.works().await;
    assert!(server.seen_method("tasks/cancel").is_empty());
}

/// The connection breaks on which the outcome was to come: it is asked for again, and the call is not
/// made again. A server with which that happens all the time is told that nobody waits any more.
#[tokio::test]
async fn a_task_whose_connection_breaks() {
    let (server, _gateway, client) = tasked("").await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    waiting.stream().abort().await;
    let again = server.asked("tasks/result").await;
    assert_eq!(
        again.seen.raw(&["params", "taskId"]).as_deref(),
        Some("\"t-1\"")
    );
    again.result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");

    let going = client.call("1", "long", "{}").start();
    let (_, mut waiting) = creates(&server, "t-2").await;
    for _ in 0..3 {
        waiting.stream().abort().await;
        waiting = server.asked("tasks/result").await;
    }
    waiting.stream().abort().await;
    server.asked("tasks/cancel").await.result(&task("t-2"));
    let message = going.await.unwrap().json().await;
    assert_eq!(message["error"]["code"], -32603, "{message}");
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// The client leaves: the task is cancelled as a task, and then its question is answered.
#[tokio::test]
async fn a_client_that_leaves_cancels_the_task() {
    let (server, _gateway, client) = tasked("timeouts: { question: 1s }").await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    let stream = waiting.stream();
    going.abort();
    drop(going.await);
    let cancel = server.asked("tasks/cancel").await;
    assert_eq!(
        cancel.seen.raw(&["params", "taskId"]).as_deref(),
        Some("\"t-1\"")
    );
    assert_eq!(cancel.seen.session(), stream.seen.session());
    cancel.result(&task("t-1"));
    stream.left().await;

    // The same when nobody comes back to a question.
    let going = client.call("1", "long", "{}").start();
    let (_, waiting) = creates(&server, "t-2").await;
    let stream = waiting.stream();
    elicit(&stream, "7", "t-2").await;
    going.await.unwrap().round().await;
    let cancel = server.asked("tasks/cancel").await;
    assert_eq!(
        cancel.seen.raw(&["params", "taskId"]).as_deref(),
        Some("\"t-2\"")
    );
    assert!(
        server.answers().is_empty(),
        "a handler must not take absence for a reason to go on"
    );
    cancel.result(&task("t-2"));
    assert_eq!(
        server.answer_to("7").await,
        json::result("7", r#"{"action":"cancel"}"#)
    );
}

/// The client leaves while the task is being created: it is cancelled when its id is known.
#[tokio::test]
async fn a_client_that_leaves_before_the_task_has_an_id() {
    let (server, _gateway, client) = tasked("").await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let held = server.called("long").await;
    let call = held.id();
    going.abort();
    drop(going.await);
    client.works().await;
    held.result(&task("t-1"));
    let cancel = server.asked("tasks/cancel").await;
    assert_eq!(
        cancel.seen.raw(&["params", "taskId"]).as_deref(),
        Some("\"t-1\"")
    );
    cancel.result(&task("t-1"));
    client.works().await;
    let cancels = server.seen_method("notifications/cancelled");
    let named = |seen: &Seen| seen.raw(&["params", "requestId"]) == Some(call.clone());
    assert!(
        !cancels.iter().any(named),
        "a task is not cancelled by a notification"
    );
}

/// The gateway ends while a task runs whose client still waits.
#[tokio::test]
async fn the_gateway_ends_in_the_midst_of_a_task() {
    let (server, mut gateway, client) = tasked("timeouts: { shutdown: 500ms }").await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    gateway.terminate().await;
    let cancel = server.asked("tasks/cancel").await;
    assert_eq!(
        cancel.seen.raw(&["params", "taskId"]).as_deref(),
        Some("\"t-1\"")
    );
    assert_eq!(cancel.seen.session(), waiting.seen.session());
    cancel.result(&task("t-1"));
    assert!(gateway.exit().await.success());
    drop(going.await);
}

/// A task takes one place among the calls that run, from its beginning to its end.
#[tokio::test]
async fn a_task_holds_one_place() {
    let yaml = "limits: { per_principal: { concurrent: 1, requests: 3/h, burst: 3 } }";
    let (server, _gateway, client) = tasked(yaml).await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    let (_, code, _) = client.call("2", "short", "{}").refused().await;
    assert_eq!(code, -31004);
    waiting.result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
    client.works().await;
    client.works().await;
}

/// A server that answers the call at once, task or not, has answered.
#[tokio::test]
async fn a_server_that_makes_no_task_of_it() {
    let (server, _gateway, client) = tasked("").await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let held = server.called("long").await;
    held.result(&json::text_result("at once"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "at once");
    assert!(server.seen_method("tasks/result").is_empty());
}

/// What runs as a task is read again when the server says that its tools have changed; a server that
/// gives no list, or never spoke of tasks, is called as ever.
#[tokio::test]
async fn the_list_of_tools_changes() {
    let (server, _gateway, client) = tasked("").await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "other").await;
    let held = server.called("long").await;
    assert_eq!(held.seen.raw(&["params", "task"]), None);
    held.result(&json::text_result("plain"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "plain");

    // In the midst of a call, so that it has been read when the call is over.
    let going = client.call("1", "short", "{}").start();
    let stream = server.called("short").await.stream();
    let changed = json::notice("notifications/tools/list_changed", "{}");
    stream.send(&changed).await;
    stream.result(&json::text_result("done")).await;
    going.await.unwrap().next().await;
    let going = client.call("1", "long", "{}").start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    waiting.result(&json::text_result("as a task"));
    assert_eq!(
        json::text_of(&going.await.unwrap().next().await),
        "as a task"
    );

    let (server, _gateway, client) = tasked("").await;
    let going = client.call("1", "long", "{}").start();
    server
        .asked("tools/list")
        .await
        .respond(500, "text/plain", "");
    let held = server.called("long").await;
    assert_eq!(held.seen.raw(&["params", "task"]), None);
    held.result("{}");
    assert_eq!(going.await.unwrap().status, 200);

    let (server, _gateway, client) = crate::support::modern().await;
    client.works().await;
    assert!(server.seen_method("tools/list").is_empty());
}

/// A task that ends with addresses to visit is a task again when the call is made again.
#[tokio::test]
async fn a_task_after_a_visit() {
    let (server, _gateway, client) = tasked("").await;
    let ask = client.call("1", "long", "{}");
    let going = ask.start();
    lists(&server, "long").await;
    let (_, waiting) = creates(&server, "t-1").await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32042,"message":"log in","data":{{"elicitations":[{{"mode":"url","elicitationId":"e","url":"https://a.example.test","message":"m"}}]}}}}}}"#,
        waiting.id()
    );
    waiting.respond(200, "application/json", &body);
    let round = going.await.unwrap().round().await;
    let going = ask
        .retry("2", &round, &round.all(r#"{"action":"accept"}"#))
        .start();
    let (_, waiting) = creates(&server, "t-2").await;
    waiting.result(&json::text_result("done"));
    assert_eq!(json::text_of(&going.await.unwrap().next().await), "done");
}
