//! The gateway as a process of its own, with tokens, limits and an audit log switched on.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::Fallible;
use crate::process::{Cores, Process};
use crate::token::{AUDIENCE, NAME};

const BINARY: &str = env!("CARGO_BIN_EXE_contraflow");

/// A gateway that serves. It ends with this value.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
    child: Child,
    /// Whether it is run by something that wants to write down what it saw.
    observed: bool,
}

impl Gateway {
    /// Starts one before the server at this address; its files are in `folder`.
    pub(crate) async fn start(
        (cores, under): (&Cores, &[String]),
        server: SocketAddr,
        folder: &Path,
        keys: &Path,
    ) -> Fallible<Self> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join("gateway.yaml");
        std::fs::write(&file, configuration(server, folder, keys))?;
        let mut words = under.iter().map(String::as_str).chain([BINARY]);
        let mut child = cores
            .measured(words.next().unwrap_or(BINARY))
            .args(words)
            .args(["serve", "--config"])
            .arg(&file)
            .env_remove("CONTRAFLOW_LOG")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let process = Process(child.id().ok_or("the gateway ended")?);
        let stderr = child.stderr.take().ok_or("no standard error")?;
        let mut lines = BufReader::new(stderr).lines();
        let mut said = String::new();
        let address = loop {
            let Some(line) = lines.next_line().await? else {
                return Err(format!("the gateway ended: {said}").into());
            };
            if let Some((_, address)) = line.split_once("listening on http://") {
                break address.trim().parse()?;
            }
            said = said + &line + "\n";
        };
        // What it says besides must be read, or it would wait for that.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self {
            address,
            process,
            child,
            observed: !under.is_empty(),
        })
    }
}

/// Gives the one who observes it time to write.
impl Drop for Gateway {
    fn drop(&mut self) {
        const PAUSE: Duration = Duration::from_millis(100);
        if !self.observed {
            return;
        }
        let mut kill = std::process::Command::new("kill");
        let _told = kill.arg(self.process.0.to_string()).status();
        for _ in 0..600 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// All limits are switched on, and so high that none is met.
fn configuration(server: SocketAddr, folder: &Path, keys: &Path) -> String {
    let (keys, audit) = (keys.display(), folder.join("audit.jsonl"));
    let audit = audit.display();
    let rates = "requests: 1000000/s, burst: 1000000, concurrent: 100000";
    let questions = "{ limits: { per_call: 8, pending: 100000, rate: 1000000/s }, timeout: 1h }";
    format!(
        r#"listen: 127.0.0.1:0
public_url: {AUDIENCE}
servers:
  legacy: {{ url: "http://{server}/mcp/legacy", era: legacy, limits: {{ {rates} }}, questions: {questions} }}
  modern: {{ url: "http://{server}/mcp/modern", era: modern, limits: {{ {rates} }}, questions: {questions} }}
auth: {{ issuers: [ {{ issuer: "{NAME}", jwks_file: "{keys}", audiences: ["{AUDIENCE}"] }} ] }}
limits:
  per_principal: {{ {rates}, sessions: 100000, questions: 100000 }}
  streams: 10000
timeouts: {{ call: 1h, idle: 30m }}
sessions: {{ idle: 1h, max: 100000 }}
audit: {{ file: "{audit}" }}
"#
    )
}
