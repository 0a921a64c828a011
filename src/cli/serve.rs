//! `contraflow serve`: runs the gateway until SIGTERM or Ctrl-C.

use std::path::Path;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::{Causes, problem};
use crate::Gateway;
use crate::auth::is_key_set;
use crate::config::{Access, At, Config};
use crate::telemetry::{LogFormat, init_logs};
use crate::upstream::warden::Warden;

/// The signal that says that a file has reached the size limit of the process.
const SIGXFSZ: i32 = 25;

/// Reads the configuration, serves, and ends when told to. A second signal ends at once.
pub fn run(path: &Path) -> ExitCode {
    let config = match Config::load(path, &|name| std::env::var(name).ok(), &is_key_set) {
        Ok(config) => config,
        Err(problems) => return problem(problems),
    };
    if let Err(error) = LogFormat::from_env().and_then(init_logs) {
        return problem(Causes(&error));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return problem(error),
    };
    runtime.block_on(serve(config))
}

async fn serve(config: Config) -> ExitCode {
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    match &config.access {
        Access::Local => {
            tracing::warn!("no `auth`: everybody on this machine is the principal `local`");
        }
        Access::Open => tracing::warn!("`auth: open`: whoever reaches the gateway may use it"),
        Access::Required(_) => {}
    }
    let (mut terminate, mut interrupt) = match (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => return problem(error),
    };
    // A file that may not grow is a full disk, which the audit log knows how to deal with; left
    // alone, the signal would end the process.
    let _file_size = signal(SignalKind::from_raw(SIGXFSZ));
    let warden = match warden(&config) {
        Ok(warden) => warden,
        Err(error) => return problem(format_args!("the warden can't be started: {error}")),
    };
    let gateway = match Gateway::start_watched(config, warden.as_ref()).await {
        Ok(gateway) => gateway,
        Err(error) => return problem(Causes(&error)),
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("ending: calls in flight get time to finish");
    tokio::select! {
        () = gateway.shutdown() => ExitCode::SUCCESS,
        _ = terminate.recv() => problem("ended at once by a second signal"),
        _ = interrupt.recv() => problem("ended at once by a second signal"),
    }
}

/// Who sees to it that no process of a server outlives the gateway, where a server has processes.
fn warden(config: &Config) -> std::io::Result<Option<Warden>> {
    let mut servers = config.servers.values();
    if !servers.any(|server| matches!(server.at, At::Stdio(_))) {
        return Ok(None);
    }
    Warden::start(&std::env::current_exe()?).map(Some)
}
