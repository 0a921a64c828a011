//! A server over HTTP+SSE (2024-11-05 basic/transports): one event stream for all that the server says,
//! and an address, which is the first thing in it, that takes what is said to it.
//!
//! # Invariants
//! - The stream is the session: when it ends, so does the link.
//! - The address has the origin of the stream: our credentials go nowhere else.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::Full;
use url::Url;

use super::{Link, Posted, Service};
use crate::upstream::client::{ClientError, HttpClient};
use crate::upstream::reply::{Events, Reply, Source};
use crate::upstream::trouble::{Trouble, Troubles};

/// Where a server of HTTP+SSE is.
#[derive(Debug)]
pub(in crate::upstream) struct Stream {
    url: Url,
    headers: HeaderMap,
    client: HttpClient,
    /// The largest message.
    limit: usize,
    troubles: Arc<Troubles>,
}

/// Where messages are posted.
#[derive(Debug)]
pub(super) struct Outlet {
    url: http::Uri,
    headers: HeaderMap,
    client: HttpClient,
}

/// What opening a stream came to.
#[derive(Debug)]
pub(in crate::upstream) enum Opened {
    /// A link, and what serves it.
    Link(Arc<Link>, Service, Events),
    /// The server answered something else.
    Refused(Reply),
    /// The server named no address, or one that is not its own.
    NoAddress(&'static str),
}

/// How long a server may take to name the address.
const PATIENCE: Duration = Duration::from_secs(30);

impl Stream {
    /// The one at this URL.
    pub(in crate::upstream) fn new(
        url: Url,
        headers: HeaderMap,
        client: HttpClient,
        limit: usize,
        troubles: Arc<Troubles>,
    ) -> Self {
        Self {
            url,
            headers,
            client,
            limit,
            troubles,
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// When no answer came.
    pub(in crate::upstream) async fn open(&self) -> Result<Opened, ClientError> {
        let open = async {
            let request = request(Method::GET, self.url.as_str(), &self.headers, Bytes::new());
            let response = self.client.send(request).await?;
            let response = response.map(Source::Http);
            let reply = Reply::new(response, false, self.limit, Arc::clone(&self.troubles));
            if reply.what != crate::protocol::server_legacy::Answered::Events {
                return Ok(Opened::Refused(reply));
            }
            let mut events = reply.events();
            while let Ok(Some(event)) = events.next().await {
                if event.name.as_deref() == Some(b"endpoint") {
                    return Ok(match self.outlet(&event.data) {
                        Ok(outlet) => {
                            let (link, service) = Link::posting(outlet, Arc::clone(&self.troubles));
                            Opened::Link(link, service, events)
                        }
                        Err(why) => Opened::NoAddress(why),
                    });
                }
            }
            Ok(Opened::NoAddress("names no address for messages"))
        };
        tokio::time::timeout(PATIENCE, open)
            .await
            .map_err(|_| ClientError::Timeout(PATIENCE))?
    }

    fn outlet(&self, named: &[u8]) -> Result<Outlet, &'static str> {
        let named = std::str::from_utf8(named).map_err(|_| "names an address that is none")?;
        let url = self.url.join(named.trim());
        let url = url.map_err(|_| "names an address that is none")?;
        if url.origin() != self.url.origin() {
            return Err("names an address of another origin, which it is not sent to");
        }
        Ok(Outlet {
            url: url
                .as_str()
                .parse()
                .map_err(|_| "names an address that is none")?,
            headers: self.headers.clone(),
            client: self.client.clone(),
        })
    }
}

/// Takes what comes on the stream, until it ends or the link is to end.
pub(in crate::upstream) async fn serve(
    service: Service,
    mut events: Events,
    troubles: Arc<Troubles>,
) {
    let Service {
        mut intake,
        closing,
        ..
    } = service;
    let read = async {
        loop {
            match events.next().await {
                Ok(Some(event)) => {
                    let named = event.name.as_deref().is_none_or(|name| name == b"message");
                    if named && !event.data.is_empty() {
                        intake.take(&event.data).await;
                    }
                }
                Ok(None) => return troubles.tell(&Trouble::Cut),
                Err(error) => return troubles.tell(&Trouble::Broke(&error)),
            }
        }
    };
    let _closed = closing.run_until_cancelled(read).await;
    closing.cancel();
}

impl Outlet {
    pub(super) async fn post(&self, message: Bytes) -> Result<Posted, ClientError> {
        let request = request(Method::POST, &self.url.to_string(), &self.headers, message);
        let response = self.client.send(request).await?;
        match response.status().as_u16() {
            200..=299 => Ok(Posted::Sent),
            // There the stream of the session is not known any more.
            404 | 410 => Ok(Posted::Ended),
            _ => Ok(Posted::Refused(Box::new(response))),
        }
    }
}

fn request(method: Method, url: &str, headers: &HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let posts = method == Method::POST;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    // It was read as a URL with a host, which a URI is too.
    *request.uri_mut() = url.parse().unwrap_or_default();
    *request.headers_mut() = headers.clone();
    let (name, value) = if posts {
        (CONTENT_TYPE, HeaderValue::from_static("application/json"))
    } else {
        (ACCEPT, HeaderValue::from_static("text/event-stream"))
    };
    request.headers_mut().insert(name, value);
    request
}
