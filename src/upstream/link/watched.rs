//! Which of the sessions that share a server subscribed to which resources. The server knows one subscriber, and
//! tells of a resource whoever asked for it.
//!
//! # Invariants
//! - Who has not subscribed to a resource, or to one that it is a part of, hears nothing of it: its name alone
//!   can be somebody's secret.
//! - Of one session so many are kept; of what it subscribes to beyond that it hears nothing.

use std::collections::{HashMap, HashSet};

/// The most resources of one session.
const MOST: usize = 1024;

/// The subscriptions of each session, by its port.
#[derive(Debug, Default)]
pub(super) struct Watched(HashMap<u64, HashSet<Box<str>>>);

impl Watched {
    /// A session subscribes to a resource. False: it has as many as it may.
    pub(super) fn begin(&mut self, port: u64, uri: &str) -> bool {
        let own = self.0.entry(port).or_default();
        if own.len() >= MOST && !own.contains(uri) {
            return false;
        }
        own.insert(uri.into());
        true
    }

    /// It does not any more.
    pub(super) fn end(&mut self, port: u64, uri: &str) {
        if let Some(own) = self.0.get_mut(&port) {
            own.remove(uri);
        }
    }

    /// The session is over.
    pub(super) fn leave(&mut self, port: u64) {
        self.0.remove(&port);
    }

    /// Who hears that a resource has changed, which may be a part of what they subscribed to (2025-11-25 schema,
    /// `ResourceUpdatedNotification`).
    pub(super) fn hear_of(&self, uri: &str) -> Vec<u64> {
        let hears = |own: &HashSet<Box<str>>| own.iter().any(|whole| is_part(uri, whole));
        let hearing = self.0.iter().filter(|(_, own)| hears(own));
        hearing.map(|(port, _)| *port).collect()
    }
}

/// Whether a resource is another one, or below it.
fn is_part(uri: &str, whole: &str) -> bool {
    let rest = uri.strip_prefix(whole);
    rest.is_some_and(|rest| {
        rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_subscribed_hears_of_it_and_of_its_parts() {
        let mut watched = Watched::default();
        assert!(watched.begin(1, "file:///a/"));
        assert!(watched.begin(2, "file:///a/b"));
        let heard = |watched: &Watched, uri| {
            let mut ports = watched.hear_of(uri);
            ports.sort_unstable();
            ports
        };
        assert_eq!(heard(&watched, "file:///a/b"), [1, 2]);
        assert_eq!(heard(&watched, "file:///a/c"), [1]);
        assert_eq!(heard(&watched, "file:///a/bc"), [1]);
        assert_eq!(heard(&watched, "file:///a/b#c"), [1, 2]);
        assert_eq!(heard(&watched, "file:///c"), [0; 0]);
        watched.end(2, "file:///a/b");
        watched.end(2, "file:///never");
        assert_eq!(heard(&watched, "file:///a/b"), [1]);
        watched.leave(1);
        assert_eq!(heard(&watched, "file:///a/b"), [0; 0]);
    }

    #[test]
    fn one_session_has_so_many_and_no_more() {
        let mut watched = Watched::default();
        for number in 0..MOST {
            assert!(watched.begin(1, &number.to_string()));
        }
        assert!(!watched.begin(1, "one more"));
        assert!(watched.begin(1, "7") && watched.begin(2, "one more"));
    }
}
