//! Accepts connections, bounded in number, and ends them when the gateway does.
//!
//! HTTP/1.1, which every client of this protocol speaks: a connection then carries one request at a
//! time, and a stream that waits holds up nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Front;
use super::connection::converse;

/// How long connections get to end after the last answer.
const DRAIN: Duration = Duration::from_secs(3);

/// Serves until `stop`, then lets connections finish what they are sending.
pub(crate) async fn serve(
    listener: TcpListener,
    front: Front,
    most: Option<usize>,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(places(most)));
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let ending = CancellationToken::new();
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
        let front = front.clone();
        let serve = move |request, turn| front.clone().serve(request, turn);
        // Boxed, for what cuts it off would hold room for it three times.
        let connection = Box::pin(converse(socket, serve, ending.clone()));
        let cut = cut.clone();
        connections.spawn(async move {
            cut.run_until_cancelled(connection).await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    ending.cancel();
    if tokio::time::timeout(DRAIN, connections.wait())
        .await
        .is_err()
    {
        tracing::debug!("connections did not end by themselves");
    }
    cut.cancel();
    connections.wait().await;
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
