//! Links without a server: what is put into one end comes out at the other.

use futures_util::FutureExt as _;

use super::*;

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;

fn link(manner: Manner) -> (Arc<Link>, Service) {
    Link::piped(manner, Troubles::of_nobody())
}

/// Posts a message, which there is room for.
fn post(link: &Arc<Link>, message: &str) -> Posted {
    let posted = link.post(Bytes::copy_from_slice(message.as_bytes()));
    posted.now_or_never().unwrap().unwrap()
}

fn call(link: &Arc<Link>) -> Answers {
    let Posted::Request(answers) = post(link, CALL) else {
        panic!("not sent");
    };
    answers
}

/// Gives a message of the server to the link; false when it waits for a reader.
fn take(service: &mut Service, message: &str) -> bool {
    let data = Bytes::copy_from_slice(message.as_bytes());
    service.intake.take(&data).now_or_never().is_some()
}

/// Gives the beginning of a message to the link; whether it knows what to do.
fn too_large(service: &mut Service, beginning: &'static str) -> bool {
    let taken = service
        .intake
        .too_large(&beginning.into(), &Bytes::new())
        .now_or_never();
    taken.unwrap()
}

fn sent(service: &mut Service) -> Option<String> {
    let line = service.outbox.try_recv().ok()?;
    Some(String::from_utf8(line.to_vec()).unwrap())
}

fn came(answers: &mut Answers) -> Option<Bytes> {
    answers.next().now_or_never().flatten()
}

#[test]
fn a_message_of_several_lines_is_sent_as_one() {
    let (link, mut service) = link(Manner::Session);
    let spread =
        "{\"jsonrpc\":\"2.0\",\r\n\"method\":\n\"notifications/x\",\"params\":{\"a\":\"\\n\"}}";
    assert!(matches!(post(&link, spread), Posted::Sent));
    assert_eq!(
        sent(&mut service).unwrap(),
        "{\"jsonrpc\":\"2.0\",  \"method\": \"notifications/x\",\"params\":{\"a\":\"\\n\"}}\n"
    );
}

#[test]
fn what_comes_for_a_request_ends_with_its_response() {
    let (link, mut service) = link(Manner::Session);
    let mut answers = call(&link);
    for message in [LOG, RESULT, LOG] {
        assert!(take(&mut service, message));
    }
    assert_eq!(came(&mut answers).unwrap(), LOG);
    assert_eq!(came(&mut answers).unwrap(), RESULT);
    assert_eq!(answers.next().now_or_never(), Some(None));
    assert!(service.intake.spoke);
}

#[test]
fn when_a_link_ends_who_waits_learns_it_and_nothing_more_is_sent() {
    let (link, mut service) = link(Manner::Session);
    let mut answers = call(&link);
    let mut rest = link.rest().unwrap();
    assert!(link.rest().is_none(), "somebody reads it");
    sent(&mut service).unwrap();
    drop(service.intake);
    assert_eq!(answers.next().now_or_never(), Some(None));
    assert_eq!(
        rest.try_recv(),
        Err(tokio::sync::mpsc::error::TryRecvError::Disconnected)
    );
    for message in [CALL, LOG] {
        assert!(matches!(post(&link, message), Posted::Ended));
    }
    assert!(link.has_ended() && service.outbox.try_recv().is_err());
    assert!(link.end().now_or_never().is_some());
}

/// From the moment at which it is to end, too: whoever was told so must be right.
#[test]
fn nothing_is_sent_on_a_link_that_is_to_end() {
    let (link, service) = link(Manner::Session);
    service.closing.cancel();
    assert!(matches!(post(&link, CALL), Posted::Ended));
    assert!(link.is_idle(), "nobody waits for what was not sent");
}

#[test]
fn a_link_that_nobody_uses_ends() {
    let (link, service) = link(Manner::Requests);
    let answers = call(&link);
    drop(link);
    assert!(!service.closing.is_cancelled(), "somebody still waits");
    drop(answers);
    assert!(service.closing.is_cancelled());
}

#[test]
fn not_to_wait_for_a_request_that_stands_for_itself_is_to_cancel_it() {
    let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n";
    for (manner, answered, expected) in [
        (Manner::Requests, false, Some(cancel)),
        (Manner::Requests, true, None),
        (Manner::Session, false, None),
    ] {
        let (link, mut service) = link(manner);
        let answers = call(&link);
        sent(&mut service).unwrap();
        if answered {
            take(&mut service, RESULT);
        }
        drop(answers);
        assert_eq!(
            sent(&mut service).as_deref(),
            expected,
            "{manner:?} {answered}"
        );
    }
}

#[test]
fn what_nobody_reads_yet_is_kept_and_the_newest_is_left_out() {
    let (link, mut service) = link(Manner::Session);
    let numbered = |number| LOG.replace("1}", &format!("{number}}}"));
    for number in 0..REST + 10 {
        assert!(take(&mut service, &numbered(number)));
    }
    let mut rest = link.rest().unwrap();
    let kept: Vec<_> = std::iter::from_fn(|| rest.try_recv().ok()).collect();
    let expected: Vec<_> = (0..REST).map(numbered).collect();
    assert_eq!(kept, expected);
}

#[test]
fn a_session_waits_for_a_slow_reader() {
    let (link, mut service) = link(Manner::Session);
    let mut answers = call(&link);
    let mut taken = 0;
    while take(&mut service, LOG) {
        taken += 1;
        assert!(taken < 1000, "it never waits");
    }
    assert!(came(&mut answers).is_some());
    assert!(take(&mut service, LOG));
}

/// Others have their calls on the same link.
#[test]
fn where_others_wait_too_a_slow_reader_loses_notices_and_never_the_response() {
    let (link, mut service) = link(Manner::Requests);
    let mut answers = call(&link);
    for message in std::iter::repeat_n(LOG, 1000).chain([RESULT]) {
        assert!(take(&mut service, message));
    }
    let all: Vec<_> = std::iter::from_fn(|| came(&mut answers)).collect();
    assert!((2..1000).contains(&all.len()), "{}", all.len());
    assert_eq!(all.last().unwrap(), RESULT);
}

#[test]
fn what_is_no_message_is_left_out_and_what_wants_an_answer_is_not() {
    let (link, mut service) = link(Manner::Session);
    let mut rest = link.rest().unwrap();
    for junk in [
        "Listening on port 3000",
        "[]",
        "42",
        "{",
        r#"{"a":1}"#,
        "\u{0}",
    ] {
        assert!(take(&mut service, junk), "{junk}");
    }
    assert!(rest.try_recv().is_err() && !service.intake.spoke);
    let twice = r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}"#;
    assert!(take(&mut service, twice));
    assert_eq!(rest.try_recv().unwrap(), twice);
}

#[test]
fn the_members_of_a_batch_are_messages() {
    let (link, mut service) = link(Manner::Session);
    let mut answers = call(&link);
    assert!(take(&mut service, &format!("[{LOG},7,{RESULT}]")));
    assert_eq!(came(&mut answers).unwrap(), LOG);
    assert_eq!(came(&mut answers).unwrap(), RESULT);
}

#[test]
fn of_a_line_that_is_too_large_the_beginning_may_say_whose_it_is() {
    for (beginning, known) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"x":""#, true),
        (r#"{"jsonrpc":"2.0","id": 1 ,"result":{"x":""#, true),
        (r#"{"id":1,"jsonrpc":"2.0","result":""#, true),
        (r#"{"jsonrpc":"2.0","id":2,"result":{"x":""#, false),
        (r#"{"jsonrpc":"2.0","result":{"x":""#, false),
        // The id is that of something in the result.
        (r#"{"jsonrpc":"2.0","result":{"id":1,"x":""#, false),
        (
            r#"{"jsonrpc":"2.0","result":{"y":{"id":1}},"id":1,"x":""#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","result":"\"id\":2,","id":1,"y":""#,
            true,
        ),
        (r#"{"jsonrpc":"2.0","result":"\"id\":1,"#, false),
        ("xxxxxxxx", false),
        ("", false),
    ] {
        let (link, mut service) = link(Manner::Session);
        let mut answers = call(&link);
        let found = too_large(&mut service, beginning);
        assert_eq!(found, known, "{beginning}");
        let told = came(&mut answers).is_some_and(|it| it.is_empty());
        assert_eq!(told, known, "{beginning}: its reader learns it");
    }
}

/// A server numbers its questions as we number ours, so that one of its could be taken for an answer.
#[test]
fn a_question_that_is_too_large_is_refused_and_is_no_answer() {
    let (link, mut service) = link(Manner::Session);
    let mut answers = call(&link);
    let mut rest = link.rest().unwrap();
    for beginning in [
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"x":""#,
        r#"{"method":"sampling/createMessage","id":1,"jsonrpc":"2.0","params":{"x":""#,
    ] {
        assert!(too_large(&mut service, beginning));
        assert_eq!(answers.next().now_or_never(), None, "{beginning}");
        let refused = message::id_of_unreadable(&rest.try_recv().unwrap());
        assert_eq!(refused.as_deref(), Some("1"), "{beginning}");
    }
}

#[test]
fn a_notification_that_is_too_large_is_left_out() {
    let (_link, mut service) = link(Manner::Session);
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":""#;
    assert!(too_large(&mut service, log));
}
