//! The command line: a file a command.
//!
//! # Exit codes
//!
//! | code | meaning |
//! |---|---|
//! | 0 | it is as it should be, or it ended as asked |
//! | 1 | a problem, told on standard error |
//! | 2 | the command line itself is wrong |

pub mod ask;
pub mod audit;
pub mod check;
pub mod demo;
pub mod health;
pub mod serve;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::telemetry::Causes;
use crate::telemetry::audit::chain::Hash;
use crate::upstream::warden;

/// The bidirectional gateway for the Model Context Protocol: calls go up to the servers, and the
/// questions that servers ask come back to the one client that caused them.
#[derive(Debug, Parser)]
#[command(name = "contraflow", version, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 fine, 1 a problem (told on standard error), 2 wrong usage.")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway until SIGTERM or Ctrl-C.
    #[command(after_help = SERVE_HELP)]
    Serve {
        /// The configuration, YAML; `config/minimal.yaml` is the shortest one.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Watch a question find its way back: a gateway, a server that asks, and a played client.
    Demo(demo::Options),
    /// Read a configuration and tell every problem in it, each with file, line and column.
    Check {
        /// The configuration to read.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Also ask every server what it speaks: its era, versions and capabilities.
        #[arg(long)]
        probe: bool,
    },
    /// Try out what becomes of a question: each step of the policy with its verdict, and what the
    /// server gets. Hooks run for real; nobody is asked.
    Ask(ask::Options),
    /// Work with audit logs.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Ask a running gateway whether it is alive (for container health checks).
    Health(health::Options),
    /// Kill the processes that a gateway leaves behind; started by the gateway itself.
    #[command(name = warden::COMMAND, hide = true)]
    Warden,
}

const SERVE_HELP: &str = "\
Environment:
  CONTRAFLOW_LOG         what is logged, on standard error: `debug`, `warn`,
                         `info,contraflow::auth=debug`; else RUST_LOG says it, else `info`
  CONTRAFLOW_LOG_FORMAT  `text` or `json`, one object a line
  NAME                   what `${NAME}` stands for in the configuration

SIGTERM or Ctrl-C ends the gateway when its calls have ended; a second one ends it at once.";

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Check that no line of an audit log was changed, removed or put in before its last one.
    ///
    /// A log that was cut at its end looks intact and shorter. Keep the newest hash that this command
    /// prints away from the log: `--newest` tells later whether it is still in it.
    Verify {
        /// A hash that was the newest once: exit code 1 when no record has it.
        #[arg(long, value_name = "HASH")]
        newest: Option<Hash>,
        /// The logs, oldest first.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

/// Runs the command that `arguments` (the program's name first) ask for.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = match CommandLine::try_parse_from(arguments) {
        Ok(line) => line.command,
        Err(told) => {
            // Help goes to standard output with code 0, a usage error to standard error with 2.
            told.print().ok();
            return u8::try_from(told.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    match command {
        Command::Serve { config } => serve::run(&config),
        Command::Demo(options) => demo::run(&options),
        Command::Check { config, probe } => check::run(&config, probe),
        Command::Ask(options) => ask::run(&options),
        Command::Audit(AuditCommand::Verify { newest, files }) => {
            audit::verify(&files, newest.as_ref())
        }
        Command::Health(options) => health::run(&options),
        Command::Warden => {
            warden::keep(std::io::stdin().lock());
            ExitCode::SUCCESS
        }
    }
}

/// Tells a problem on standard error; exit code 1.
#[expect(clippy::print_stderr, reason = "the command line is where people read")]
fn problem(text: impl fmt::Display) -> ExitCode {
    eprintln!("contraflow: {text}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::error::ErrorKind> {
        CommandLine::try_parse_from(line.split(' '))
            .map(|line| line.command)
            .map_err(|e| e.kind())
    }

    #[test]
    fn the_commands_are_what_the_documentation_says() {
        for line in [
            "contraflow serve --config gateway.yaml",
            "contraflow check --config gateway.yaml",
            "contraflow check --config gateway.yaml --probe",
            "contraflow ask --config gateway.yaml --server memory --form form.json",
            "contraflow ask --config gateway.yaml --server memory --form - --tool create_entities \
             --arguments args.json --client ci --principal mira --headless --answer answer.json",
            "contraflow audit verify audit.jsonl older.jsonl",
            "contraflow demo",
            "contraflow demo --port 9000 --once",
            "contraflow health",
            "contraflow health --url http://127.0.0.1:9000/healthz",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_command_without_what_it_needs_is_a_usage_error() {
        for line in [
            "contraflow serve",
            "contraflow check",
            "contraflow ask --config gateway.yaml --server memory",
            "contraflow audit verify",
            "contraflow audit verify --newest 123 audit.jsonl",
            "contraflow fly",
        ] {
            let told = CommandLine::try_parse_from(line.split(' ')).expect_err(line);
            assert_eq!(told.exit_code(), 2, "{line}");
        }
    }
}
