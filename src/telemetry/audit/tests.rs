//! The audit log with real files, a real full disk and a real slow reader.
//!
//! `/dev/full` takes nothing, ever. A pipe that nobody reads takes 64 KiB and then blocks. A file size
//! limit, in a child process, makes a write end in the middle of a line and lets it go on later.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use futures_util::FutureExt;
use serde_json::Value;

use super::chain::Link;
use super::*;

fn config(file: &Path, when_full: WhenFull) -> AuditLog {
    AuditLog {
        file: file.to_owned(),
        when_full,
    }
}

fn open(file: &Path) -> Audit {
    Audit::open(&config(file, WhenFull::Block)).unwrap()
}

fn call(target: &str) -> Record {
    Record::call(UNIX_EPOCH + Duration::from_secs(1)).target(target)
}

fn records(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn intact(file: &Path) -> u64 {
    let file = io::BufReader::new(File::open(file).unwrap());
    verify::verify(file, None, |_| ()).unwrap().unwrap().records
}

/// Waits until a condition holds; that it never does is the failure.
#[expect(
    clippy::disallowed_methods,
    reason = "a test that hangs should say where"
)]
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_is_written_is_in_the_file_in_order_after_close() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = open(&file);
    let slot = audit.reserve().await.unwrap();
    audit.write(Record::gateway_started(UNIX_EPOCH)).await;
    slot.write(call("book"));
    drop(audit.reserve().await.unwrap());
    audit.close().await;

    assert_eq!(intact(&file), 2);
    let lines = records(&file);
    assert_eq!(
        (&lines[0]["type"], &lines[0]["seq"]),
        (&"gateway.started".into(), &1.into())
    );
    assert_eq!(
        (&lines[1]["target"], &lines[1]["seq"]),
        (&"book".into(), &2.into())
    );
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn records_reach_the_file_without_close() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = open(&file);
    audit.write(call("book")).await;
    eventually("a line", || intact_or_zero(&file) == 1).await;
    audit.close().await;
}

fn intact_or_zero(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

#[tokio::test]
async fn closing_twice_and_writing_afterwards_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = open(&file);
    let slot = audit.reserve().await.unwrap();
    tokio::join!(audit.close(), audit.close());
    audit.close().await;
    slot.write(call("late"));
    audit.write(call("late")).await;
    assert_eq!(audit.reserve().await.unwrap_err(), AuditFull);
    assert_eq!(intact(&file), 0);
}

#[tokio::test]
async fn an_audit_log_that_is_off_takes_everything() {
    let audit = Audit::off();
    audit.reserve().await.unwrap().write(call("book"));
    audit.write(call("book")).await;
    audit.close().await;
}

#[tokio::test]
async fn the_chain_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    for start in 1..=3 {
        let audit = open(&file);
        audit.write(call("book")).await;
        audit.close().await;
        assert_eq!(intact(&file), start);
    }
}

#[tokio::test]
async fn without_a_handle_the_thread_writes_what_it_has_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = open(&file);
    let slot = audit.reserve().await.unwrap();
    audit.write(call("one")).await;
    drop(audit);
    slot.write(call("two"));
    eventually("the lock is free", || {
        Audit::open(&config(&file, WhenFull::Block)).is_ok()
    })
    .await;
    assert_eq!(intact(&file), 2);
}

#[tokio::test]
async fn a_torn_last_line_is_cut_off_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = open(&file);
    audit.write(call("book")).await;
    audit.close().await;
    OpenOptions::new()
        .append(true)
        .open(&file)
        .unwrap()
        .write_all(b"{\"v\":1,\"seq\":2,\"ti")
        .unwrap();

    let audit = open(&file);
    audit.write(call("cancel")).await;
    audit.close().await;
    assert_eq!(intact(&file), 3);
    let gap = &records(&file)[1];
    assert_eq!(gap["type"], "audit.gap");
    assert_eq!(
        (&gap["reason"], &gap["bytes"]),
        (&"torn_line".into(), &18.into())
    );
}

#[tokio::test]
async fn a_whole_last_line_that_misses_only_its_newline_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = open(&file);
    audit.write(call("book")).await;
    audit.close().await;
    let handle = OpenOptions::new().write(true).open(&file).unwrap();
    handle
        .set_len(handle.metadata().unwrap().len() - 1)
        .unwrap();

    let audit = open(&file);
    audit.write(call("cancel")).await;
    audit.close().await;
    assert_eq!(intact(&file), 2);
}

#[test]
fn a_file_that_is_not_our_log_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "buy milk").unwrap();
    let error = Audit::open(&config(&file, WhenFull::Block)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: its last line can't be continued: it is not an audit record; \
             move the file away or name another one",
            file.display()
        )
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "buy milk");
}

#[tokio::test]
async fn two_gateways_do_not_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = open(&file);
    let error = Audit::open(&config(&file, WhenFull::Block)).unwrap_err();
    assert!(
        error.to_string().ends_with("another process writes to it"),
        "{error}"
    );
    audit.close().await;
    open(&file).close().await;
}

#[test]
fn a_folder_that_does_not_exist_is_a_clear_error() {
    let error =
        Audit::open(&config(Path::new("/nowhere/audit.jsonl"), WhenFull::Block)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the folder /nowhere doesn't exist; create it or change audit.file"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_lose_nothing() {
    const TASKS: usize = 64;
    const EACH: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    // Very little room, so that tasks really wait for each other.
    let audit = Audit::with_bounds(&config(&file, WhenFull::Block), 8, 32).unwrap();
    let tasks = (0..TASKS).map(|task| {
        let audit = audit.clone();
        async move {
            for number in 0..EACH {
                let slot = audit.reserve().await.unwrap();
                audit.write(Record::question_asked(UNIX_EPOCH)).await;
                slot.write(call(&format!("{task}/{number}")));
            }
        }
    });
    futures_util::future::join_all(tasks).await;
    audit.close().await;
    assert_eq!(intact(&file), (TASKS * EACH * 2) as u64);
    let targets: std::collections::BTreeSet<String> = records(&file)
        .iter()
        .filter_map(|record| record["target"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(targets.len(), TASKS * EACH);
}

/// On `/dev/full`: fills what the writer takes out of the queue, then the room.
async fn filled(when_full: WhenFull) -> Audit {
    let audit = Audit::with_bounds(&config(Path::new("/dev/full"), when_full), 4, 16).unwrap();
    for number in 0..4 {
        audit.write(call(&number.to_string())).await;
    }
    audit
}

#[tokio::test]
async fn on_a_full_disk_block_lets_work_wait() {
    let audit = filled(WhenFull::Block).await;
    let mut reserve = std::pin::pin!(audit.reserve());
    let mut write = std::pin::pin!(audit.write(call("waits")));
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert!(reserve.as_mut().now_or_never().is_none());
        assert!(write.as_mut().now_or_never().is_none());
    }
}

#[tokio::test]
async fn on_a_full_disk_refuse_refuses_work_but_keeps_its_promises() {
    let audit =
        Audit::with_bounds(&config(Path::new("/dev/full"), WhenFull::Refuse), 4, 16).unwrap();
    let slot = audit.reserve().await.unwrap();
    for number in 0..4 {
        audit.write(call(&number.to_string())).await;
    }
    assert_eq!(audit.reserve().await.unwrap_err(), AuditFull);
    audit
        .write(call("dropped"))
        .now_or_never()
        .expect("does not wait");
    slot.write(call("promised"));
}

#[tokio::test]
async fn on_a_full_disk_drop_goes_on_without_records() {
    let audit = filled(WhenFull::Drop).await;
    for _ in 0..100 {
        let slot = audit
            .reserve()
            .now_or_never()
            .expect("does not wait")
            .unwrap();
        slot.write(call("dropped"));
    }
}

#[tokio::test]
async fn a_held_slot_is_not_room_so_questions_of_long_calls_are_still_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let audit = Audit::with_bounds(&config(&file, WhenFull::Refuse), 2, 16).unwrap();
    let mut slots = vec![];
    for _ in 0..16 {
        slots.push(audit.reserve().await.unwrap());
    }
    assert_eq!(audit.reserve().await.unwrap_err(), AuditFull);
    audit.write(Record::question_asked(UNIX_EPOCH)).await;
    for slot in slots {
        slot.write(call("long"));
    }
    audit.close().await;
    assert_eq!(intact(&file), 17);
}

/// A pipe with both ends in hand: records go in while nobody reads.
fn pipe(folder: &Path) -> (PathBuf, File) {
    let path = folder.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let reader = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    (path, reader)
}

#[tokio::test]
async fn what_was_dropped_becomes_a_gap_record_where_it_is_missing() {
    // Several times what a pipe and the queue hold.
    const COUNT: usize = 4000;
    let folder = tempfile::tempdir().unwrap();
    let (path, mut reader) = pipe(folder.path());
    let audit = Audit::with_bounds(&config(&path, WhenFull::Drop), 16, 16).unwrap();
    let long = "x".repeat(250);
    for number in 0..COUNT {
        audit.write(call(&number.to_string()).method(&long)).await;
    }
    let last = COUNT.to_string();
    let drain = std::thread::spawn(move || {
        let (mut lines, mut bytes, mut chunk) = (vec![], vec![], [0; 4096]);
        while !lines.iter().any(|line: &Value| line["target"] == last) {
            let count = reader.read(&mut chunk).unwrap();
            bytes.extend_from_slice(&chunk[..count]);
            while let Some(end) = memchr::memchr(b'\n', &bytes) {
                let line: Vec<u8> = bytes.drain(..=end).collect();
                Link::parse(&line[..end]).unwrap();
                lines.push(serde_json::from_slice(&line).unwrap());
            }
        }
        lines
    });
    let room = || audit.0.as_ref().unwrap().queue.try_room();
    eventually("room", || room().is_some()).await;
    audit.write(call(&COUNT.to_string())).await;
    audit.close().await;

    let mut expected = 0;
    let mut gaps = 0;
    for line in drain.join().unwrap() {
        if line["type"] == "audit.gap" {
            assert_eq!(line["reason"], "queue_full");
            expected += usize::try_from(line["count"].as_u64().unwrap()).unwrap();
            gaps += 1;
        } else {
            assert_eq!(line["target"], expected.to_string());
            expected += 1;
        }
    }
    assert_eq!(expected, COUNT + 1);
    assert!(gaps > 0);
}

/// Writes until it is killed, when it runs in the child process of the next test.
#[tokio::test]
async fn writes_until_killed() {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    let audit = open(&folder.join("audit.jsonl"));
    loop {
        let slot = audit.reserve().await.unwrap();
        audit.write(Record::question_asked(UNIX_EPOCH)).await;
        slot.write(call("book"));
    }
}

#[tokio::test]
async fn a_gateway_that_was_killed_leaves_a_log_that_the_next_one_continues() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "telemetry::audit::tests::writes_until_killed"])
            .env(CHILD, folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let len = || std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
        eventually("many records", || len() > round * 500_000).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let audit = open(&file);
    audit.write(call("after")).await;
    audit.close().await;
    assert!(intact(&file) > 5_000);
    assert_eq!(records(&file).last().unwrap()["target"], "after");
}

const CHILD: &str = "CONTRAFLOW_TEST_SMALL_DISK";

/// Runs in a child process whose files can't grow over 32 KiB: a write ends in the middle of a line,
/// the next one fails. Then the log is moved away piece by piece, as `copytruncate` does.
#[tokio::test]
async fn after_a_full_disk_the_rest_of_the_line_comes_first_and_the_chain_is_whole() {
    const COUNT: usize = 400;
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else {
        return small_disk(
            "after_a_full_disk_the_rest_of_the_line_comes_first_and_the_chain_is_whole",
        );
    };
    let file = folder.join("audit.jsonl");
    let audit = open(&file);
    for number in 0..COUNT {
        audit.write(call(&number.to_string())).await;
    }
    let mut whole = vec![];
    let mut pieces = 0;
    while memchr::memchr_iter(b'\n', &whole).count() < COUNT {
        let full = || std::fs::metadata(&file).unwrap().len() >= 32 * 1024;
        let last = || {
            memchr::memchr_iter(
                b'\n',
                &[whole.clone(), std::fs::read(&file).unwrap()].concat(),
            )
            .count()
                == COUNT
        };
        eventually("the disk is full or all is written", || full() || last()).await;
        whole.extend(std::fs::read(&file).unwrap());
        OpenOptions::new()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(0)
            .unwrap();
        pieces += 1;
    }
    audit.close().await;
    assert!(pieces > 2, "{pieces}");
    let result = verify::verify(whole.as_slice(), None, |_| ())
        .unwrap()
        .unwrap();
    assert_eq!(result.records, COUNT as u64);
}

/// Runs one test of this binary again, with a small limit on the size of files.
fn small_disk(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    // 64 blocks of 512 bytes; without the trap the limit would kill the process.
    let script = "trap '' XFSZ; ulimit -S -f 64; exec \"$0\" --exact \"$1\" --nocapture";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(format!("telemetry::audit::tests::{test}"))
        .env(CHILD, folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}\n{complaints}"
    );
}

#[tokio::test]
async fn closing_on_a_disk_that_takes_nothing_gives_up_and_ends_the_thread() {
    let audit = filled(WhenFull::Refuse).await;
    audit.close().await;
    assert!(*audit.0.as_ref().unwrap().ended.borrow());
    assert_eq!(audit.reserve().await.unwrap_err(), AuditFull);
}
