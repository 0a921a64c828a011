//! Accepts connections, bounded in number, and ends them when the gateway does.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// Bytes of the head of a request.
const HEAD_SIZE: u32 = 64 * 1024;

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
        let _slower = socket.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = builder()
            .serve_connection(TokioIo::new(socket), service)
            .into_owned();
        let connection = graceful.watch(connection);
        let cut = cut.clone();
        connections.spawn(async move {
            if let Some(Err(error)) = cut.run_until_cancelled(connection).await {
                tracing::debug!(%error, "a connection ended");
            }
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

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_SIZE as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_SIZE)
        .max_concurrent_streams(256)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}
