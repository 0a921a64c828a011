//! Requests to a modern server: sent with all that they have to say, and their answers read, however
//! they come.

use bytes::Bytes;
use http::HeaderMap;

use super::inbound::{Inbound, Reading};
use super::lease::Modern;
use crate::error::Error;
use crate::protocol::clock::Late;
use crate::protocol::message::{Kind, Message};
use crate::protocol::mirror::Marks;
use crate::protocol::server_legacy::Answered;
use crate::protocol::server_modern::{headers, own_request};
use crate::upstream::Whose;
use crate::upstream::client::ClientError;
use crate::upstream::fault::{no_message, no_response, only_accepted};
use crate::upstream::reply::Reply;
use crate::upstream::server::Upstream;
use crate::upstream::trouble::Trouble;

/// The beginning of an answer.
pub(super) enum Head {
    /// The response itself, with its HTTP status.
    Response(u16, Message),
    /// A stream, with the response somewhere in it.
    Stream(Box<Stream>),
}

/// A stream that ends with the response to one request. Dropping it cancels the request.
pub(super) struct Stream {
    id: String,
    reading: Reading,
}

/// What comes out of such a stream.
pub(super) enum Next {
    /// A notification.
    Notice(Message),
    /// The response.
    Response(Message),
}

/// Sends a request for a caller; `id` is its id (JSON text). When surely nothing was sent, once more.
///
/// # Errors
/// When there is no answer, or one that is none.
pub(super) async fn send(
    server: &Upstream,
    whose: &Whose,
    headers: &HeaderMap,
    body: Bytes,
    id: &str,
) -> Result<Head, Error> {
    let reply = match server.ask(whose, headers, body.clone()).await {
        Err(ClientError::Connect(_)) => server.ask(whose, headers, body).await,
        other => other,
    };
    let reply = reply.inspect_err(|error| server.troubles().tell(&Trouble::Lost(error)))?;
    if reply.what == Answered::Events {
        return Ok(Head::Stream(Box::new(Stream {
            id: id.to_owned(),
            reading: Reading::new(reply),
        })));
    }
    let told = reply.head();
    let response = whole(reply, id).await;
    if response.is_err() {
        server.troubles().tell(&Trouble::Answered(&told));
    }
    response
}

async fn whole(reply: Reply, id: &str) -> Result<Head, Error> {
    let status = reply.status;
    if let Some(error) = reply.refused() {
        return Err(error);
    }
    if reply.what == Answered::Accepted {
        return Err(only_accepted());
    }
    let json = matches!(reply.what, Answered::Json);
    let body = reply.whole().await?;
    let response = Message::parse(&body).ok().and_then(|it| answering(it, id));
    match response {
        Some(response) if json || response.kind() == Kind::Error => {
            Ok(Head::Response(status.as_u16(), response))
        }
        _ if json => Err(no_response()),
        _ => Err(no_message(status)),
    }
}

/// The response to the request with this id. An error may lack the id: it may not have been read.
fn answering(message: Message, id: &str) -> Option<Message> {
    if message.is_response() && message.id() == Some(id) {
        return Some(message);
    }
    let error = message.error().filter(|_| message.id().is_none())?;
    let named = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
    Message::parse(&named.into()).ok()
}

impl Stream {
    /// What comes next. Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the stream ends or breaks before the response.
    pub(super) async fn next(&mut self) -> Result<Next, Error> {
        loop {
            match self.reading.next().await {
                Ok(Some(Inbound::Message(message))) => match message.kind() {
                    Kind::Notification => return Ok(Next::Notice(message)),
                    Kind::Result | Kind::Error if message.id() == Some(&self.id) => {
                        self.reading.finish();
                        return Ok(Next::Response(message));
                    }
                    // A modern server sends no requests (2026-07-28 streamable-http).
                    _ => self.reading.troubles().tell(&Trouble::Unreadable),
                },
                Ok(Some(Inbound::Unreadable(_))) => {}
                Ok(None) => {
                    self.reading.troubles().tell(&Trouble::Cut);
                    return Err(Error::Broken);
                }
                Err(error) => {
                    self.reading.troubles().tell(&Trouble::Broke(&error));
                    return Err(error.into());
                }
            }
        }
    }
}

/// Waits for something that a server is to do, and no longer than it may take; then the request is cancelled by
/// what drops it.
///
/// # Errors
/// As what is waited for, and when the server is late.
pub(super) async fn in_time<T>(
    server: &Upstream,
    limit: Late,
    wait: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let (limit, trouble, error) = match limit {
        Late::Answer(limit) => (limit, Trouble::Slow(limit), Error::Slow(limit)),
        Late::Word(limit) => (limit, Trouble::Silent(limit), Error::Silent(limit)),
    };
    tokio::time::timeout(limit, wait).await.unwrap_or_else(|_| {
        server.troubles().tell(&trouble);
        Err(error)
    })
}

/// Asks a server something for a session, and waits for the result (JSON text); none when the
/// response is an error.
///
/// # Errors
/// As [`send`], and when the stream of the answer breaks.
pub(super) async fn say(
    server: &Upstream,
    modern: &Modern,
    method: &str,
    params: &str,
) -> Result<Option<String>, Error> {
    let (id, head) = open(server, modern, method, params).await?;
    let response = match head {
        Head::Response(_, response) => response,
        Head::Stream(mut stream) => loop {
            if let Next::Response(response) = stream.next().await? {
                break response;
            }
        },
    };
    tracing::debug!(server = %server.name(), method, id, "asked the server");
    Ok(response.result().map(str::to_owned))
}

/// Sends a request of the gateway's own for a session; gives its id (JSON text) too.
///
/// # Errors
/// As [`send`].
pub(super) async fn open(
    server: &Upstream,
    modern: &Modern,
    method: &str,
    params: &str,
) -> Result<(String, Head), Error> {
    let id = server.next_id();
    let body = modern.envelope(|envelope| own_request(&id, method, params, envelope));
    let request = Message::parse(&body)?;
    let head = send(
        server,
        &modern.whose,
        &headers(&request, &Marks::default()),
        body,
        &id,
    )
    .await?;
    Ok((id, head))
}
