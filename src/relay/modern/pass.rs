//! Requests of modern clients whose server can't ask anything: lists, completions, and what we never
//! heard of. They are carried out as long as their client waits.

use std::sync::Arc;

use super::super::Answer;
use super::attempt::cancel;
use super::pool::Pooled;
use super::telling::response_for;
use super::{Visit, inner_id, is_offered};
use crate::error::Error;
use crate::protocol::client_legacy::Accept;
use crate::protocol::client_modern::Rejected;
use crate::protocol::message::Message;

/// A client that waits for the answer to a request. Dropped before that, as when the client closes the
/// request, it cancels the request at the server (2026-07-28 transports), as the end of a call does.
struct Staying {
    pooled: Pooled,
    /// The id under which the session knows the request (JSON text); none when it has its answer.
    inner: Option<String>,
}

impl Visit<'_> {
    /// A request whose server can't ask anything. When the server has forgotten the session, it was not
    /// carried out, and goes to a new one once.
    pub(super) async fn pass(&self) -> Result<Answer, Error> {
        match self.pass_once().await {
            Err(Error::Forgotten | Error::UnknownSession) => self.pass_once().await,
            other => other,
        }
        .map_err(|error| match error {
            Error::UnknownSession => Error::SessionEnded,
            other => other,
        })
    }

    async fn pass_once(&self) -> Result<Answer, Error> {
        let admission = self.admit()?;
        let pooled = self.session().await?;
        let method = self.message.method();
        if !is_offered(method, &pooled) {
            return Err(Rejected::Method.into());
        }
        let only_json = Accept {
            json: true,
            events: false,
        };
        let inner = inner_id();
        let request = self.for_server(&inner, &pooled)?;
        let staying = Staying::new(&pooled, inner);
        let answer = pooled.session.call_at(request, only_json, admission).await;
        staying.answered();
        let (Answer::Json(_, response), generation) = answer? else {
            return Err(Error::Misbehaved("answered with a stream".into()));
        };
        let response =
            Message::parse(&response).map_err(|_| Error::Misbehaved("sent no message".into()))?;
        let id = self.message.id().unwrap_or("null");
        let (status, response) = response_for(&response, id, method, (&pooled, generation));
        Ok(Answer::Json(status, response))
    }
}

impl Staying {
    fn new(pooled: &Pooled, inner: String) -> Self {
        Self {
            pooled: pooled.clone(),
            inner: Some(inner),
        }
    }

    /// The request has its answer.
    fn answered(mut self) {
        self.inner = None;
    }
}

impl Drop for Staying {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else {
            return;
        };
        // Without a runtime the process is at its end, and sessions have been ended.
        if tokio::runtime::Handle::try_current().is_ok() {
            // A session that is the request's own ends after it was told.
            let pooled = self.pooled.clone();
            let shared = Arc::clone(&pooled.session.shared);
            shared
                .tasks
                .spawn(async move { cancel(&pooled.session, &inner).await });
        }
    }
}
