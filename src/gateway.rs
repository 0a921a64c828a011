//! A running gateway: builds every part and connects them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Authenticator;
use crate::config::Config;
use crate::error::Error;
use crate::http::{Front, listener};
use crate::relay::Relay;
use crate::telemetry::audit::{Audit, AuditError, Record};
use crate::upstream::client::HttpClient;
use crate::upstream::warden::Warden;

/// A gateway that serves.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    grace: Duration,
    relay: Relay,
    audit: Audit,
    /// Nothing new is begun.
    ending: CancellationToken,
    /// No connection is accepted any more.
    closed: CancellationToken,
    tasks: TaskTracker,
}

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program listens there.
    #[error("{0} is in use by another program: choose another address or port with `listen`")]
    InUse(SocketAddr),
    /// The address can't be listened on.
    #[error("can't listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The audit log can't be written.
    #[error("the audit log can't be used")]
    Audit(#[from] AuditError),
    /// TLS towards servers can't be set up.
    #[error("TLS can't be set up")]
    Certificates(#[from] rustls::Error),
    /// The relay can't be made.
    #[error(transparent)]
    Relay(#[from] Error),
}

impl Gateway {
    /// Binds and serves, in the background, on the runtime that this is called on.
    ///
    /// # Errors
    /// When the address is taken, or the audit log or the certificate store can't be used.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_watched(config, None).await
    }

    /// The same, and the processes of servers are left to `warden` if this one is killed.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_watched(
        config: Config,
        warden: Option<&Warden>,
    ) -> Result<Self, StartError> {
        let failed = |source: io::Error| match (config.listen, source.kind()) {
            (address, io::ErrorKind::AddrInUse) => StartError::InUse(address),
            (address, _) => StartError::Listen { address, source },
        };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let config = Arc::new(config.bound_to(address));
        let audit = match &config.audit {
            Some(log) => Audit::open(log)?,
            None => Audit::off(),
        };
        audit.write(Record::gateway_started(now())).await;

        let tasks = TaskTracker::new();
        let ending = CancellationToken::new();
        let closed = CancellationToken::new();
        let auth = Authenticator::new(&config, HttpClient::new(config.timeouts.connect)?);
        auth.start(&tasks, &ending);
        let relay = Relay::new(Arc::clone(&config), audit.clone(), warden)?;
        relay.start_sweeping();
        let connections = config.limits.connections;
        let grace = config.timeouts.shutdown;
        let served = Arc::clone(&config);
        let front = Front::new(config, auth, relay.clone(), ending.clone());
        tasks.spawn(listener::serve(
            listener,
            front,
            connections,
            closed.clone(),
        ));
        tasks.close();
        tracing::info!("listening on http://{address}");
        for server in served.servers.keys() {
            let endpoint = served.public_url.endpoint(server);
            tracing::info!("serving {endpoint}");
            if served.legacy_sse {
                tracing::info!("serving {endpoint}/sse, by HTTP+SSE");
            }
        }
        if let Some(log) = &served.audit {
            tracing::info!("audit log {}", log.file.display());
        } else {
            tracing::info!("no audit log");
        }
        Ok(Self {
            address,
            grace,
            relay,
            audit,
            ending,
            closed,
            tasks,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it. Nothing new begins; calls in flight get the configured time, and answers to open
    /// questions are still taken meanwhile; then sessions end, at the servers too, streams close, and
    /// the audit log is written to its end.
    pub async fn shutdown(self) {
        self.ending.cancel();
        self.relay.shutdown(self.grace).await;
        self.closed.cancel();
        self.tasks.wait().await;
        // A disk that takes nothing must not keep the process: closing the log is bounded.
        let last = self.audit.write(Record::gateway_stopped(now()));
        let _no_room = tokio::time::timeout(Duration::from_secs(1), last).await;
        self.audit.close().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "records carry the time of day")]
fn now() -> SystemTime {
    SystemTime::now()
}
