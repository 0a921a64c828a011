//! Work that is carried through, whether or not who asked for it stays.
//!
//! It is done in the task that waits for it, which costs nobody a wake-up; when that goes away, it goes on in
//! one of its own.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// The work. To drop it is to let it go on.
#[must_use = "it is done at once only where it is waited for"]
pub struct Carried<T: Send + 'static> {
    work: Option<Work<T>>,
    /// Where it goes on; nowhere, when there is no runtime.
    runtime: Option<Handle>,
}

impl<T: Send + 'static> fmt::Debug for Carried<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carried")
            .field("done", &self.work.is_none())
            .finish_non_exhaustive()
    }
}

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<T: Send + 'static> Carried<T> {
    /// Work that `tracker` waits for, wherever it is done.
    pub(super) fn new(
        tracker: &TaskTracker,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        Self {
            work: Some(Box::pin(tracker.track_future(work))),
            runtime: Handle::try_current().ok(),
        }
    }
}

impl<T: Send + 'static> Future for Carried<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let done = work.as_mut().poll(cx);
        if done.is_ready() {
            self.work = None;
        }
        done
    }
}

impl<T: Send + 'static> Drop for Carried<T> {
    fn drop(&mut self) {
        if let (Some(work), Some(runtime)) = (self.work.take(), &self.runtime)
            // What has just panicked can't go on.
            && !std::thread::panicking()
        {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a tracker is what is tested")]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_is_done_in_the_task_that_waits_for_it() {
        let tracker = TaskTracker::new();
        let work = Carried::new(&tracker, async { tokio::task::id() });
        let waiting = tokio::spawn(work);
        let there = waiting.id();
        assert_eq!(waiting.await.unwrap(), there);
        assert!(tracker.is_empty());
    }

    #[tokio::test]
    async fn work_goes_on_when_nobody_waits_for_it_any_more() {
        let tracker = TaskTracker::new();
        let (go_on, told) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel();
        let work = Carried::new(&tracker, async move {
            told.await.unwrap();
            done.send(()).unwrap();
        });
        let waiting = tokio::spawn(work);
        tokio::task::yield_now().await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(tracker.len(), 1);
        go_on.send(()).unwrap();
        finished.await.unwrap();
        tracker.close();
        tracker.wait().await;
    }

    #[tokio::test]
    async fn work_that_nobody_has_begun_is_done_too() {
        let tracker = TaskTracker::new();
        let (done, finished) = oneshot::channel();
        drop(Carried::new(&tracker, async move { done.send(()) }));
        finished.await.unwrap();
    }
}
