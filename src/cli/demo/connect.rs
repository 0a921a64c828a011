//! How to connect a real client to the running demo: text to copy.

use super::story::Story;

/// Tells it for the endpoint at `url`.
pub(super) fn tell(story: &Story, url: &str) {
    for line in text(url).lines() {
        match line.strip_prefix("# ") {
            Some(note) => story.aside(note),
            None => story.line(line),
        }
    }
}

fn text(url: &str) -> String {
    format!(
        r#"# Claude Code
claude mcp add --transport http demo {url}

# VS Code, in .vscode/mcp.json
{{ "servers": {{ "demo": {{ "type": "http", "url": "{url}" }} }} }}

# MCP Inspector (Node 22.19 or newer); choose “Streamable HTTP” and this URL: {url}
npx @modelcontextprotocol/inspector@latest

# curl: opens a session, its id is in the Mcp-Session-Id header of the answer
{curl}

# Then say: “Book a table at Trattoria Lina for Friday 19:30.” A client that supports
# elicitation shows the question as a form; any other gets a text that says what is missing."#,
        curl = curl(url),
    )
}

/// An `initialize` that works when it is pasted into a shell.
fn curl(url: &str) -> String {
    format!(
        r#"curl -i {url} \
    -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -d '{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"curl","version":"1"}}}}}}'"#,
        version = super::client::OFFER,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_client_is_told_the_address_and_the_json_is_json() {
        let url = "http://127.0.0.1:9000/mcp/demo";
        let text = text(url);
        assert_eq!(text.matches(url).count(), 4);
        let settings = text.lines().find(|line| line.starts_with('{')).unwrap();
        let settings: Value = serde_json::from_str(settings).unwrap();
        assert_eq!(settings["servers"]["demo"]["url"], url);
        let body = text
            .split("-d '")
            .nth(1)
            .unwrap()
            .split('\'')
            .next()
            .unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["method"], "initialize");
    }

    #[test]
    fn the_readme_tells_the_same() {
        let readme = include_str!("../../../README.md");
        let url = "http://127.0.0.1:8080/mcp/demo";
        let curl = curl(url);
        assert!(readme.contains(&curl), "{curl}");
        // Everything that is posted there can be pasted.
        for body in readme.split("-d '{").skip(1) {
            let body = format!("{{{}", body.split('\'').next().unwrap());
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["jsonrpc"], "2.0");
        }
        for line in text(url).lines().filter(|l| l.starts_with(['c', 'n', '{'])) {
            let command = line.trim_end_matches('\\').trim_end();
            assert!(readme.contains(command), "{command}");
        }
    }
}
