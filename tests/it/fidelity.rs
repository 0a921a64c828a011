//! Fidelity: what the gateway has no business with passes byte for byte: unknown members, the order
//! of keys, the spelling of numbers and escapes, `_meta`.

use crate::support::client::initialize;
use crate::support::{Client, EVERYTHING, Server, Setup, json, pair, triple};

/// JSON objects that a parser would write differently, or lose something of.
const ODD: [&str; 10] = [
    r#"{"z":1,"a":2,"m":{"y":1,"b":2}}"#,
    r#"{"n":[1.0,1e5,1E+2,-0,0.10,123456789012345678901234567890,1.7976931348623157e308,1e400]}"#,
    r#"{"u":"\u00e9\ud83d\ude00\/\u0041 \b\f","raw":"é😀"}"#,
    r#"{"lone":"\ud800"}"#,
    r#"{"_meta":{"io.example/trace":"00-ab","x":null,"":{}},"":1}"#,
    r#"{"null":null,"false":false,"empty":{},"list":[[],[[]]]}"#,
    r#"{"twice":1,"twice":2}"#,
    r#"{ "spaces" : [ 1 , 2 ] , "tab":	"x" }"#,
    r#"{"id":"not the id","method":"no","jsonrpc":"1.0","result":{},"error":null}"#,
    r##"{"__proto__":{"a":1},"constructor":"x","$ref":"#/a","resultType":"complete"}"##,
];

/// Requests and their results, as JSON and as events.
#[tokio::test]
async fn requests_and_results() {
    let (server, _gateway, session) = triple().await;
    for odd in ODD {
        for streamed in [false, true] {
            let request = format!(
                r#"{{"extra":{odd},"method":"tools/call","params":{{"arguments":{odd},"name":"slow","_meta":{odd},"more":1.0}},"id":41,"jsonrpc":"2.0"}}"#
            );
            let call = session.start(request.clone());
            let held = server.called("slow").await;
            json::same_but_id(held.seen.text(), &request);
            let answer = format!(
                r#"{{"result":{{"content":[],"structuredContent":{odd},"_meta":{odd}}},"id":{},"extra":{odd},"jsonrpc":"2.0"}}"#,
                held.id()
            );
            if streamed {
                held.stream().send(&answer).await;
            } else {
                held.respond(200, "application/json", &answer);
            }
            let mut reply = call.await.unwrap();
            let seen = reply.next().await;
            json::same_but_id(&seen, &answer);
            assert_eq!(json::id(&seen), "41");
        }
    }
}

/// Errors.
#[tokio::test]
async fn errors() {
    let (server, _gateway, session) = triple().await;
    for odd in ODD {
        let call = session.start(json::call("\"e\"", "slow", "{}"));
        let held = server.called("slow").await;
        let answer = format!(
            r#"{{"jsonrpc":"2.0","error":{{"data":{odd},"message":"m\u00fc","code":-32000.0}},"id":{}}}"#,
            held.id()
        );
        held.respond(200, "application/json", &answer);
        json::same_but_id(&call.await.unwrap().next().await, &answer);
    }
}

/// Questions and their answers.
#[tokio::test]
async fn questions_and_answers() {
    let server = Server::start().await;
    let many = "{ questions: { limits: { per_call: off } } }";
    let gateway = Setup::new()
        .server_with("alpha", &server, many)
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    let mut reply = call.await.unwrap();
    for (number, odd) in ODD.iter().enumerate() {
        for method in [
            "elicitation/create",
            "sampling/createMessage",
            "roots/list",
            "vendor/x",
        ] {
            let question = format!(
                r#"{{"extra":{odd},"params":{{"requestedSchema":{{"properties":{{}},"type":"object"}},"message":"m","vendor":{odd},"_meta":{odd}}},"method":"{method}","id":"{number}-{method}","jsonrpc":"2.0"}}"#
            );
            stream.send(&question).await;
            let seen = reply.next().await;
            json::same_but_id(&seen, &question);
            // What a form has no field for is no answer to it.
            let content = if method == "elicitation/create" {
                "{ }"
            } else {
                odd
            };
            let answer = format!(
                r#"{{"extra":{odd},"result":{{"content":{content},"action":"accept","vendor":{odd},"_meta":{odd}}},"id":{},"jsonrpc":"2.0"}}"#,
                json::id(&seen)
            );
            assert_eq!(session.say(answer.clone()).await, 202);
            let arrived = server.answer_to(&format!("\"{number}-{method}\"")).await;
            json::same_but_id(&arrived, &answer);
        }
    }
    stream.result("{}").await;
    reply.next().await;
}

/// Notices, both ways.
#[tokio::test]
async fn notices() {
    let (server, _gateway, session) = triple().await;
    let mut listening = session.listen().await;
    let up = server.last_get_stream().await;
    for odd in ODD {
        let notice = format!(
            r#"{{"params":{odd},"method":"notifications/vendor","x":{odd},"jsonrpc":"2.0"}}"#
        );
        up.send(&notice).await;
        assert_eq!(listening.next().await, notice);
        assert_eq!(session.say(notice.clone()).await, 202);
        server.sees(&notice, |seen| seen.text() == notice).await;
    }
}

/// The handshake itself: unknown capabilities, icons, instructions.
#[tokio::test]
async fn the_handshake() {
    let (server, gateway) = pair().await;
    server.change(|habits| habits.hold_initialize = true);
    for odd in ODD {
        let client = Client::new(&gateway, "alpha");
        let request = initialize(
            "2025-11-25",
            &format!(r#"{{"experimental":{odd},"vendor":{{}}}}"#),
        )
        .replacen(r#""params":{"#, &format!(r#""params":{{"_meta":{odd},"#), 1);
        let body = request.clone();
        let opening = tokio::spawn(async move { client.post(body).await });
        let held = server.asked("initialize").await;
        json::same_but_id(held.seen.text(), &request);
        let answer = format!(
            r#"{{"id":{},"jsonrpc":"2.0","result":{{"serverInfo":{{"version":"1","name":"s","icons":[{odd}]}},"instructions":"\u00e9","capabilities":{{"tools":{{}},"experimental":{odd}}},"protocolVersion":"2025-11-25"}}}}"#,
            held.id()
        );
        held.respond(200, "application/json", &answer);
        json::same_but_id(&opening.await.unwrap().next().await, &answer);
    }
}

/// White space around and inside messages is theirs, too: only event streams force a single line.
#[tokio::test]
async fn messages_over_several_lines() {
    let (server, _gateway, session) = triple().await;
    let request = "\n{\r\n \"jsonrpc\": \"2.0\",\n\t\"id\" : 5 ,\n \"method\": \"tools/call\",\n \"params\": {\"name\": \"slow\"}\n}\n";
    let call = session.start(request.to_owned());
    let held = server.called("slow").await;
    assert_eq!(
        json::parse(held.seen.text())["params"],
        json::parse(request)["params"]
    );
    let answer = format!(
        "{{\n  \"jsonrpc\": \"2.0\",\n  \"id\": {},\n  \"result\": {{\n  \"a\": [\n1.0\n] }}\n}}\n",
        held.id()
    );
    held.respond(200, "application/json", &answer);
    let mut only_stream = call.await.unwrap();
    let seen = only_stream.next().await;
    assert_eq!(json::parse(&seen)["result"], json::parse(&answer)["result"]);
    assert_eq!(json::id(&seen), "5");
    // As an event it must still be one message.
    let mut streaming = session.clone();
    streaming.client = session.client.with("accept", "text/event-stream");
    let call = streaming.start(json::call("6", "slow", "{}"));
    let held = server.called("slow").await;
    let answer = answer.replacen(
        &format!("\"id\": {}", json::id(&answer)),
        &format!("\"id\": {}", held.id()),
        1,
    );
    held.respond(200, "application/json", &answer);
    let mut reply = call.await.unwrap();
    assert_eq!(reply.json().await["id"], 6);
    reply.ends().await;
}
