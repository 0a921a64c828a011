//! `contraflow check`: tells whether a configuration file can be served, and if not, everything
//! that is wrong with it.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fmt};

use crate::auth::is_key_set;
use crate::config::{Access, Config, Environment};
use crate::relay::probe;

/// Checks the file with the environment of this process, and prints one line, or one for each
/// problem; with `asking` then one for each server, which is asked what it speaks. The exit code is 1
/// when there are problems, or a server does not answer.
pub fn run(path: &Path, asking: bool) -> ExitCode {
    // A reader that went away, as in `check | head -1`, is no reason to panic.
    let mut out = io::stdout().lock();
    let environment: Environment<'_> = &|name| env::var(name).ok();
    match report(path, environment, &mut out) {
        Ok(true) if asking => match ask(path, environment, &mut out) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) | Err(_) => ExitCode::FAILURE,
        },
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

/// Asks every server what it speaks, and writes a line about each; gives whether all answered.
fn ask(path: &Path, environment: Environment<'_>, out: &mut impl Write) -> io::Result<bool> {
    let Ok(config) = Config::load(path, environment, &is_key_set) else {
        return Ok(false);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut good = true;
    for (name, server) in &config.servers {
        match runtime.block_on(probe(server, &config)) {
            Ok(found) => {
                let (versions, capabilities) =
                    (found.versions.join(" "), found.capabilities.join(" "));
                writeln!(out, "{name}: {}, {versions}; {capabilities}", found.era)?;
            }
            Err(error) => {
                good = false;
                writeln!(out, "{name}: {error}")?;
            }
        }
    }
    Ok(good)
}

/// Writes what there is to say about a file, and gives whether it can be served.
fn report(path: &Path, environment: Environment<'_>, out: &mut impl Write) -> io::Result<bool> {
    match Config::load(path, environment, &is_key_set) {
        Ok(config) => {
            for warning in config.warnings() {
                writeln!(out, "{}: warning: {warning}", path.display())?;
            }
            writeln!(out, "{}: {}: ok", path.display(), Summary(&config))?;
            Ok(true)
        }
        Err(problems) => {
            writeln!(out, "{problems}")?;
            Ok(false)
        }
    }
}

/// What a configuration has, as in `2 servers, 1 issuer, 1 API key`.
struct Summary<'a>(&'a Config);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        counted(f, self.0.servers.len(), "server")?;
        match &self.0.access {
            Access::Local => f.write_str(", no auth (this machine only)"),
            Access::Open => f.write_str(", open to everybody"),
            Access::Required(auth) => {
                for (count, what) in [
                    (auth.issuers.len(), "issuer"),
                    (auth.api_keys.len(), "API key"),
                ] {
                    if count > 0 {
                        f.write_str(", ")?;
                        counted(f, count, what)?;
                    }
                }
                Ok(())
            }
        }
    }
}

fn counted(f: &mut fmt::Formatter<'_>, count: usize, what: &str) -> fmt::Result {
    write!(f, "{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let config = Config::parse("gateway.yaml", text, &|_| None).unwrap();
        assert_eq!(Summary(&config).to_string(), expected);
    }

    fn reported(path: &Path) -> (bool, String) {
        let mut out = Vec::new();
        let good = report(path, &|_| None, &mut out).unwrap();
        (good, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_good_file_is_one_line() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/minimal.yaml");
        let line = format!(
            "{}: 1 server, no auth (this machine only): ok\n",
            path.display()
        );
        assert_eq!(reported(&path), (true, line));
    }

    #[test]
    fn a_doubt_is_told_and_the_file_is_good_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.yaml");
        std::fs::write(&path, "servers: { old: { url: http://127.0.0.1/sse } }").unwrap();
        let (good, text) = reported(&path);
        assert!(good);
        let name = path.display();
        assert!(
            text.starts_with(&format!("{name}: warning: servers.old.url ends in /sse: ")),
            "{text}"
        );
        assert!(text.ends_with(": ok\n"), "{text}");
    }

    #[test]
    fn a_wrong_file_is_one_line_for_each_problem() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.yaml");
        std::fs::write(&path, "servers: {}\nlimits: { body: 0 }\n").unwrap();
        let (good, text) = reported(&path);
        assert!(!good);
        let name = path.display().to_string();
        let places: Vec<_> = text
            .lines()
            .map(|line| line.strip_prefix(&name).unwrap().split(' ').next().unwrap())
            .collect();
        assert_eq!(places, [":1:10:", ":2:17:"]);
        assert_eq!(run(&path, false), ExitCode::FAILURE);
    }

    #[test]
    fn the_summary_counts_what_the_file_has() {
        let digest = "0123456789abcdef".repeat(4);
        check(
            "servers: { a: { url: http://a/ } }",
            "1 server, no auth (this machine only)",
        );
        check(
            "{ servers: { a: { url: http://a/ }, b: { url: http://b/ } }, auth: open }",
            "2 servers, open to everybody",
        );
        check(
            &format!(
                "{{ servers: {{ a: {{ url: http://a/ }} }}, auth: {{
                   issuers: [{{ issuer: https://one }}, {{ issuer: https://two }}],
                   api_keys: [{{ name: ci, sha256: '{digest}' }}] }} }}"
            ),
            "1 server, 2 issuers, 1 API key",
        );
        check(
            &format!(
                "{{ servers: {{ a: {{ url: http://a/ }} }},
                   auth: {{ api_keys: [{{ name: ci, sha256: '{digest}' }}] }} }}"
            ),
            "1 server, 1 API key",
        );
    }
}
