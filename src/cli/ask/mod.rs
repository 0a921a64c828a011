//! `contraflow ask`: a dry run. One question goes the way that the policy of its server has for it, and
//! each step is told with its verdict.
//!
//! Nobody is asked: not the server, no client, no person. The answer of a person can be played, and hooks
//! are real: a command runs, and a URL is asked. What the limits would say depends on other questions, so
//! they are named and not counted.
//!
//! # Invariants
//! - The way is that of [`Policy`], which the gateway walks too; nothing is decided here.
//! - Whatever the verdict is, the exit code is 0: it is not the command that said no.

mod read;
mod report;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use bytes::Bytes;
use clap::Args;
use tokio_util::task::TaskTracker;

use self::read::Unread;
use self::report::Report;
use super::{Causes, problem};
use crate::auth::is_key_set;
use crate::config::{Access, Config};
use crate::policy::{By, Case, Kind, Person, Policy, Question, Refusal, Review, Verdict};
use crate::protocol::capability::{ClientCapabilities, Undeclared};
use crate::protocol::message::{Malformed, Message};
use crate::upstream::client::HttpClient;

/// Options of `contraflow ask`.
#[derive(Args, Debug)]
pub struct Options {
    /// The configuration with the policy.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The server that asks, by its name in the configuration.
    #[arg(long, value_name = "NAME")]
    server: String,
    /// What it asks: the `params` of an `elicitation/create`, or a JSON Schema of type object alone;
    /// `-` for standard input.
    #[arg(long, value_name = "FILE")]
    form: PathBuf,
    /// The tool in whose call it asks.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The arguments of that call, a JSON object.
    #[arg(long, value_name = "FILE")]
    arguments: Option<PathBuf>,
    /// The name of the client program.
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Whom it asks, as logs name them: `mira`, `key:ci`, `alice@https://login.example.com`.
    #[arg(long, value_name = "NAME", default_value = "local")]
    principal: String,
    /// Nobody sits there who could be asked.
    #[arg(long)]
    headless: bool,
    /// What the person answers: the `result` of an answer, as `{"action":"decline"}`.
    #[arg(long, value_name = "FILE")]
    answer: Option<PathBuf>,
}

/// Why nothing can be tried.
#[derive(Debug, thiserror::Error)]
enum NoRun {
    #[error(transparent)]
    File(#[from] Unread),
    #[error("{0}")]
    Server(String),
    #[error("the question can't be read")]
    Question(#[from] Malformed),
    #[error("the system's certificate store can't be read")]
    Certificates(#[from] rustls::Error),
    #[error("no runtime")]
    Runtime(#[from] io::Error),
}

/// How the way of a question ends.
#[derive(Debug)]
enum End {
    /// The person is asked.
    Asked,
    /// The person is asked once more, with these parameters (JSON text).
    Again(String),
    /// The server gets this result (JSON text).
    Result(String),
    /// The server gets this error.
    Error(Refusal),
}

/// A question that has gone its way.
struct Gone {
    case: Case,
    end: End,
    /// The answer was written in another way than the protocol has.
    normalised: bool,
}

/// Tries a question out. The exit code is 0 whatever becomes of it, and 1 when it can't be tried.
pub fn run(options: &Options) -> ExitCode {
    let environment = &|name: &str| std::env::var(name).ok();
    let config = match Config::load(&options.config, environment, &is_key_set) {
        Ok(config) => config,
        Err(problems) => return problem(problems),
    };
    match dry_run(options, &config) {
        // A reader that went away, as in `ask | head -1`, is no reason to panic.
        Ok(text) => match io::stdout().lock().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => problem(Causes(&error)),
    }
}

/// What there is to tell.
fn dry_run(options: &Options, config: &Config) -> Result<String, NoRun> {
    let Some(server) = config.servers.get(options.server.as_str()) else {
        return Err(NoRun::Server(no_server(options, config)));
    };
    let params = read::params(&options.form)?;
    let arguments = options.arguments.as_deref().map(read::object).transpose()?;
    let answer = options.answer.as_deref().map(read::json).transpose()?;

    let headless = options.headless || is_headless(config, &options.principal);
    let (issuer, subject) = identity(&options.principal);
    let question = Question {
        server: &options.server,
        method: METHOD,
        params: &params,
        tool: options.tool.as_deref(),
        arguments: arguments.as_deref(),
        person: Person {
            name: &options.principal,
            issuer,
            subject,
            oauth_client: "",
            session: SESSION,
            client: (options.client.as_deref().unwrap_or_default(), ""),
            headless,
        },
    };
    let client = HttpClient::new(config.timeouts.connect)?;
    let tasks = TaskTracker::new();
    let policy = Policy::new(&options.server, &server.questions, &client, &tasks);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let gone = runtime.block_on(async {
        let gone = go(&policy, &question, answer.as_deref()).await;
        // What hooks have started is cleared up before this ends.
        tasks.close();
        tasks.wait().await;
        gone
    })?;
    let report = Report {
        policy: &policy,
        question: &question,
        gone: &gone,
        patience: policy.patience().unwrap_or(config.timeouts.question),
    };
    Ok(report.to_string())
}

/// Goes the way of a question, in the order in which the gateway does.
async fn go(
    policy: &Policy,
    question: &Question<'_>,
    answer: Option<&str>,
) -> Result<Gone, Malformed> {
    let wire = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{METHOD}","params":{}}}"#,
        question.params
    );
    let wire = Message::parse(&Bytes::from(wire))?;
    let can = !question.person.headless;
    let seen = ClientCapabilities {
        form: policy.declares(Kind::Form, can),
        url: policy.declares(Kind::Url, can),
        ..ClientCapabilities::default()
    };
    let real = ClientCapabilities {
        form: can,
        url: can,
        ..ClientCapabilities::default()
    };
    if let Err(undeclared) = seen.allow(&wire) {
        let mut case = Case::default();
        case.kind = question.kind();
        let verdict = case.settle(By::Mode, Verdict::Refuse(refusal(undeclared)));
        return Ok(Gone::decided(case, verdict));
    }
    let (mut case, verdict) = policy.check(question);
    let verdict = verdict.or_else(|| policy.rule(question, &mut case));
    let verdict = match verdict {
        Some(verdict) => Some(verdict),
        None => policy.before(question, &mut case).await,
    };
    let verdict = verdict.or_else(|| {
        let undeclared = real.allow(&wire).err()?;
        Some(policy.absent(&mut case, refusal(undeclared)))
    });
    if let Some(verdict) = verdict {
        return Ok(Gone::decided(case, verdict));
    }
    let Some(answer) = answer else {
        return Ok(Gone::so(case, End::Asked));
    };
    let good = match policy.review(&mut case, question.params, answer) {
        Review::Good(good) => good.into_owned(),
        Review::Again(params) => return Ok(Gone::so(case, End::Again(params))),
        Review::Bad => Verdict::Cancel.result().unwrap_or_default(),
    };
    let verdict = policy.after(question, &mut case, &good).await;
    let normalised = good != answer;
    let gone = match verdict {
        Some(verdict) => Gone::decided(case, verdict),
        None => Gone::so(case, End::Result(good)),
    };
    Ok(Gone { normalised, ..gone })
}

impl Gone {
    fn so(case: Case, end: End) -> Self {
        Self {
            case,
            end,
            normalised: false,
        }
    }

    fn decided(case: Case, verdict: Verdict) -> Self {
        let result = verdict.result().unwrap_or_default();
        let end = match verdict {
            Verdict::Refuse(refusal) => End::Error(refusal),
            _ => End::Result(result),
        };
        Self::so(case, end)
    }
}

fn refusal(undeclared: Undeclared) -> Refusal {
    Refusal {
        code: undeclared.code,
        reason: "undeclared",
        text: undeclared.message.to_owned(),
    }
}

/// What to say of a server that is not there.
fn no_server(options: &Options, config: &Config) -> String {
    let file = options.config.display();
    let unknown = format!("{file} has no server `{}`", options.server.escape_debug());
    if let Some(meant) = config.nearest_server(&options.server) {
        return format!("{unknown}; write `{meant}`, if that is meant");
    }
    let mut names = config.servers.keys();
    let mut told: Vec<_> = names
        .by_ref()
        .take(MOST)
        .map(|it| format!("`{it}`"))
        .collect();
    told.extend(names.next().map(|_| "others".to_owned()));
    format!("{unknown}; it has {}", told.join(", "))
}

/// The issuer and the subject of a principal that is named as logs name it.
fn identity(name: &str) -> (&str, &str) {
    if let Some(key) = name.strip_prefix("key:") {
        return ("key", key);
    }
    match name.rsplit_once('@') {
        Some((subject, issuer)) if issuer.contains("://") => (issuer, subject),
        _ => ("", name),
    }
}

/// Whether the configuration says that nobody sits behind this key.
fn is_headless(config: &Config, principal: &str) -> bool {
    let Access::Required(auth) = &config.access else {
        return false;
    };
    let ("key", name) = identity(principal) else {
        return false;
    };
    let mut keys = auth.api_keys.iter();
    keys.any(|key| key.headless && key.name == name)
}

const METHOD: &str = "elicitation/create";

/// What hooks are told of the session: there is none, and they can see why.
const SESSION: &str = "dry-run";

/// How many servers are told where another is looked for.
const MOST: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_named_as_in_the_log() {
        for (name, issuer, subject) in [
            ("mira", "", "mira"),
            ("key:ci", "key", "ci"),
            (
                "alice@https://login.example.com",
                "https://login.example.com",
                "alice",
            ),
            (
                "mira@example.com@https://login.example.com",
                "https://login.example.com",
                "mira@example.com",
            ),
            ("mira@example.com", "", "mira@example.com"),
        ] {
            assert_eq!(identity(name), (issuer, subject), "{name}");
        }
    }
}
