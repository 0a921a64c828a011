//! How long a server may take: to begin its answer, between two messages of it, and in all. Each limit ends in an
//! error that names the server, and cancels the request there. A person's time is not the server's.

use std::time::Duration;

use crate::support::{
    Client, EVERYTHING, Gateway, Modern, NOTHING, Reply, Server, Setup, accepted, json,
};

/// A gateway whose server `alpha` has these timeouts, which are not those of all.
async fn impatient(server: &Server, timeouts: &str) -> Gateway {
    let more = format!("{{ timeouts: {timeouts} }}");
    let setup = Setup::new().server_with("alpha", server, &more);
    setup
        .yaml("timeouts: { headers: 30s, idle: 30s, call: 35s }")
        .start()
        .await
}

/// The next message that is no progress, which must be the error for a server that is late; its text.
async fn late(reply: &mut Reply) -> String {
    let message = loop {
        let message = reply.json().await;
        if message["method"] != "notifications/progress" {
            break message;
        }
    };
    let error = &message["error"];
    assert_eq!(error["code"], -31002, "{message}");
    assert_eq!(error["data"]["reason"], "upstream_timeout", "{message}");
    assert_eq!(error["data"]["upstream"], "alpha", "{message}");
    let text = error["message"].as_str().unwrap();
    assert!(text.contains(r#"the server "alpha""#), "{text}");
    text.to_owned()
}

/// The server hears that a request is cancelled, by the id that it knows.
async fn is_cancelled(server: &Server, id: &str) {
    let seen = server.notice("notifications/cancelled").await;
    assert_eq!(seen.raw(&["params", "requestId"]).as_deref(), Some(id));
}

/// Nothing comes, not even a head.
#[tokio::test]
async fn an_answer_that_does_not_begin() {
    let server = Server::start().await;
    let gateway = impatient(&server, "{ headers: 300ms }").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let call = session.start(json::call("1", "slow", "{}"));
    let held = server.called("slow").await;
    let mut reply = call.await.unwrap();
    let text = late(&mut reply).await;
    assert!(text.contains("did not answer within 300ms"), "{text}");
    is_cancelled(&server, &held.id()).await;
    session.works().await;
    let record = |line: &serde_json::Value| line["target"] == "slow";
    let record = gateway.audited("the call", record).await;
    assert_eq!(record["outcome"], "timeout");
}

/// It begins, and then nothing more comes.
#[tokio::test]
async fn an_answer_that_falls_silent() {
    let server = Server::start().await;
    let gateway = impatient(&server, "{ idle: 300ms }").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    let text = late(&mut reply).await;
    assert!(text.contains("said nothing more within 300ms"), "{text}");
    is_cancelled(&server, &stream.id).await;
    stream.left().await;
}

/// Each message of the call gives it time for the next, whichever stream it comes on; that of others does not.
#[tokio::test]
async fn progress_and_other_messages_are_signs_of_life() {
    let server = Server::start().await;
    let gateway = impatient(&server, "{ idle: 3s }").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let listening = server.last_get_stream().await;
    let call = |id| {
        let params =
            format!(r#"{{"name":"slow","arguments":{{}},"_meta":{{"progressToken":"{id}"}}}}"#);
        session.start(json::request(&format!("\"{id}\""), "tools/call", &params))
    };
    let (lively, silent) = (call("lively"), call("silent"));
    let (one, other) = (server.called("slow").await, server.called("slow").await);
    let is_lively = one.seen.text().contains("lively");
    let (one, other) = if is_lively {
        (one, other)
    } else {
        (other, one)
    };
    let (lively_stream, silent_stream) = (one.stream(), other.stream());
    let (mut lively, mut silent) = (lively.await.unwrap(), silent.await.unwrap());
    // So paced that the whole takes longer than one silence may.
    for number in 1..=6 {
        let progress = format!(r#"{{"progressToken":"lively","progress":{number}}}"#);
        let progress = json::notice("notifications/progress", &progress);
        let log = json::notice("notifications/message", r#"{"level":"info","data":1}"#);
        match number % 3 {
            0 => listening.send(&progress).await,
            1 => lively_stream.send(&progress).await,
            _ => lively_stream.send(&log).await,
        }
        tokio::time::sleep(Duration::from_millis(800)).await;
    }
    lively_stream.result(&json::text_result("alive")).await;
    let text = loop {
        let message = lively.next().await;
        if json::method(&message).is_none() {
            break json::text_of(&message);
        }
    };
    assert_eq!(text, "alive");
    late(&mut silent).await;
    is_cancelled(&server, &silent_stream.id).await;
}

/// Signs of life are no life for ever: the whole has its limit, too.
#[tokio::test]
async fn progress_does_not_prolong_the_whole() {
    let server = Server::start().await;
    let gateway = impatient(&server, "{ call: 1s }").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let call = session.start(json::call("1", "slow", "{}"));
    let stream = server.called("slow").await.stream();
    let mut reply = call.await.unwrap();
    let busy = async {
        loop {
            let log = json::notice("notifications/message", r#"{"level":"info","data":1}"#);
            let _left = stream.try_send(&log);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let text = async {
        loop {
            let message = reply.next().await;
            if json::method(&message).is_none() {
                break message;
            }
        }
    };
    let message = tokio::select! {
        message = text => message,
        () = busy => unreachable!("it goes on for ever"),
    };
    assert_eq!(json::parse(&message)["error"]["code"], -31002, "{message}");
    is_cancelled(&server, &stream.id).await;
}

/// A person thinks for longer than the server may take, whichever stream the question came on.
#[tokio::test]
async fn the_time_in_which_a_person_thinks_does_not_count() {
    let server = Server::start().await;
    let gateway = impatient(&server, "{ headers: 5s, idle: 5s, call: 6s }").await;
    let calls = [false, true].map(|own| thinks(&server, &gateway, own));
    futures_util::future::join_all(calls).await;
}

async fn thinks(server: &Server, gateway: &Gateway, on_its_own: bool) {
    let session = Client::new(gateway, "alpha").open(EVERYTHING).await;
    let mut listening = session.listen().await;
    let tool = if on_its_own { "lone" } else { "tied" };
    let call = session.start(json::call("1", tool, "{}"));
    let stream = server.called(tool).await.stream();
    let mut reply = call.await.unwrap();
    let question = json::request("7", "elicitation/create", &json::form("Who?"));
    let question = if on_its_own {
        let session = stream.seen.session().to_owned();
        let own = server.get_stream(&session).await;
        own.send(&question).await;
        let question = listening.question("elicitation/create").await;
        drop(own);
        question
    } else {
        stream.send(&question).await;
        reply.question("elicitation/create").await
    };
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(session.answer(&question, &accepted("mira")).await, 202);
    stream.result(&json::text_result("thank you")).await;
    assert_eq!(json::text_of(&reply.next().await), "thank you");
}

/// A modern client at a legacy server.
#[tokio::test]
async fn a_modern_client_is_told_the_same() {
    let server = Server::start().await;
    let gateway = impatient(&server, "{ headers: 300ms, idle: 300ms }").await;
    let client = Modern::new(&gateway, "alpha");
    let going = client.call("1", "slow", "{}").start();
    let held = server.called("slow").await;
    late(&mut going.await.unwrap()).await;
    is_cancelled(&server, &held.id()).await;
    let going = client.call("2", "silent", "{}").start();
    let stream = server.called("silent").await.stream();
    late(&mut going.await.unwrap()).await;
    stream.left().await;
}

/// Clients of both eras at a modern server, which learns of it by the end of the request.
#[tokio::test]
async fn a_modern_server_that_is_late() {
    let server = Server::with(|habits| habits.modern = true).await;
    let gateway = impatient(&server, "{ headers: 300ms, idle: 300ms }").await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let client = Modern::new(&gateway, "alpha");
    for modern in [false, true] {
        let call = |tool: &str| {
            if modern {
                client.call("1", tool, "{}").start()
            } else {
                session.start(json::call("1", tool, "{}"))
            }
        };
        let going = call("slow");
        let mut held = server.called("slow").await;
        late(&mut going.await.unwrap()).await;
        held.abandoned().await;
        let going = call("silent");
        let stream = server.called("silent").await.stream();
        late(&mut going.await.unwrap()).await;
        stream.left().await;
    }
}
