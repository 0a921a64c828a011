//! What three parts cost that every call passes, without anything around them: `cargo bench --bench parts`.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::print_stdout, reason = "the figures are for a terminal")]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use contraflow::auth::Principal;
use contraflow::config::Config;
use contraflow::limit::Limiter;
use contraflow::protocol::message::Message;
use contraflow::protocol::sse;
use contraflow::telemetry::audit::{Audit, Outcome, Record};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Limits that are switched on and not met.
const LIMITS: &str = "requests: 1000000000/s, burst: 1000000000, concurrent: 1000";

fn main() -> Fallible<()> {
    limit("no limits", "{}", "{}")?;
    let on = format!("{{ {LIMITS} }}");
    limit("all four limits", &on, &on)?;
    for size in [256, 64 * 1024] {
        envelope(size)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(audit())
}

fn config(server: &str, principal: &str, more: &str) -> Fallible<Config> {
    let text = format!(
        "servers: {{ booking: {{ url: \"http://127.0.0.1:9/mcp\", limits: {server} }} }}\nlimits: {{ per_principal: {principal} }}\n{more}"
    );
    Config::parse("parts.yaml", &text, &|_| None).map_err(|problems| problems.to_string().into())
}

fn someone() -> Principal {
    Principal::token("https://login.example.com", "alice", Some("vscode"))
}

/// An admission and its end.
fn limit(name: &str, server: &str, principal: &str) -> Fallible<()> {
    const COUNT: u32 = 1_000_000;
    let config = config(server, principal, "")?;
    let limiter = Limiter::new(&config);
    let alice = someone();
    let (server, _) = config.servers.first_key_value().ok_or("no server")?;
    let start = Instant::now();
    for _ in 0..COUNT {
        drop(limiter.admit(server, &alice).map_err(|_| "limited")?);
    }
    let looked_up = start.elapsed() / COUNT;
    let standing = limiter.standing(server, &alice);
    let start = Instant::now();
    for _ in 0..COUNT {
        drop(limiter.admit_known(&standing).map_err(|_| "limited")?);
    }
    println!(
        "{name}: {:?} an admission in a session, {looked_up:?} without one",
        start.elapsed() / COUNT
    );
    Ok(())
}

/// A message as each one is read, looked into and given another id, and as an event.
fn envelope(size: usize) -> Fallible<()> {
    const BYTES: usize = 256 << 20;
    let count = u32::try_from((BYTES / size).min(500_000))?;
    let text = "word ".repeat(size / 5);
    let each = |what: &str, run: &mut dyn FnMut() -> Fallible<()>| -> Fallible<()> {
        let start = Instant::now();
        for _ in 0..count {
            run()?;
        }
        println!("{what}, {size} B: {:?}", start.elapsed() / count);
        Ok(())
    };
    let request = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
    ));
    each("a request, read", &mut || {
        black_box(Message::parse(&request)?);
        Ok(())
    })?;
    let message = Message::parse(&request)?;
    each("its parameters, looked at", &mut || {
        black_box(message.param(["name", "_meta"])?);
        Ok(())
    })?;
    each("another id", &mut || {
        black_box(message.with_id("\"a1\""));
        Ok(())
    })?;
    each("an event, written", &mut || {
        black_box(sse::encode(Some("1-1"), &request));
        Ok(())
    })?;
    let event = sse::encode(Some("1-1"), &request);
    let mut decoder = sse::Decoder::new(1 << 20);
    each("an event, read", &mut || {
        decoder.push(&event);
        black_box(decoder.next_event()?);
        Ok(())
    })
}

/// A record, from the caller's hand to the disk.
async fn audit() -> Fallible<()> {
    const COUNT: u32 = 200_000;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("audit.jsonl");
    let log = format!("audit: {{ file: \"{}\" }}", file.display());
    let config = config("{}", "{}", &log)?;
    let (server, _) = config.servers.first_key_value().ok_or("no server")?;
    let audit = Audit::open(config.audit.as_ref().ok_or("no audit log")?)?;
    let alice = someone();
    let start = Instant::now();
    let mut caller = Duration::ZERO;
    for _ in 0..COUNT {
        let before = Instant::now();
        let slot = audit.reserve().await.map_err(|_| "the log is full")?;
        let reserved = before.elapsed();
        let before = Instant::now();
        slot.write(
            Record::call(SystemTime::now())
                .principal(&alice)
                .server(server)
                .session("5f2a91c3")
                .request("01J0000000000000")
                .method("tools/call")
                .target("book_table")
                .outcome(Outcome::Ok)
                .duration(Duration::from_millis(3)),
        );
        // Waiting for room is the disk's cost, not the caller's.
        caller += before.elapsed() + reserved.min(Duration::from_micros(2));
    }
    audit.close().await;
    let all = start.elapsed();
    let bytes = std::fs::metadata(&file)?.len();
    println!(
        "audit: {:?} a record for the caller, {:?} through to the disk, {} bytes",
        caller / COUNT,
        all / COUNT,
        bytes / u64::from(COUNT)
    );
    Ok(())
}
