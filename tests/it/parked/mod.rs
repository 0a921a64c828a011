//! A legacy server asks in the midst of a call, and its client is modern: the client is sent away
//! with the questions, the call stays in flight, and goes on when the client comes back.
//!
//! `rounds` is how it goes, `retries` what a client may do wrong, `ends` how it ends otherwise, `kinds`
//! which questions find a client at all, `visits` what a server wants visited before, `lost` what is not
//! read or said twice, `bounds` what is too much.

mod bounds;
mod ends;
mod kinds;
mod lost;
mod retries;
mod rounds;
mod visits;

use crate::support::{Ask, Gateway, Modern, Round, Server, Setup, Stream, json};

/// A server whose calls may cause any number of questions.
async fn unlimited() -> (Server, Gateway, Modern) {
    let server = Server::start().await;
    let more = "{ questions: { limits: { per_call: off } } }";
    let gateway = Setup::new()
        .server_with("alpha", &server, more)
        .start()
        .await;
    let client = Modern::new(&gateway, "alpha");
    (server, gateway, client)
}

/// A call whose client is away with one question, which the server knows as `7`.
struct Parked {
    stream: Stream,
    ask: Ask,
    round: Round,
}

async fn parked(server: &Server, client: &Modern) -> Parked {
    park(server, client.call("1", "ask", r#"{"n":2,"m":{"a":1.0}}"#)).await
}

/// Sends this call of `ask`, and has the server ask `Who?` in it.
async fn park(server: &Server, ask: Ask) -> Parked {
    let going = ask.start();
    let stream = server.called("ask").await.stream();
    elicit(&stream, "7", "Who?").await;
    let round = going.await.unwrap().round().await;
    Parked { stream, ask, round }
}

/// The server asks for a nick, with this text and under this id (JSON).
async fn elicit(stream: &Stream, id: &str, message: &str) {
    let question = json::request(id, "elicitation/create", &json::form(message));
    stream.send(&question).await;
}

/// The server asks two questions, `1` and `2`, in one chunk: no clock of the machine lies between them.
async fn elicit_both(stream: &Stream) {
    let both = ["1", "2"].map(|id| {
        let question = json::request(id, "elicitation/create", &json::form(id));
        format!("data: {question}\n\n")
    });
    stream.bytes(&both.concat()).await;
}

/// Waits until the gateway knows of so many questions.
async fn asked(gateway: &Gateway, times: usize) {
    let fits = |line: &serde_json::Value| line["type"] == "question.asked";
    gateway.audited_times("question.asked", times, fits).await;
}

/// How many answers the server got to the question that it knows as `id` (JSON).
fn answers_to(server: &Server, id: &str) -> usize {
    let answers = server.answers();
    answers
        .iter()
        .filter(|answer| json::id(answer) == id)
        .count()
}
