//! `contraflow demo`: the main job on one screen, with nothing else to install.
//!
//! A gateway, a real MCP server that asks questions (`server`, `calls`, `message`, `session`,
//! `booking`) and a played client (`client`, `play`) talk over loopback HTTP. `story` prints what
//! they say as it happens, `record` what the gateway wrote down about it. Then the gateway keeps
//! serving, for a client of the reader's own (`connect`).

mod booking;
mod calls;
mod client;
mod connect;
mod gateway;
mod message;
mod play;
mod record;
mod server;
mod session;
mod story;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use http::Uri;

use self::server::DemoServer;
use self::story::Story;
use super::Causes;
use crate::upstream::client::HttpClient;
use crate::{Gateway, StartError};

/// Options of `contraflow demo`.
#[derive(Args, Debug)]
pub struct Options {
    /// The port to listen on, on the loopback interface; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// End after the played conversation instead of serving on.
    #[arg(long)]
    once: bool,
}

/// Why the demo could not be shown.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error(
        "port {0} is in use by another program: choose another one with --port, \
         or let the system choose with --port 0"
    )]
    PortInUse(u16),
    #[error("the gateway does not start")]
    Gateway(#[source] StartError),
    #[error("the demo server does not start")]
    Server(#[source] io::Error),
    #[error("no runtime")]
    Runtime(#[source] io::Error),
    #[error("no folder for the audit log")]
    Folder(#[source] io::Error),
    #[error("the audit log {0} can't be read")]
    Audit(PathBuf, #[source] io::Error),
    #[error("the system's certificate store can't be read")]
    Certificates(#[from] rustls::Error),
    #[error(transparent)]
    Play(#[from] play::PlayError),
    #[error("the conversation did not end within {0:?}")]
    Stuck(Duration),
    #[error("an address makes no sense")]
    Address,
}

/// The conversation takes milliseconds; a machine that swaps gets some more.
const PATIENCE: Duration = Duration::from_mins(1);
const FAREWELL: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(5);

/// Shows the demo. Exit code 0 when the conversation went as it should, 1 otherwise.
pub fn run(options: &Options) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let shown = runtime
        .map_err(DemoError::Runtime)
        .and_then(|runtime| runtime.block_on(show(options, &Story::on_stdout())));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => super::problem(Causes(&error)),
    }
}

async fn show(options: &Options, story: &Story) -> Result<(), DemoError> {
    let folder = Folder::new().map_err(DemoError::Folder)?;
    let audit = folder.0.join("audit.jsonl");
    let server = DemoServer::start(story.clone())
        .await
        .map_err(DemoError::Server)?;
    let upstream = server.url().parse().map_err(|_| DemoError::Address)?;
    let gateway = gateway::start(options.port, upstream, &audit)
        .await
        .map_err(told)?;
    let url = gateway::endpoint(&gateway);

    introduce(story, &url, &server.url());
    let http = HttpClient::new(CONNECT)?;
    let address: Uri = url.parse().map_err(|_| DemoError::Address)?;
    tokio::time::timeout(PATIENCE, play::play(story, http, address))
        .await
        .map_err(|_| DemoError::Stuck(PATIENCE))??;

    if options.once {
        // The gateway first: it has a session to end at the server, and its log to complete.
        tokio::time::timeout(FAREWELL, gateway.shutdown())
            .await
            .ok();
        tokio::time::timeout(FAREWELL, server.shutdown()).await.ok();
        return tell_audit(story, &audit).await;
    }
    tell_audit(story, &audit).await?;
    story.aside(&format!(
        "Check it:  {} audit verify {}",
        program(),
        audit.display()
    ));
    story.aside("(The log goes with its folder when the demo ends.)");
    story.title("5  Connect a client of your own");
    connect::tell(story, &url);
    story.line("");
    story.line(&format!(
        "Serving at {url} until Ctrl-C. What the server hears and says appears here."
    ));
    story.line("");
    interrupted().await;
    end(gateway, server).await;
    Ok(())
}

/// This program, as a shell finds it.
fn program() -> String {
    std::env::current_exe().map_or_else(
        |_| "contraflow".to_owned(),
        |path| path.display().to_string(),
    )
}

fn told(error: StartError) -> DemoError {
    match error {
        StartError::InUse(address) => DemoError::PortInUse(address.port()),
        other => DemoError::Gateway(other),
    }
}

fn introduce(story: &Story, url: &str, upstream: &str) {
    story.title("Contraflow: a question finds its way back");
    story.line(&format!("gateway  {url}"));
    story.line(&format!(
        "server   {upstream}, books tables and asks before it does"
    ));
    story.line("client   played by this program, over HTTP like any other");
}

/// Ends both at once: the server's end closes the streams that clients hold open through the
/// gateway. Who pressed Ctrl-C is not kept waiting by anybody's open connection.
async fn end(gateway: Gateway, server: DemoServer) {
    let both = async { tokio::join!(gateway.shutdown(), server.shutdown()) };
    tokio::time::timeout(FAREWELL, both).await.ok();
}

async fn tell_audit(story: &Story, file: &Path) -> Result<(), DemoError> {
    record::tell(story, file)
        .await
        .map_err(|error| DemoError::Audit(file.to_owned(), error))
}

/// Waits for Ctrl-C, or for SIGTERM.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    tokio::signal::ctrl_c().await.ok();
}

/// A folder for this run alone, readable by its owner, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let name = format!("contraflow-demo-{}", std::process::id());
        for attempt in 0..100 {
            let path = std::env::temp_dir().join(format!("{name}-{attempt}"));
            let mut folder = std::fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
            match folder.create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
