//! Accepts connections, bounded in number, and ends them when the gateway does.
//!
//! HTTP/1.1, which every client of this protocol speaks: a connection then carries one request at a
//! time, and a stream that waits holds up nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a new connection may be silent.
const FIRST_BYTE: Duration = Duration::from_secs(10);

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
    let most = most
        .unwrap_or(Semaphore::MAX_PERMITS)
        .min(Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(most));
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
    if !matches!(
        tokio::time::timeout(FIRST_BYTE, socket.readable()).await,
        Ok(Ok(()))
    ) {
        return;
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_SIZE)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended");
    }
}
