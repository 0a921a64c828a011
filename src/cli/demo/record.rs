//! What the gateway wrote down about the conversation: a line a record, and one of them as it is.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::story::Story;

/// The record that is also shown as it stands in the file: the one where a value could leak.
const SHOWN: &str = "question.answered";

/// Tells what is in the audit log at `file`.
pub(super) async fn tell(story: &Story, file: &Path) -> io::Result<()> {
    let log = settled(file).await?;
    story.title("4  What the audit log says");
    for line in log.lines() {
        story.line(&summary(line));
    }
    if let Some(line) = log.lines().find(|line| line.contains(SHOWN)) {
        story.line("");
        story.line(
            "One of them as it is. It names the fields of the form, never what was filled in; ids stand",
        );
        story.line("as JSON text, so that the number 1 and the text \"1\" are told apart:");
        story.line("");
        story.aside(line);
    }
    story.line("");
    Ok(())
}

/// The log, once its writer has come to rest: it writes on a thread of its own.
async fn settled(file: &Path) -> io::Result<String> {
    let mut before = tokio::fs::read_to_string(file).await?;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = tokio::fs::read_to_string(file).await?;
        if !now.is_empty() && now == before {
            break;
        }
        before = now;
    }
    Ok(before)
}

/// ` 4  question.answered  local → demo  elicitation/create, party_size, seating, accept, 2 ms`
fn summary(line: &str) -> String {
    let record: Value = serde_json::from_str(line).unwrap_or_default();
    let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str);
    let number = |pointer: &str| record.pointer(pointer).and_then(Value::as_u64);
    let who = match (text("/principal/subject"), text("/server")) {
        (Some(principal), Some(server)) => format!("{principal} → {server}"),
        (who, server) => who.or(server).unwrap_or_default().to_owned(),
    };
    let fields = record.pointer("/question/fields").and_then(Value::as_array);
    let fields = fields.into_iter().flatten().filter_map(Value::as_str);
    let mut what: Vec<String> = text("/method").map(str::to_owned).into_iter().collect();
    what.extend(text("/target").map(str::to_owned));
    what.extend(text("/question/method").map(str::to_owned));
    what.extend(fields.map(str::to_owned));
    let end = ["/action", "/outcome", "/reason"];
    what.extend(end.into_iter().filter_map(text).map(str::to_owned));
    let took = number("/duration_ms").or_else(|| number("/waited_ms"));
    what.extend(took.map(|ms| format!("{ms} ms")));
    let kind = text("/type").unwrap_or("?");
    let seq = number("/seq").unwrap_or_default();
    format!("{seq:>3}  {kind:<18} {who:<14} {}", what.join(", "))
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_short_line() {
        let asked = r#"{"v":1,"seq":3,"type":"question.asked","principal":{"issuer":"","subject":"local"},"server":"demo","question":{"method":"elicitation/create","mode":"form","fields":["party_size","seating"]},"prev":"0"}"#;
        let expected =
            "  3  question.asked     local → demo   elicitation/create, party_size, seating";
        assert_eq!(summary(asked), expected);
        let call = r#"{"seq":12,"type":"call","server":"demo","method":"tools/call","target":"book_table","outcome":"ok","duration_ms":4}"#;
        assert_eq!(
            summary(call),
            " 12  call               demo           tools/call, book_table, ok, 4 ms"
        );
        assert_eq!(
            summary(r#"{"seq":1,"type":"gateway.started"}"#),
            "  1  gateway.started"
        );
    }
}
