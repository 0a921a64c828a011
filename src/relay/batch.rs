//! Batches, which 2025-03-26 alone has: each member is taken as if it had come by itself, and the
//! answers go back together, as one stream or as one array.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::channel;

use super::approval::Consent;
use super::session::LiveSession;
use super::sink::Sink;
use super::streams::PIPE;
use super::{Answer, EventPipe};
use crate::error::Error;
use crate::limit::Admission;
use crate::protocol::client_legacy::Accept;
use crate::protocol::message::Message;
use crate::telemetry::audit::{Outcome, Record};

/// A request of a batch: admitted, or refused before it began.
#[derive(Debug)]
pub struct Member {
    /// The request.
    pub request: Message,
    /// Whether it may run.
    pub admission: Result<Admission, Error>,
}

/// What is in a batch.
#[derive(Debug)]
pub struct Batch {
    /// The requests.
    pub requests: Vec<Member>,
    /// The answers and notifications.
    pub others: Vec<Message>,
}

impl LiveSession {
    /// Takes what has no answer in a batch.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn take_others(self: &Arc<Self>, others: Vec<Message>) -> Result<(), Error> {
        for message in &others {
            if message.is_response() {
                self.answer(message).await?;
            } else {
                self.notify(message).await?;
            }
        }
        Ok(())
    }

    /// Takes the requests of a batch.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn call_all(
        self: &Arc<Self>,
        members: Vec<Member>,
        accept: Accept,
    ) -> Result<Answer, Error> {
        if accept.events {
            self.as_stream(members, accept).await
        } else {
            self.as_array(members).await
        }
    }

    async fn as_stream(
        self: &Arc<Self>,
        members: Vec<Member>,
        accept: Accept,
    ) -> Result<Answer, Error> {
        let (pipe, rest) = channel(PIPE);
        let opened = self.state().streams.open_calls(members.len(), pipe);
        let name = opened.name;
        let stream = EventPipe::new(opened, rest, self);
        for Member { request, admission } in members {
            let id = request.id().map(str::to_owned);
            let begun = match admission {
                Ok(admission) => {
                    let sink = Sink::part_of(accept, name);
                    self.begin(request, sink, None, Consent::default(), admission)
                        .await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = begun {
                self.record_refused(&error);
                let refusal = self.error_body(&error, id.as_deref());
                // Beside the others: the client has to read before all of them find room.
                let session = Arc::clone(self);
                let concluding = async move { session.conclude(name, refusal).await };
                self.shared.tasks.spawn(concluding);
            }
        }
        Ok(Answer::Events(stream))
    }

    async fn as_array(self: &Arc<Self>, members: Vec<Member>) -> Result<Answer, Error> {
        let only_json = Accept {
            json: true,
            events: false,
        };
        let answers = members
            .into_iter()
            .map(|Member { request, admission }| async {
                let id = request.id().map(str::to_owned);
                let answer = match admission {
                    Ok(admission) => self.call(request, only_json, admission).await,
                    Err(error) => Err(error),
                };
                match answer {
                    Ok(Answer::Json(_, body)) => body,
                    Ok(_) => Bytes::new(),
                    Err(error) => self.error_body(&error, id.as_deref()),
                }
            });
        let bodies = futures_util::future::join_all(answers).await;
        let mut array = BytesMut::from(&b"["[..]);
        for body in bodies.iter().filter(|body| !body.is_empty()) {
            if array.len() > 1 {
                array.extend_from_slice(b",");
            }
            array.extend_from_slice(body);
        }
        array.extend_from_slice(b"]");
        Ok(Answer::Json(200, array.freeze()))
    }

    fn record_refused(&self, error: &Error) {
        if error.is_refusal() {
            let record = self
                .about(Record::refused)
                .outcome(Outcome::Refused)
                .reason(error.reason())
                .code(error.code().into());
            self.shared.audit.note(Some(self.principal()), record);
        }
    }

    fn error_body(&self, error: &Error, id: Option<&str>) -> Bytes {
        error.body(id, Some(self.server().name().as_str()))
    }
}
