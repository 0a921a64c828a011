//! What the server is told that has no answer: the notifications of the client, answers to questions, cancels.
//!
//! # Invariant
//! - What is about a call or a question goes to the session in which the server knows it, and to no other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::lease::{Lease, Tenure};
use super::session::LiveSession;
use super::{Answer, now, standalone};
use crate::error::Error;
use crate::protocol::client_legacy::Posted;
use crate::protocol::client_modern::Level;
use crate::protocol::message::Message;
use crate::protocol::server_legacy::Answered;
use crate::upstream::client::ClientError;
use crate::upstream::reply::Reply;
use crate::upstream::server::Wire;
use crate::upstream::trouble::Trouble;

impl LiveSession {
    /// Takes a notification of the client.
    ///
    /// # Errors
    /// When the server no longer knows the session, and there is no other.
    pub async fn notify(self: &Arc<Self>, message: &Message) -> Result<Answer, Error> {
        match Posted::read(message)? {
            Posted::Cancelled(id) => {
                let (leg, tenure) = {
                    let state = &mut *self.state();
                    let leg = state.talk.cancel(now(), id);
                    let call = leg.and_then(|leg| state.calls.get(&leg));
                    call.inspect(|call| call.halt.cancelled.notify_one());
                    (leg, call.and_then(|call| call.tenure.clone()))
                };
                // A cancel of what is over, or never was, is nobody's business (2025-11-25
                // basic/utilities/cancellation: "MAY ignore"); of what was not sent no server knows.
                if let (Some(leg), Some(tenure)) = (leg, tenure) {
                    self.tell(&tenure, message.replacing(id, &leg.to_string()))
                        .await?;
                }
            }
            Posted::Initialized => {
                // Said once; what is said again tells the server nothing.
                if !std::mem::replace(&mut self.state().listening, true) {
                    self.tell_server(message).await?;
                    if let Lease::Legacy(_) = self.lease() {
                        self.shared.tasks.spawn(standalone::run(Arc::clone(self)));
                    }
                }
            }
            _ => self.tell_server(message).await?,
        }
        Ok(Answer::Accepted)
    }

    /// Sees to it that the server logs at least from this level on. It is the session's: what a
    /// request does not want is left out on its own stream.
    pub(super) async fn want_logs(self: &Arc<Self>, level: Level) {
        {
            let mut state = self.state();
            if state.level.is_some_and(|now| now <= level) {
                return;
            }
            state.level = Some(level);
        }
        let params = format!(r#"{{"level":"{}"}}"#, level.name());
        if let Err(error) = self.request("logging/setLevel", &params).await {
            tracing::debug!(session = self.tag(), %error, "the server did not take a log level");
        }
    }

    /// Passes on what the client says to the server as such. What the server thinks of it is logged; only
    /// the loss of the session matters to the client. A modern server takes nothing of this kind: it
    /// asks when it wants to know, and learns of a cancel by the end of its stream.
    ///
    /// # Errors
    /// [`Error::Forgotten`] when the server no longer knows the session, and there is no other.
    async fn tell_server(self: &Arc<Self>, notice: &Message) -> Result<(), Error> {
        let Some(tenure) = self.tenure() else {
            return Ok(());
        };
        match self
            .post_patiently(&tenure.wire, notice.bytes().clone())
            .await
        {
            Ok(reply) if reply.what == Answered::SessionGone => {}
            Ok(_) => return Ok(()),
            Err(error) => {
                self.server().troubles().tell(&Trouble::Lost(&error));
                return Ok(());
            }
        }
        match self.renew(&tenure).await {
            Err(error @ (Error::Forgotten | Error::ForgottenAgain)) => return Err(error),
            // Whoever asks next sees what is wrong.
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        // The new session has been told that its client is ready.
        if notice.method() == "notifications/initialized" {
            return Ok(());
        }
        match self.tenure() {
            Some(tenure) => self.tell(&tenure, notice.bytes().clone()).await,
            None => Ok(()),
        }
    }

    /// Sends something that has no answer in this session of the server's.
    ///
    /// # Errors
    /// [`Error::Forgotten`] when the server no longer knows that, and there will be no other.
    pub(super) async fn tell(
        self: &Arc<Self>,
        tenure: &Tenure,
        message: Bytes,
    ) -> Result<(), Error> {
        match self.post_patiently(&tenure.wire, message).await {
            Ok(reply) if reply.what == Answered::SessionGone => self.lose(tenure),
            Ok(_) => Ok(()),
            Err(error) => {
                self.server().troubles().tell(&Trouble::Lost(&error));
                Ok(())
            }
        }
    }

    /// Posts something small. A server that is away is tried again for a while: surely nothing was sent.
    pub(super) async fn post_patiently(
        &self,
        wire: &Wire,
        message: Bytes,
    ) -> Result<Reply, ClientError> {
        const PATIENCE: Duration = Duration::from_secs(15);
        let post = async {
            let mut pause = Duration::from_millis(100);
            loop {
                match self.server().post(wire, message.clone()).await {
                    Err(error) if error.is_away() => tokio::time::sleep(pause).await,
                    other => return other,
                }
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        };
        tokio::time::timeout(PATIENCE, post)
            .await
            .map_err(|_| ClientError::Timeout(PATIENCE))?
    }
}
