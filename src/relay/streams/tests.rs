//! What a client's streams carry, and what it finds when it comes back.

#![expect(clippy::disallowed_methods, reason = "a test may read the clock")]

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{Receiver, channel};

use super::super::deliver::Item;
use super::super::session::Face;
use super::{Opened, Put, Streams};
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::event_id::Name;
use crate::protocol::session::{LegId, Session};

const PATIENCE: Duration = Duration::from_mins(5);

fn legs() -> (LegId, LegId) {
    let now = Instant::now();
    let mut session = Session::new(ClientCapabilities::default());
    (
        session.begin(now, "1", None).unwrap(),
        session.begin(now, "2", None).unwrap(),
    )
}

/// Streams, and a call with a stream of its own.
fn with_call() -> (Streams, LegId, Opened, Receiver<Item>) {
    let (leg, _) = legs();
    let mut streams = Streams::new(4, true);
    let (opened, reader) = call(&mut streams, leg);
    (streams, leg, opened, reader)
}

fn call(streams: &mut Streams, leg: LegId) -> (Opened, Receiver<Item>) {
    let (pipe, reader) = channel(4);
    let opened = streams.open_calls(1, pipe);
    streams.join(leg, opened.name);
    (opened, reader)
}

fn put(streams: &mut Streams, cause: Option<LegId>, text: &'static str) {
    let put = streams.put(cause, Face::Legacy, Item::Notice(text.into()));
    assert!(matches!(put, Put::Done), "{put:?}");
}

/// The outcome of a call.
fn conclude(streams: &mut Streams, leg: LegId) {
    let name = streams.end_call(leg).unwrap();
    let put = streams.put_outcome(name, Item::Outcome("outcome".into()));
    assert!(matches!(put, Put::Done), "{put:?}");
    streams.settle(name, Instant::now());
}

fn texts<'i>(items: impl IntoIterator<Item = &'i Item>) -> Vec<String> {
    let text = |item: &Item| String::from_utf8_lossy(item.message()).into_owned();
    items.into_iter().map(text).collect()
}

fn again(opened: &Opened) -> Vec<(u64, String)> {
    let one = |(number, item): &(u64, Item)| (*number, texts([item]).remove(0));
    opened.again.iter().map(one).collect()
}

fn resume(streams: &mut Streams, name: Name, event: u64) -> (Opened, Receiver<Item>) {
    let (pipe, reader) = channel(4);
    (streams.resume(name, event, pipe).unwrap(), reader)
}

/// What is in a stream, not waiting for more.
fn unread(reader: &mut Receiver<Item>) -> Vec<Item> {
    std::iter::from_fn(|| reader.try_recv().ok()).collect()
}

/// The reader of a stream is gone, having read the first `read` of its events.
fn leave(
    streams: &mut Streams,
    opened: &Opened,
    reader: Receiver<Item>,
    read: usize,
) -> Vec<String> {
    let mut reader = reader;
    reader.close();
    let items = unread(&mut reader).into_iter();
    let unread = (opened.from..).zip(items).skip(read).collect();
    let back = streams.leave((opened.name, opened.reader), unread, Instant::now());
    texts(&back)
}

#[test]
fn a_message_prefers_the_stream_of_its_cause() {
    let ((one, two), mut streams) = (legs(), Streams::new(4, true));
    assert!(!streams.has_route(None, Face::Legacy));
    let (_, mut a) = call(&mut streams, one);
    put(&mut streams, None, "to the only one");
    let (_, mut b) = call(&mut streams, two);
    put(&mut streams, Some(one), "to a");
    let (pipe, mut standalone) = channel(4);
    streams.open_standalone(pipe);
    put(&mut streams, None, "to the standalone one");
    put(&mut streams, Some(two), "to b");
    assert_eq!(texts(&unread(&mut a)), ["to the only one", "to a"]);
    assert_eq!(texts(&unread(&mut b)), ["to b"]);
    assert_eq!(texts(&unread(&mut standalone)), ["to the standalone one"]);
    drop(standalone);
    streams.end_call(one);
    put(&mut streams, Some(one), "to whoever is left");
    assert_eq!(texts(&unread(&mut b)), ["to whoever is left"]);
}

#[test]
fn a_client_comes_back_to_what_it_has_not_read_and_to_what_is_to_come() {
    let (mut streams, leg, opened, reader) = with_call();
    for text in ["one", "two", "three"] {
        put(&mut streams, Some(leg), text);
    }
    // All was sent; the second and the third were lost on the way.
    assert!(leave(&mut streams, &opened, reader, 3).is_empty());
    assert!(streams.is_awaited());
    let (opened, mut reader) = resume(&mut streams, opened.name, 1);
    assert_eq!(
        again(&opened),
        [(2, "two".to_owned()), (3, "three".to_owned())]
    );
    assert_eq!((opened.from, streams.is_awaited()), (4, false));
    conclude(&mut streams, leg);
    assert_eq!(texts(&unread(&mut reader)), ["outcome"]);
    assert!(
        reader
            .try_recv()
            .is_err_and(|it| it == tokio::sync::mpsc::error::TryRecvError::Disconnected)
    );
}

#[test]
fn what_was_never_sent_finds_another_stream_and_is_not_read_twice() {
    let (mut streams, leg, opened, reader) = with_call();
    put(&mut streams, Some(leg), "sent");
    put(&mut streams, Some(leg), "left");
    assert_eq!(leave(&mut streams, &opened, reader, 1), ["left"]);
    let (opened, _reader) = resume(&mut streams, opened.name, 0);
    assert_eq!(again(&opened), [(1, "sent".to_owned())]);
    assert_eq!(opened.from, 3);
}

#[test]
fn an_outcome_waits_for_who_comes_back() {
    for read in [0, 1] {
        let (mut streams, leg, opened, reader) = with_call();
        conclude(&mut streams, leg);
        // It was in the stream, sent or not.
        assert!(leave(&mut streams, &opened, reader, read).is_empty());
        let (back, mut reader) = resume(&mut streams, opened.name, 0);
        assert_eq!(again(&back), [(1, "outcome".to_owned())]);
        assert_eq!(
            reader.try_recv().unwrap_err(),
            tokio::sync::mpsc::error::TryRecvError::Disconnected
        );
    }
    let (mut streams, leg, opened, reader) = with_call();
    leave(&mut streams, &opened, reader, 0);
    conclude(&mut streams, leg);
    let (back, _reader) = resume(&mut streams, opened.name, 0);
    assert_eq!(again(&back), [(1, "outcome".to_owned())]);
}

#[test]
fn who_was_replaced_gives_nothing_back() {
    let (mut streams, leg, first, old) = with_call();
    put(&mut streams, Some(leg), "unread");
    let (second, mut reader) = resume(&mut streams, first.name, 0);
    assert_eq!(again(&second), [(1, "unread".to_owned())]);
    assert!(leave(&mut streams, &first, old, 0).is_empty());
    put(&mut streams, Some(leg), "new");
    assert_eq!(texts(&unread(&mut reader)), ["new"]);
}

#[test]
fn a_standalone_stream_goes_on_where_it_was() {
    let mut streams = Streams::new(4, true);
    let (pipe, reader) = channel(4);
    let opened = streams.open_standalone(pipe);
    put(&mut streams, None, "one");
    assert!(leave(&mut streams, &opened, reader, 1).is_empty());
    streams.waiting.hold(Item::Notice("meanwhile".into()));
    let (back, _reader) = resume(&mut streams, opened.name, 0);
    assert_eq!(again(&back), [(1, "one".to_owned())]);
    assert_eq!(
        (texts(&back.first), back.from),
        (vec!["meanwhile".to_owned()], 2)
    );
    assert_eq!(streams.count(), 1);
}

#[test]
fn what_nobody_comes_back_for_is_let_go() {
    let ((one, two), mut streams) = (legs(), Streams::new(4, true));
    let (over, reader) = call(&mut streams, one);
    conclude(&mut streams, one);
    leave(&mut streams, &over, reader, 0);
    let (left, reader) = call(&mut streams, two);
    leave(&mut streams, &left, reader, 0);
    let now = Instant::now();
    assert!(streams.sweep(now, PATIENCE).is_empty());
    assert_eq!(streams.sweep(now + PATIENCE, PATIENCE), [two]);
    let (pipe, _reader) = channel(1);
    assert!(streams.resume(over.name, 0, pipe).is_none());
    // A call whose client stays is nobody's to end.
    let (_attended, _reader) = resume(&mut streams, left.name, 0);
    assert!(streams.sweep(now + PATIENCE * 2, PATIENCE).is_empty());
}

#[test]
fn streams_of_the_past_are_bounded() {
    let (leg, _) = legs();
    let mut streams = Streams::new(4, true);
    let mut names = Vec::new();
    for _ in 0..100 {
        let (opened, _reader) = call(&mut streams, leg);
        conclude(&mut streams, leg);
        names.push(opened.name);
    }
    let known = |name: &&Name| streams.resume(**name, 0, channel(1).0).is_some();
    assert_eq!(names.iter().filter(known).count(), 32);
}

#[test]
fn a_client_without_event_ids_is_kept_nothing() {
    let (leg, _) = legs();
    let mut streams = Streams::new(4, false);
    let (opened, reader) = call(&mut streams, leg);
    put(&mut streams, Some(leg), "sent");
    leave(&mut streams, &opened, reader, 1);
    conclude(&mut streams, leg);
    assert!(streams.resume(opened.name, 0, channel(1).0).is_none());
}

#[test]
fn a_session_that_ends_still_gives_the_last_word() {
    let (mut streams, leg, _, mut reader) = with_call();
    streams.close();
    let put = streams.put(Some(leg), Face::Legacy, Item::Notice("late".into()));
    assert!(matches!(put, Put::Nowhere(_)), "{put:?}");
    let name = streams.end_call(leg).unwrap();
    let put = streams.put_outcome(name, Item::Outcome("the session ended".into()));
    assert!(matches!(put, Put::Done), "{put:?}");
    streams.settle(name, Instant::now());
    assert_eq!(texts(&unread(&mut reader)), ["the session ended"]);
}
