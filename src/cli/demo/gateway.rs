//! Starts the gateway that the demo shows: the one place where the demo touches it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::config::{
    Access, AuditLog, Config, LimitAnswer, Limits, PrincipalLimits, PublicUrl, RateLimits, Server,
    ServerName, Sessions, Timeouts, WhenFull,
};
use crate::{Gateway, StartError};

/// The server's name in the path.
pub(super) const NAME: &str = "demo";

/// A gateway on loopback with one server, no login and an audit log.
pub(super) async fn start(port: u16, server: Url, audit: &Path) -> Result<Gateway, StartError> {
    Gateway::start(config(port, server, audit)).await
}

/// What a client connects to.
pub(super) fn endpoint(gateway: &Gateway) -> String {
    format!("http://{}/mcp/{NAME}", gateway.address())
}

/// The same as this file, with every default spelled out:
///
/// ```yaml
/// listen: 127.0.0.1:8080
/// servers:
///   demo:
///     url: http://127.0.0.1:…/mcp
/// audit: { file: audit.jsonl }
/// ```
fn config(port: u16, url: Url, audit: &Path) -> Config {
    let listen = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let name = ServerName(Arc::from(NAME));
    let server = Server::at(name.clone(), url);
    Config {
        listen,
        public_url: PublicUrl(format!("http://{listen}")),
        servers: BTreeMap::from([(name, Arc::new(server))]),
        access: Access::Local,
        limits: Limits {
            per_principal: PrincipalLimits {
                rates: RateLimits::default(),
                sessions: Some(50),
                questions: Some(16),
            },
            body: Some(4 * 1024 * 1024),
            message: Some(16 * 1024 * 1024),
            streams: Some(64),
            buffer: 64,
            connections: Some(1000),
            answer: LimitAnswer::JsonRpc,
        },
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            call: Duration::from_mins(15),
            headers: None,
            idle: None,
            question: Duration::from_mins(10),
            stream: Duration::from_secs(10),
            // Nobody waits long for Ctrl-C to be obeyed.
            resume: Duration::from_mins(5),
            shutdown: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
        },
        sessions: Sessions {
            idle: Duration::from_mins(30),
            max: Some(1000),
        },
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        legacy_sse: false,
        audit: Some(AuditLog {
            file: audit.to_owned(),
            when_full: WhenFull::Block,
        }),
    }
}
