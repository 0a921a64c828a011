//! How a server is reached: `url` and `transport`, or `command` and what belongs to it.

use std::fmt;
use std::num::NonZeroU32;

use url::Url;

use super::program::{Program, program};
use super::read::{Fault, Reader, Table};
use super::yaml::Value;
use super::{address, quantity};

/// How a server is reached.
#[derive(Clone)]
pub enum At {
    /// By Streamable HTTP, at any of these endpoints, of which there is at least one.
    Http(Vec<Url>),
    /// By HTTP+SSE of 2024-11-05, at this address of its event stream.
    Sse(Url),
    /// As a program on this machine, over its standard input and output.
    Stdio(Stdio),
}

/// A server that is a program.
#[derive(Clone, Debug)]
pub struct Stdio {
    /// What is started.
    pub program: Program,
    /// Whether all callers use one process. It is not told what clients can be asked then.
    pub shared: bool,
    /// How many processes of it may run at once.
    pub processes: NonZeroU32,
}

/// As logs may say it.
impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl At {
    /// Where it is, as logs may say it: people put keys into paths, queries and arguments.
    pub fn shown(&self) -> String {
        match self {
            Self::Http(urls) => {
                let origins = urls.iter().map(|url| url.origin().ascii_serialization());
                origins.collect::<Vec<_>>().join(", ")
            }
            Self::Sse(url) => url.origin().ascii_serialization(),
            Self::Stdio(stdio) => stdio.program.argv.first().cloned().unwrap_or_default(),
        }
    }

    /// The addresses, of one that has such.
    pub fn urls(&self) -> &[Url] {
        match self {
            Self::Http(urls) => urls,
            Self::Sse(url) => std::slice::from_ref(url),
            Self::Stdio(_) => &[],
        }
    }
}

/// How the server is reached: `url`, or `command`.
pub(super) fn read(reader: &mut Reader, table: &Table<'_>) -> Option<At> {
    const WEB: &str = "a program is not reached by HTTP";
    const PROGRAM: &str = "a server at a URL is not started";
    let transport = table.value_or(reader, "transport", transport, None);
    match (table.get("command"), table.get("url")) {
        (Some(command), None) => {
            for key in ["headers", "transport"] {
                table.without(reader, key, WEB);
            }
            let program = program(
                reader,
                table,
                command,
                r#"[npx, -y, "@modelcontextprotocol/server-everything"]"#,
            );
            let shared = table.value_or(reader, "shared", quantity::yes_or_no, false);
            let processes = table.value_or(reader, "processes", quantity::number, PROCESSES);
            Some(At::Stdio(Stdio {
                program: program?,
                shared,
                processes,
            }))
        }
        (None, Some(url)) => {
            for key in ["env", "cwd", "shared", "processes"] {
                table.without(reader, key, PROGRAM);
            }
            let path = table.path("url");
            let mut urls = match &url.value {
                Value::List(_) => reader.secrets(&path, url, address::server),
                _ => reader
                    .secret(&path, url, address::server)
                    .into_iter()
                    .collect(),
            };
            if transport == Some(Transport::Sse) {
                if urls.len() > 1 {
                    let what = format!("{path}: there are several, and HTTP+SSE has one");
                    reader.problem(url.at, what, "write one address");
                    return None;
                }
                return urls.pop().map(At::Sse);
            }
            if urls.is_empty() {
                if matches!(&url.value, Value::List(list) if list.is_empty()) {
                    let what = format!("{path}: there is no address");
                    reader.problem(url.at, what, "write `[http://127.0.0.1:3001/mcp]`");
                }
                return None;
            }
            Some(At::Http(urls))
        }
        (Some(_), Some(_)) => {
            let what = format!(
                "{}: a server has a URL or a command, not both",
                table.path("url")
            );
            reader.problem(table.key("url"), what, "remove one of the two");
            None
        }
        (None, None) => {
            // The one that most people mean.
            let _missing = table.required(reader, "url", "http://127.0.0.1:3001/mcp");
            None
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Http,
    Sse,
}

fn transport(text: &str) -> Result<Option<Transport>, Fault> {
    match text {
        "http" => Ok(Some(Transport::Http)),
        "sse" => Ok(Some(Transport::Sse)),
        _ => Err(Fault::new(
            "is not a transport",
            "write `http` or `sse`; a program has a `command` instead of a URL",
        )),
    }
}

/// How many processes of one server run at once, where the file does not say.
const PROCESSES: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);
