//! Programs of a configuration: `command`, `env` and `cwd`, of hooks and of servers.

use std::fmt;
use std::path::PathBuf;

use super::read::{Fault, Reader, Table, join};
use super::yaml::{Node, Value};

/// A program to start.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// It and its arguments.
    pub argv: Vec<String>,
    /// The variables that it gets beside `PATH`, `HOME`, `LANG` and `TMPDIR`.
    pub env: Vec<(String, String)>,
    /// Where it is started; `None`: where the gateway was.
    pub cwd: Option<PathBuf>,
}

/// Arguments and the values of variables may be secrets.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.argv.first()).finish()
    }
}

/// Reads `command`, which is `node`, with the `env` and `cwd` beside it. `example` is a command that could
/// stand there.
pub(super) fn program(
    reader: &mut Reader,
    table: &Table<'_>,
    node: &Node,
    example: &str,
) -> Option<Program> {
    let argv = reader.secrets(&table.path("command"), node, |text: &str| {
        Ok(text.to_owned())
    });
    if argv.first().is_none_or(String::is_empty) {
        if matches!(node.value, Value::List(_)) {
            let what = format!("{}: there is no program", table.path("command"));
            let instead = format!("write `{example}`: the program, then its arguments");
            reader.problem(node.at, what, instead);
        }
        return None;
    }
    let mut env = Vec::new();
    if let Some(node) = table.get("env") {
        let path = table.path("env");
        for (key, node) in reader
            .entries(&path, node, "{ NAME: value }")
            .unwrap_or_default()
        {
            let value = reader.secret(&join(&path, &key.name), node, variable);
            env.extend(value.map(|value| (key.name.clone(), value)));
        }
    }
    let cwd = table.value_or(reader, "cwd", |text: &str| Ok(Some(text.into())), None);
    Some(Program { argv, env, cwd })
}

fn variable(text: &str) -> Result<String, Fault> {
    if text.contains('\0') {
        return Err(Fault::new("holds a zero byte", "write a text"));
    }
    Ok(text.to_owned())
}
