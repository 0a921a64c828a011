//! Accepts connections, bounded in number, and ends them when the gateway does.
//!
//! HTTP/1.1, which every client of this protocol speaks: a connection then carries one request at a
//! time, and a stream that waits holds up nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::patient::Patient;

/// How long a new connection may take to send the head of its first request: until then nobody knows
/// whose it is.
const FIRST_HEAD: Duration = Duration::from_secs(10);

/// How long the head of a request may take, and how long a connection may wait for its next one.
const HEAD: Duration = Duration::from_secs(75);

/// Bytes of the head of a request.
const HEAD_SIZE: usize = 64 * 1024;

/// How long connections get to end after the last answer.
const DRAIN: Duration = Duration::from_secs(3);

/// Serves until `stop`, then lets connections finish what they are sending.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    most: Option<usize>,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(places(most)));
    let graceful = GracefulShutdown::new();
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(error) => {
                // Mostly too many open files: trying again at once would only spin.
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!("too many connections; one was closed");
            continue;
        };
        let connection = converse(socket, router.clone(), graceful.watcher());
        let cut = cut.clone();
        connections.spawn(async move {
            cut.run_until_cancelled(connection).await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::debug!("connections did not end by themselves");
    }
    cut.cancel();
    connections.wait().await;
}

async fn converse(socket: TcpStream, router: Router, watcher: Watcher) {
    let _slower = socket.set_nodelay(true);
    let asked = Arc::new(AtomicBool::new(false));
    let service = {
        let (asked, service) = (Arc::clone(&asked), TowerToHyperService::new(router));
        service_fn(move |request| {
            asked.store(true, Ordering::Relaxed);
            service.call(request)
        })
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_SIZE)
        .serve_connection(TokioIo::new(Patient::new(socket)), service);
    let connection = watcher.watch(connection);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = tokio::time::sleep(FIRST_HEAD) => {
            if !asked.load(Ordering::Relaxed) {
                return;
            }
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// How many connections may be open: what is configured, as far as the system's limit on descriptors
/// goes. A client's connection may need another one to its server, and some are needed besides.
fn places(configured: Option<usize>) -> usize {
    const RESERVE: u64 = 64;
    let configured = configured
        .unwrap_or(Semaphore::MAX_PERMITS)
        .min(Semaphore::MAX_PERMITS);
    let Ok(descriptors) = rlimit::increase_nofile_limit(u64::MAX) else {
        return configured;
    };
    let possible = usize::try_from(descriptors.saturating_sub(RESERVE) / 2)
        .unwrap_or(usize::MAX)
        .max(1);
    if possible < configured {
        tracing::warn!(
            descriptors,
            connections = possible,
            "fewer connections than configured: the system limits open files"
        );
    }
    possible.min(configured)
}
