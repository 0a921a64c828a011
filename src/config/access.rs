//! `auth`: who gets in.
//!
//! # Invariants
//! - Leaving something out never opens a door: without `auth` only loopback is served, an `auth`
//!   that lists nobody is refused, and openness must be written out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::named::Role;
use super::problem::Position;
use super::read::{Fault, Reader, Table};
use super::spelling::nearest;
use super::yaml::{Node, Value};
use super::{Access, ApiKey, Auth, Issuer, KeySource, ServerName, address, quantity};

/// The keys of `auth`, of an issuer and of an API key.
pub(super) const KEYS: &[&str] = &["issuers", "api_keys"];
pub(super) const ISSUER: &[&str] = &["issuer", "jwks_url", "jwks_file", "audiences"];
pub(super) const API_KEY: &[&str] = &["name", "sha256", "servers", "headless"];

const AUTH: &str = "list `issuers` or `api_keys`, or write `auth: open` to let everybody in";
const DIGEST: &str =
    "write its SHA-256 as 64 hexadecimal digits: printf %s \"$KEY\" | sha256sum | cut -d' ' -f1";

const DIGEST_MISSING: &str = "make a key, KEY=cf_$(openssl rand -hex 24), and add `sha256: \"…\"` with \
    what this prints: printf %s \"$KEY\" | sha256sum | cut -d' ' -f1";

/// SHA-256 of nothing: what a key from an unset shell variable gives.
const EMPTY_DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Reads `auth`, and refuses to be open by mistake.
pub(super) fn access(
    reader: &mut Reader,
    top: &Table<'_>,
    listen: Option<SocketAddr>,
) -> Option<Access> {
    let Some(node) = top.get("auth") else {
        let exposed = listen.is_some_and(|listen| !address::is_loopback(listen.ip()));
        if let Some(node) = top.get("listen").filter(|_| exposed) {
            reader.problem(
                node.at,
                "listen: other machines can reach this address, and no `auth` says who gets in",
                "add `auth` with `issuers` or `api_keys`; or, on a private network, write `auth: open` \
                 to let everybody in; or listen on `127.0.0.1`",
            );
        }
        return Some(Access::Local);
    };
    match &node.value {
        Value::Text(_) => reader.value("auth", node, |text: &str| match text {
            "open" => Ok(Access::Open),
            _ => Err(Fault::new("is not a way to let somebody in", AUTH)),
        }),
        _ => auth(reader, node, &declared(top)).map(Access::Required),
    }
}

/// The names under `servers`, also of those that have problems of their own.
fn declared<'a>(top: &Table<'a>) -> Vec<&'a str> {
    match top.get("servers").map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.iter().map(|(key, _)| key.name.as_str()).collect(),
        _ => Vec::new(),
    }
}

fn auth(reader: &mut Reader, node: &Node, servers: &[&str]) -> Option<Auth> {
    let Value::Map(_) = node.value else {
        reader.problem(node.at, "auth: nobody is listed", AUTH);
        return None;
    };
    let table = reader.table("auth", node, KEYS)?;
    let issuers = nodes(reader, &table, "issuers");
    let api_keys = nodes(reader, &table, "api_keys");
    let broken = ["issuers", "api_keys"].iter().any(|key| {
        table
            .get(key)
            .is_some_and(|node| !matches!(node.value, Value::List(_)))
    });
    if issuers.is_empty() && api_keys.is_empty() && !broken {
        reader.problem(
            node.at,
            "auth: nobody is listed, so nobody could get in",
            AUTH,
        );
    }
    Some(Auth {
        issuers: read_issuers(reader, &issuers),
        api_keys: read_keys(reader, &api_keys, servers),
    })
}

type Nodes<'a> = Vec<(String, &'a Node)>;

fn nodes<'a>(reader: &mut Reader, table: &Table<'a>, key: &str) -> Nodes<'a> {
    table
        .get(key)
        .map(|node| reader.list(&table.path(key), node))
        .unwrap_or_default()
}

fn read_issuers(reader: &mut Reader, nodes: &Nodes<'_>) -> Vec<Issuer> {
    let mut seen = BTreeMap::new();
    let mut issuers: Vec<Issuer> = Vec::new();
    for (path, node) in nodes {
        let Some((issuer, at)) = read_issuer(reader, path, node) else {
            continue;
        };
        if let Some(line) = seen.insert(issuer.issuer.clone(), at.line) {
            let what = format!("{path}.issuer is listed twice, first in line {line}");
            reader.problem(at, what, "keep one, with the `audiences` of both");
        }
        issuers.push(issuer);
    }
    issuers
}

fn read_issuer(reader: &mut Reader, path: &str, node: &Node) -> Option<(Issuer, Position)> {
    let table = reader.table(path, node, ISSUER)?;
    let issuer_node = table.required(reader, "issuer", "https://login.example.com");
    let issuer =
        issuer_node.and_then(|node| reader.secret(&table.path("issuer"), node, address::issuer));
    let url = table
        .get("jwks_url")
        .and_then(|node| reader.secret(&table.path("jwks_url"), node, address::key_set));
    let file = table
        .get("jwks_file")
        .and_then(|node| reader.file(&table.path("jwks_file"), node, Role::KeySet));
    if table.get("jwks_url").is_some() && table.get("jwks_file").is_some() {
        let what = format!("{path}: `jwks_url` and `jwks_file` both say where the keys are");
        reader.problem(table.key("jwks_file"), what, "keep one of the two");
    }
    let audiences = table
        .get("audiences")
        .map(|node| reader.values(&table.path("audiences"), node, audience))
        .unwrap_or_default();
    let keys = match (url, file) {
        (Some(url), _) => KeySource::Url(url),
        (None, Some(file)) => KeySource::File(file),
        (None, None) => KeySource::Discovery,
    };
    Some((
        Issuer {
            issuer: issuer?,
            keys,
            audiences,
        },
        issuer_node?.at,
    ))
}

fn read_keys(reader: &mut Reader, nodes: &Nodes<'_>, servers: &[&str]) -> Vec<ApiKey> {
    let mut names = BTreeMap::new();
    let mut digests = BTreeMap::new();
    let mut keys = Vec::new();
    for (path, node) in nodes {
        let Some(table) = reader.table(path, node, API_KEY) else {
            continue;
        };
        let name_node = table.required(reader, "name", "ci");
        let name = name_node.and_then(|node| reader.value(&table.path("name"), node, key_name));
        let digest_node = table.get("sha256");
        if digest_node.is_none() {
            reader.problem(node.at, format!("{path} has no `sha256`"), DIGEST_MISSING);
        }
        let sha256 =
            digest_node.and_then(|node| reader.secret(&table.path("sha256"), node, digest));
        let opens = table
            .get("servers")
            .map(|node| opened(reader, &table.path("servers"), node, servers));
        if let (Some(name), Some(node)) = (&name, name_node)
            && let Some(line) = names.insert(name.clone(), node.at.line)
        {
            let what = format!("{path}.name: another key has this name, in line {line}");
            reader.problem(
                node.at,
                what,
                "give each key its own name: the audit log tells them apart by it",
            );
        }
        if let (Some(sha256), Some(node)) = (sha256, digest_node)
            && let Some(line) = digests.insert(sha256, node.at.line)
        {
            let what = format!("{path}.sha256: the key in line {line} is the same one");
            reader.problem(
                node.at,
                what,
                "give each key its own secret, or keep one of the two",
            );
        }
        let headless = table.value_or(reader, "headless", quantity::yes_or_no, false);
        if let (Some(name), Some(sha256)) = (name, sha256) {
            keys.push(ApiKey {
                name,
                sha256,
                servers: opens,
                headless,
            });
        }
    }
    keys
}

fn opened(reader: &mut Reader, path: &str, node: &Node, servers: &[&str]) -> BTreeSet<ServerName> {
    if matches!(&node.value, Value::List(list) if list.is_empty()) {
        let what = format!("{path}: the key opens no server");
        reader.problem(
            node.at,
            what,
            "name servers, or remove the line to open every one",
        );
    }
    let usual = "write the name of a server that `servers` has";
    let names = reader.values(path, node, |text: &str| {
        if servers.contains(&text) {
            return Ok(ServerName(text.into()));
        }
        let fix = nearest(text, servers).map(str::to_owned);
        Err(Fault {
            why: "is not a server of this gateway",
            fix,
            usual,
        })
    });
    names.into_iter().collect()
}

fn key_name(text: &str) -> Result<String, Fault> {
    let printable = !text.chars().any(char::is_control) && text.trim() == text;
    if (1..=64).contains(&text.chars().count()) && printable {
        Ok(text.to_owned())
    } else {
        Err(Fault::new(
            "is not a name",
            "write 1 to 64 letters, as in `ci`",
        ))
    }
}

fn digest(text: &str) -> Result<[u8; 32], Fault> {
    let mut digest = [0; 32];
    if text.find(char::is_whitespace) == Some(64) {
        return Err(Fault::new(
            "has more behind its 64 digits",
            "drop the `  -` that sha256sum writes behind them",
        ));
    }
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != digest.len() || !rest.is_empty() {
        return Err(Fault::new("is not 64 hexadecimal digits", DIGEST));
    }
    for (byte, pair) in digest.iter_mut().zip(pairs) {
        let [Some(high), Some(low)] = pair.map(|digit| char::from(digit).to_digit(16)) else {
            return Err(Fault::new("is not 64 hexadecimal digits", DIGEST));
        };
        *byte = u8::try_from(high << 4 | low).unwrap_or_default();
    }
    if text.eq_ignore_ascii_case(EMPTY_DIGEST) {
        return Err(Fault::new(
            "is the SHA-256 of the empty text, so no key at all",
            DIGEST,
        ));
    }
    Ok(digest)
}

fn audience(text: &str) -> Result<String, Fault> {
    if text.trim().is_empty() {
        return Err(Fault::new(
            "is not an audience",
            "write the exact `aud` of the tokens",
        ));
    }
    Ok(text.to_owned())
}
