//! A server behind the gateway, whatever it is reached over.
//!
//! # Invariants
//! - What is known about a server, and what is told of its troubles, is one for all who use it.
//! - A session stays where it was opened: its [`Wire`] says where that is.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio_util::task::TaskTracker;

use super::client::{ClientError, HttpClient};
use super::endpoints::Endpoints;
use super::era::Eras;
use super::link::events::{self, Opened, Stream};
use super::link::{Link, Posted};
use super::programs::{Programs, Whose};
use super::reply::{Reply, Source};
use super::trouble::Troubles;
use super::warden::Warden;
use crate::config::{At, Config, Server, ServerEra, ServerName};
use crate::protocol::version::Version;

/// A server and how to reach it.
#[derive(Debug)]
pub struct Upstream {
    name: ServerName,
    way: Way,
    message_limit: usize,
    eras: Eras,
    troubles: Arc<Troubles>,
    tasks: TaskTracker,
}

#[derive(Debug)]
enum Way {
    Http(Endpoints),
    Sse(Stream),
    Stdio(Programs),
}

/// The session at a server that a request belongs to.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// The id that the server gave it; none when the server keeps no sessions.
    pub session: Option<HeaderValue>,
    /// The negotiated version; none before there is one.
    pub version: Option<Version>,
    /// At which of its addresses the server keeps it.
    pub(super) place: usize,
    /// The head of each message to it, once there was one.
    pub(super) head: OnceLock<HeaderMap>,
    /// The connection that it is, where it is one.
    pub(super) link: Option<Arc<Link>>,
}

/// What the attempt to reach a server came to.
#[derive(Debug)]
pub enum Connected {
    /// A session can be opened here.
    Wire(Wire),
    /// It answered something else.
    Refused(Box<Reply>),
    /// It does not say where messages go; this is what it does instead.
    NoAddress(&'static str),
}

impl Wire {
    /// The same place, with the session that the server gave there.
    #[must_use]
    pub fn in_session(mut self, session: Option<HeaderValue>) -> Self {
        self.session = session;
        self.head = OnceLock::new();
        self
    }

    /// The same session, in the version that was agreed on.
    #[must_use]
    pub fn speaking(mut self, version: Option<Version>) -> Self {
        self.version = version;
        self.head = OnceLock::new();
        self
    }

    /// Whether the server has something to end.
    pub fn is_held(&self) -> bool {
        self.session.is_some() || self.link.is_some()
    }

    /// Whether all its messages come on one connection, so that nothing says what they belong to.
    pub fn is_link(&self) -> bool {
        self.link.is_some()
    }
}

impl Upstream {
    /// The server as configured. What it starts is tracked by `tasks`, and left to `warden` if the gateway
    /// is killed.
    ///
    /// # Errors
    /// When TLS can't be set up.
    pub fn new(
        server: &Server,
        config: &Config,
        tasks: &TaskTracker,
        warden: Option<&Warden>,
    ) -> Result<Self, rustls::Error> {
        let client = || HttpClient::new(config.timeouts.connect);
        let limit = config.limits.message.unwrap_or(usize::MAX);
        let troubles = Arc::new(Troubles::of(server));
        let told = || Arc::clone(&troubles);
        let (way, era) = match &server.at {
            At::Http(urls) => {
                let endpoints = Endpoints::new(urls, &server.headers, &client()?);
                (Way::Http(endpoints), server.era)
            }
            At::Sse(url) => {
                let headers = server.headers.clone();
                let stream = Stream::new(url.clone(), headers, client()?, limit, told());
                // Nobody speaks the new versions over the oldest transport.
                (Way::Sse(stream), ServerEra::Legacy)
            }
            At::Stdio(stdio) => {
                let (name, warden) = (server.name.clone(), warden.cloned());
                let programs = Programs::new(name, stdio, limit, told(), tasks, warden);
                (Way::Stdio(programs), server.era)
            }
        };
        Ok(Self {
            name: server.name.clone(),
            way,
            message_limit: limit,
            eras: Eras::new(era),
            troubles,
            tasks: tasks.clone(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Where the operator is told what it does instead of answering.
    pub fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// What is known about its era.
    pub(super) fn eras(&self) -> &Eras {
        &self.eras
    }

    /// Whether it is a program: one that does not know a message may end, or say nothing at all.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.way, Way::Stdio(_))
    }

    /// At how many places it can be.
    pub fn places(&self) -> usize {
        match &self.way {
            Way::Http(endpoints) => endpoints.count(),
            Way::Sse(_) | Way::Stdio(_) => 1,
        }
    }

    /// Reaches it, for a new session.
    ///
    /// # Errors
    /// When it can't be reached.
    pub async fn connect(&self) -> Result<Connected, ClientError> {
        let over = |link| {
            Connected::Wire(Wire {
                link: Some(link),
                ..Wire::default()
            })
        };
        Ok(match &self.way {
            Way::Http(endpoints) => Connected::Wire(Wire {
                place: endpoints.choose(),
                ..Wire::default()
            }),
            Way::Sse(stream) => match stream.open().await? {
                Opened::Link(link, service, events) => {
                    let troubles = Arc::clone(&self.troubles);
                    self.tasks.spawn(events::serve(service, events, troubles));
                    over(link)
                }
                Opened::Refused(reply) => Connected::Refused(Box::new(reply)),
                Opened::NoAddress(why) => Connected::NoAddress(why),
            },
            Way::Stdio(programs) => over(programs.session().await?),
        })
    }

    /// Sends a message of a session.
    ///
    /// # Errors
    /// When no answer came. [`ClientError::is_away`] means that nothing was sent.
    pub async fn post(&self, wire: &Wire, message: Bytes) -> Result<Reply, ClientError> {
        if let Some(link) = &wire.link {
            return Ok(self.of_link(link.post(message).await?));
        }
        let endpoints = self.endpoints()?;
        // Before there is a version there is no session, and who opens one tries elsewhere.
        if wire.version.is_some() && endpoints.is_lost(wire.place) {
            // Its session can't be reached, and elsewhere there can be a new one.
            return Ok(self.of_link(Posted::Ended));
        }
        let response = endpoints.post(wire, message).await?;
        Ok(self.of_http(response.map(Source::Http), wire))
    }

    /// Sends a request that stands for itself, with these headers beside the configured ones. To drop
    /// the future or the answer is to cancel the request (2026-07-28 streamable-http, and stdio).
    ///
    /// # Errors
    /// When no answer came. [`ClientError::is_away`] means that nothing was sent.
    pub async fn ask(
        &self,
        whose: &Whose,
        headers: &HeaderMap,
        message: Bytes,
    ) -> Result<Reply, ClientError> {
        if let Way::Stdio(programs) = &self.way {
            let mut posted = programs.of(whose).await?.post(message.clone()).await?;
            if matches!(posted, Posted::Ended) {
                // It ended just now, and nothing was sent.
                posted = programs.of(whose).await?.post(message).await?;
            }
            return Ok(self.of_link(posted));
        }
        let response = self.endpoints()?.ask(headers, message).await?;
        Ok(self.of_http(response.map(Source::Http), &Wire::default()))
    }

    /// Opens the standalone stream of a session, after the event `last` where one was seen.
    ///
    /// # Errors
    /// When no answer came.
    pub async fn listen(&self, wire: &Wire, last: Option<&Bytes>) -> Result<Reply, ClientError> {
        if let Some(link) = &wire.link {
            if link.has_ended() {
                return Ok(self.of_link(Posted::Ended));
            }
            return Ok(Reply::of_rest(link.rest(), Arc::clone(&self.troubles)));
        }
        let response = self.endpoints()?.listen(wire, last).await?;
        Ok(self.of_http(response, wire))
    }

    /// Ends the session at the server. What it answers doesn't matter: it may not offer this.
    ///
    /// # Errors
    /// When no answer came.
    pub async fn end(&self, wire: &Wire) -> Result<(), ClientError> {
        if let Some(link) = &wire.link {
            link.end().await;
            return Ok(());
        }
        self.endpoints()?.end(wire).await?;
        Ok(())
    }

    /// Lets go of what no session holds and nobody has used for so long.
    pub fn sweep(&self, idle: Duration) {
        if let Way::Stdio(programs) = &self.way {
            programs.sweep(idle);
        }
    }

    /// Lets go of all that no session holds.
    pub fn close(&self) {
        if let Way::Stdio(programs) = &self.way {
            programs.close();
        }
    }

    fn endpoints(&self) -> Result<&Endpoints, ClientError> {
        match &self.way {
            Way::Http(endpoints) => Ok(endpoints),
            // Whoever has no link there has never reached it.
            Way::Sse(_) | Way::Stdio(_) => Err(ClientError::Resting(Duration::ZERO)),
        }
    }

    fn of_http(&self, response: http::Response<Source>, wire: &Wire) -> Reply {
        let troubles = Arc::clone(&self.troubles);
        Reply::new(
            response,
            wire.session.is_some(),
            self.message_limit,
            troubles,
        )
    }

    fn of_link(&self, posted: Posted) -> Reply {
        Reply::of_link(posted, self.message_limit, Arc::clone(&self.troubles))
    }
}
