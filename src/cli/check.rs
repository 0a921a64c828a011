//! `contraflow check`: tells whether a configuration file can be served, and if not, everything
//! that is wrong with it.
#![expect(
    clippy::print_stdout,
    reason = "what it finds is what this command is for"
)]

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use crate::config::{Access, Config};

/// Checks the file with the environment of this process; prints one line, or one for each problem.
pub fn run(path: &Path) -> ExitCode {
    match Config::load(path, &|name| std::env::var(name).ok()) {
        Ok(config) => {
            println!("{}: {}: ok", path.display(), Summary(&config));
            ExitCode::SUCCESS
        }
        Err(problems) => {
            println!("{problems}");
            ExitCode::FAILURE
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

    #[test]
    fn a_wrong_file_is_a_failure() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
        assert_eq!(run(&examples.join("minimal.yaml")), ExitCode::SUCCESS);
        assert_eq!(run(&examples), ExitCode::FAILURE);
        assert_eq!(run(&examples.join("none.yaml")), ExitCode::FAILURE);
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
