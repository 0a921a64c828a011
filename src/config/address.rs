//! Where things are: bind addresses, URLs, hosts and web origins.
//!
//! # Invariants
//! - No URL of a configuration has credentials, a fragment, or another scheme than http and https.
//! - Problems don't quote URLs: people put keys into them.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

use super::PublicUrl;
use super::read::Fault;

const LISTEN: &str = "write an address and a port, as `127.0.0.1:8080`";
const SERVER: &str = "write the address of its MCP endpoint, as `http://127.0.0.1:3001/mcp`";
const PUBLIC: &str = "write the address that clients use, as `https://mcp.example.com`";
const ISSUER: &str = "write the exact `iss` of its tokens, as `https://login.example.com`";
const KEYS: &str =
    "write an https address, as `https://login.example.com/jwks`; keys from a file are `jwks_file`";
const HOST: &str = "write a host name, as `mcp.example.com`";
const ORIGIN: &str = "write an origin as browsers send it, as `https://app.example.com`";

/// An IP address and a port; port 0 lets the system choose.
pub(super) fn listen(text: &str) -> Result<SocketAddr, Fault> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let fault = Fault::new("is not an address with a port", LISTEN);
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    if port.parse::<u64>().is_ok_and(|port| port > u16::MAX.into()) {
        return Err(Fault::new("has a port above 65535", LISTEN));
    }
    let corrected = match (host, port.parse::<u16>()) {
        ("" | "localhost", Ok(port)) => Some(format!("127.0.0.1:{port}")),
        ("*", Ok(port)) => Some(format!("0.0.0.0:{port}")),
        _ => text
            .parse::<IpAddr>()
            .ok()
            .map(|ip| SocketAddr::new(ip, 8080).to_string()),
    };
    Err(Fault {
        fix: corrected,
        ..fault
    })
}

/// The endpoint of a server.
pub(super) fn server(text: &str) -> Result<Url, Fault> {
    web(text, SERVER)
}

/// The base of all URLs that clients see, in its canonical form.
pub(super) fn public(text: &str) -> Result<PublicUrl, Fault> {
    let url = web(text, PUBLIC)?;
    if url.query().is_some() {
        return Err(Fault::new(
            "has a query (`?`), which a base address can't have",
            PUBLIC,
        ));
    }
    Ok(PublicUrl(url.as_str().trim_end_matches('/').to_owned()))
}

/// An issuer, exactly as written: tokens carry it letter by letter (RFC 8414 §2, RFC 9207 §2.4).
pub(super) fn issuer(text: &str) -> Result<String, Fault> {
    let url = web(text, ISSUER)?;
    if url.query().is_some() {
        return Err(Fault::new(
            "has a query (`?`), which an issuer can't have",
            ISSUER,
        ));
    }
    encrypted(&url, ISSUER)?;
    Ok(text.to_owned())
}

/// Where a key set is: who could change it on the way could sign any token.
pub(super) fn key_set(text: &str) -> Result<Url, Fault> {
    let url = web(text, KEYS)?;
    encrypted(&url, KEYS)?;
    Ok(url)
}

/// A host name or IP address for `allowed_hosts`: lower case, without port.
pub(super) fn host(text: &str) -> Result<String, Fault> {
    let fault = |why| Fault::new(why, HOST);
    if text.contains("://") {
        let host = Url::parse(text)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        return Err(Fault {
            fix: host,
            ..fault("is a URL, not a host name")
        });
    }
    if text.contains('*') {
        return Err(fault("is a pattern: hosts are compared whole"));
    }
    if let Ok(IpAddr::V6(ip)) = text.parse() {
        return Err(fault("is an IPv6 address without brackets").fix(format!("[{ip}]")));
    }
    let name = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') && port.parse::<u16>().is_ok() => name,
        _ => text,
    };
    match Host::parse(name) {
        Ok(host) => Ok(host.to_string()),
        Err(_) => Err(fault("is not a host name")),
    }
}

/// A web origin in the form in which browsers send it (RFC 6454 §6.2).
pub(super) fn origin(text: &str) -> Result<String, Fault> {
    let fault = |why| Fault::new(why, ORIGIN);
    match text {
        "*" => {
            return Err(fault(
                "would let every web page use the gateway with its visitor's credentials",
            ));
        }
        "null" => {
            return Err(fault(
                "is the origin of every sandboxed page and local file, so it tells nobody apart",
            ));
        }
        _ if text.contains('*') => return Err(fault("is a pattern: origins are compared whole")),
        _ => {}
    }
    let Ok(url) = Url::parse(text) else {
        return Err(fault("is not an origin"));
    };
    let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
        return Err(fault("is not an origin"));
    };
    let scheme = url.scheme();
    let sent = match url.port() {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    };
    if sent == text {
        Ok(sent)
    } else {
        Err(fault("is not how browsers send an origin").fix(sent))
    }
}

/// Whether only this machine can reach an address.
pub(super) fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

fn web(text: &str, usual: &'static str) -> Result<Url, Fault> {
    let fault = |why| Err(Fault::new(why, usual));
    // The parser drops these silently, and an issuer is compared letter by letter.
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return fault("has white space in it");
    }
    let Ok(url) = Url::parse(text) else {
        return fault("is not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return fault("has another scheme than http and https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Fault::new(
            "has credentials in it, which end up in logs",
            "remove the part before `@`; what a server wants to see belongs in its `headers`",
        ));
    }
    if url.fragment().is_some() {
        return fault("has a fragment (`#`), which is never sent");
    }
    Ok(url)
}

fn encrypted(url: &Url, usual: &'static str) -> Result<(), Fault> {
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => is_loopback(ip.into()),
        Some(Host::Ipv6(ip)) => is_loopback(ip.into()),
        None => false,
    };
    if url.scheme() == "https" || here {
        return Ok(());
    }
    Err(Fault::new(
        "is plain http, which anybody on the way can change (only loopback may be)",
        usual,
    ))
}
