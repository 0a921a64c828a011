//! What configuration files mean, and what is said about wrong ones.

mod access;
mod examples;
mod files;
mod meaning;
mod problems;
mod quantities;
mod questions;
mod secrets;

use super::{Config, Problems};

/// A server, for files that are about something else.
const SERVER: &str = "servers: { booking: { url: http://127.0.0.1:3001/mcp } }";

fn parse(text: &str) -> Result<Config, Problems> {
    Config::parse("gateway.yaml", text, &|_| None)
}

/// The configuration of a text with [`SERVER`] added.
#[track_caller]
fn config(text: &str) -> Config {
    match parse(&format!("{text}\n{SERVER}")) {
        Ok(config) => config,
        Err(problems) => panic!("{problems}"),
    }
}

/// Compares what is said about a text, a line for each problem, without the name of the file.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let problems = match parse(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems
            .to_string()
            .lines()
            .map(|line| {
                line.strip_prefix("gateway.yaml:")
                    .unwrap_or(line)
                    .to_owned()
            })
            .collect(),
    };
    assert_eq!(problems, expected);
}

/// The same for a text that [`SERVER`] is added to.
#[track_caller]
fn check_with_server(text: &str, expected: &[&str]) {
    check(&format!("{text}\n{SERVER}"), expected);
}
