//! Requests that run at the demo server, each one until its answer.
//!
//! # Invariants
//! - A call lives in the body of its response: when that is dropped, the call and its question are
//!   gone, and there is nothing to stop.
//! - A cancelled call is not answered (MCP specification, "Cancellation").

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use futures_util::stream::Stream;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::booking::{self, Fault};
use super::message::answer;
use super::server::SERVER_ERROR;
use super::session::{Back, event};
use super::story::Way;

const METHOD_NOT_FOUND: i32 = -32601;

/// A request: its id as it was written, its method and its parameters.
pub(super) type Request = (Box<RawValue>, String, Value);

/// Calls that run, as the body of their response: nothing has to be stopped when it is dropped.
pub(super) struct Running {
    work: Option<BoxFuture<'static, ()>>,
    queue: mpsc::Receiver<Bytes>,
}

impl Running {
    /// Starts every request of a POST; `queue` holds what they send through `back`.
    pub(super) fn start(requests: Vec<Request>, back: Back, queue: mpsc::Receiver<Bytes>) -> Self {
        Self {
            work: Some(run_all(requests, back).boxed()),
            queue,
        }
    }
}

impl Stream for Running {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(work) = &mut self.work
            && work.as_mut().poll(context).is_ready()
        {
            // The last sender goes with it, so the queue ends after what is in it.
            self.work = None;
        }
        self.queue.poll_recv(context).map(|event| event.map(Ok))
    }
}

/// Runs every request of a POST and sends the answers as they come.
async fn run_all(requests: Vec<Request>, back: Back) {
    let each = requests.iter().map(async |(id, method, params)| {
        let Some(call) = back.session.begin(id.get()) else {
            let fault = Fault(
                SERVER_ERROR,
                "too many calls, or one with this id is running".to_owned(),
            );
            back.events.send(event(&answer(id, Err(fault)))).await.ok();
            return;
        };
        tokio::select! {
            () = call.cancelled.cancelled() => {}
            answer = respond(id, method, params, &back) => {
                back.events.send(event(&answer)).await.ok();
            }
        }
    });
    join_all(each).await;
}

/// Answers one request.
pub(super) async fn respond(id: &RawValue, method: &str, params: &Value, back: &Back) -> String {
    let outcome = match method {
        "ping" => Ok(json!({})),
        "tools/list" => Ok(booking::tools()),
        "tools/call" => {
            let tool = params
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            back.story.message(
                Way::GatewayToServer,
                format_args!("the call of {tool} arrives"),
            );
            let outcome = booking::call(params, back).await;
            back.story.message(
                Way::ServerToGateway,
                if outcome.is_ok() { "result" } else { "error" },
            );
            outcome
        }
        _ => Err(Fault(
            METHOD_NOT_FOUND,
            "this server has no such method".to_owned(),
        )),
    };
    answer(id, outcome)
}
