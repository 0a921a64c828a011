//! What a configuration may say, and probably doesn't mean.

use url::Url;

use super::{At, Config};

impl Config {
    /// What looks like a mistake and isn't surely one: to be told, and served all the same.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.public_url.as_str().ends_with("/mcp") {
            let server = self.servers.keys().next();
            let endpoint = server.map(|server| self.public_url.endpoint(server));
            warnings.push(format!(
                "public_url ends in /mcp, so clients connect to {}; if that isn't meant, leave the \
                 /mcp out",
                endpoint.unwrap_or_default()
            ));
        }
        for server in self.servers.values() {
            let At::Http(urls) = &server.at else {
                continue;
            };
            let old = |url: &Url| url.path().trim_end_matches('/').ends_with("/sse");
            if urls.iter().any(old) {
                let name = &server.name;
                warnings.push(format!(
                    "servers.{name}.url ends in /sse: if that is the old HTTP+SSE transport, write \
                     `transport: sse` beside it; the Streamable HTTP endpoint of the same server is \
                     often /mcp"
                ));
            }
        }
        warnings
    }
}
