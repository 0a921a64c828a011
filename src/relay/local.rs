//! Requests of a legacy client that a modern server has no method for: the gateway answers them, out
//! of what it keeps for the session.

use tokio::sync::oneshot;

use super::driver::respond;
use super::exchange::{End, Exchange};
use super::lease::Modern;
use super::subscriptions::{NotSubscribed, Wish};
use crate::error::Error;
use crate::protocol::message;
use crate::protocol::object::text;

/// What a client can want to have logged (2025-11-25 server/utilities/logging).
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

impl Exchange {
    /// Answers the request, if it is one for the gateway.
    pub(super) async fn answer_here(&mut self, modern: &Modern) -> Option<End> {
        Some(match self.request.method() {
            "ping" => self.nothing(),
            "logging/setLevel" => self.set_level(modern),
            "resources/subscribe" => self.subscribe(modern).await,
            "resources/unsubscribe" => self.unsubscribe(modern).await,
            // What only a session has, or only a client without one may open.
            "initialize" | "subscriptions/listen" | "tasks/list" | "tasks/result" => {
                self.refused(-32601, "method not found")
            }
            _ => return None,
        })
    }

    fn set_level(&self, modern: &Modern) -> End {
        if !modern.offers.logging {
            return self.refused(-32601, "the server does not offer logging");
        }
        let [level] = self.request.param(["level"]).unwrap_or_default();
        match level.filter(|level| text(level).is_some_and(|it| LEVELS.contains(&&*it))) {
            None => self.refused(-32602, "no such log level"),
            Some(level) => {
                modern.set_level(level);
                self.nothing()
            }
        }
    }

    async fn subscribe(&self, modern: &Modern) -> End {
        if !modern.offers.subscribe {
            return self.refused(-32601, "the server does not offer subscriptions");
        }
        let Some(uri) = self.uri() else {
            return self.refused(-32602, "the uri is missing");
        };
        let (done, outcome) = oneshot::channel();
        let stop = self.stop(std::time::Duration::ZERO);
        let wish = async {
            let wish = Wish::Subscribe(uri, done);
            modern.wishes.send(wish).await.ok()?;
            outcome.await.ok()
        };
        let outcome = tokio::select! {
            outcome = wish => outcome,
            error = stop => return End::Failed(error),
        };
        match outcome {
            Some(Ok(())) => self.nothing(),
            Some(Err(NotSubscribed::Declined)) => self.refused(
                -32602,
                "the server does not let this resource be subscribed",
            ),
            Some(Err(NotSubscribed::Failed(error))) => End::Failed(error),
            None => End::Failed(Error::SessionEnded),
        }
    }

    async fn unsubscribe(&self, modern: &Modern) -> End {
        let Some(uri) = self.uri() else {
            return self.refused(-32602, "the uri is missing");
        };
        let _over = modern.wishes.send(Wish::Unsubscribe(uri)).await;
        self.nothing()
    }

    fn uri(&self) -> Option<String> {
        let [uri] = self.request.param(["uri"]).ok()?;
        text(uri?).map(std::borrow::Cow::into_owned)
    }

    fn nothing(&self) -> End {
        respond(&message::result(&self.leg.to_string(), "{}"))
    }

    fn refused(&self, code: i32, why: &str) -> End {
        respond(&message::error(
            Some(&self.leg.to_string()),
            code,
            why,
            None,
        ))
    }
}
