//! Who the gateway is called by, and from which web pages: the guard against DNS rebinding, where a
//! page in a browser gets a name to point at a gateway that only this machine can reach
//! (2025-11-25 basic/transports, "Security Warning").

use std::collections::HashSet;
use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};
use url::{Host, Url};

use crate::config::Config;
use crate::error::Error;

/// The names and origins that are let in.
#[derive(Debug)]
pub(super) struct Hosts {
    names: HashSet<String>,
    origins: HashSet<String>,
    loopback: bool,
}

impl Hosts {
    /// Those of the configuration: what is listed, the public name, the bind address, and for a
    /// gateway on loopback every loopback name.
    pub(super) fn new(config: &Config) -> Self {
        let mut names: HashSet<String> = config
            .allowed_hosts
            .iter()
            .map(|name| name.to_ascii_lowercase())
            .collect();
        let mut origins: HashSet<String> = config.allowed_origins.iter().cloned().collect();
        if let Ok(public) = Url::parse(config.public_url.as_str()) {
            names.extend(public.host_str().map(str::to_ascii_lowercase));
            origins.insert(public.origin().ascii_serialization());
        }
        let bind = config.listen.ip();
        if !bind.is_unspecified() {
            names.insert(bracketed(bind));
        }
        Self {
            names,
            origins,
            loopback: bind.is_loopback(),
        }
    }

    /// Whether the request is meant for this gateway: by its `Host` header, or in HTTP/2 by its
    /// authority.
    ///
    /// # Errors
    /// [`Error::Host`] with the name that would have to be allowed.
    pub(super) fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Error> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            (None, _) => uri.authority().map(http::uri::Authority::as_str),
            (Some(_), Some(_)) => None,
        };
        let name = without_port(host.unwrap_or_default());
        // As nearly everybody writes it.
        if self.names.contains(name) {
            return Ok(());
        }
        let name = name.to_ascii_lowercase();
        if self.names.contains(&name) || (self.loopback && is_loopback(&name)) {
            Ok(())
        } else {
            Err(Error::Host(name))
        }
    }

    /// The web page that sends the request, if one does and it may.
    ///
    /// # Errors
    /// [`Error::Origin`] with the origin that would have to be allowed.
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Error> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(value) = origins.next() else {
            return Ok(None);
        };
        let origin = value.to_str().unwrap_or_default();
        let local = || {
            let name = Url::parse(origin)
                .ok()
                .and_then(|url| url.host_str().map(str::to_owned));
            self.loopback && name.is_some_and(|name| is_loopback(&name))
        };
        if origins.next().is_none() && (self.origins.contains(origin) || local()) {
            Ok(Some(value.clone()))
        } else {
            Err(Error::Origin(origin.to_owned()))
        }
    }
}

fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    match Host::parse(name) {
        Ok(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Ok(Host::Ipv4(address)) => address.is_loopback(),
        Ok(Host::Ipv6(address)) => address.is_loopback(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(loopback: bool) -> Hosts {
        Hosts {
            names: ["mcp.example.test".to_owned()].into(),
            origins: ["https://app.example.test".to_owned()].into(),
            loopback,
        }
    }

    fn header(name: &http::HeaderName, values: &[&'static str]) -> HeaderMap {
        values
            .iter()
            .map(|value| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn a_host_is_one_of_the_gateways_names() {
        let table: [(&[&str], bool, bool); 12] = [
            (&["mcp.example.test"], true, true),
            (&["MCP.example.test:443"], true, true),
            (&["localhost:8080"], false, true),
            (&["127.0.0.1:8080"], false, true),
            (&["127.9.9.9"], false, true),
            (&["[::1]:8080"], false, true),
            (&["evil.test"], false, false),
            (&["localhost.evil.test"], false, false),
            (&["mcp.example.test.evil"], false, false),
            (&["evil.test:mcp.example.test"], false, false),
            (&["mcp.example.test", "evil.test"], false, false),
            (&[], false, false),
        ];
        let uri = Uri::from_static("/mcp/a");
        for (values, public, on_loopback) in table {
            let headers = header(&HOST, values);
            assert_eq!(
                hosts(false).check_host(&headers, &uri).is_ok(),
                public,
                "{values:?}"
            );
            assert_eq!(
                hosts(true).check_host(&headers, &uri).is_ok(),
                on_loopback,
                "{values:?}"
            );
        }
        let uri = Uri::from_static("http://mcp.example.test/mcp/a");
        assert!(hosts(false).check_host(&HeaderMap::new(), &uri).is_ok());
        assert!(
            hosts(false)
                .check_host(&header(&HOST, &["evil.test"]), &uri)
                .is_err()
        );
    }

    #[test]
    fn an_origin_is_a_listed_page_or_none() {
        let table: [(&[&str], bool, bool); 8] = [
            (&[], true, true),
            (&["https://app.example.test"], true, true),
            (&["http://app.example.test"], false, false),
            (&["https://evil.test"], false, false),
            (&["null"], false, false),
            (&["http://localhost:6274"], false, true),
            (&["http://127.0.0.1.evil.test"], false, false),
            (
                &["https://app.example.test", "https://evil.test"],
                false,
                false,
            ),
        ];
        for (values, public, on_loopback) in table {
            let headers = header(&ORIGIN, values);
            assert_eq!(
                hosts(false).check_origin(&headers).is_ok(),
                public,
                "{values:?}"
            );
            assert_eq!(
                hosts(true).check_origin(&headers).is_ok(),
                on_loopback,
                "{values:?}"
            );
        }
    }
}
