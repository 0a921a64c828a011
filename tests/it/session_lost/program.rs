//! A server that is a program, and dies: the next call finds another one, and what was on its way is told or asked
//! again.

use std::path::Path;

use super::failure;
use crate::support::{Client, Gateway, NOTHING, Session, Setup, json, within};

/// A server in the shell: it tells its process, dies when it is told to, and gives its list only when it has died in
/// the midst of that before.
const PROGRAM: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(jq -c '.id // empty' <<<"$line")
  case $(jq -r '.method // "" | . + " "' <<<"$line")$(jq -r '.params.name // ""' <<<"$line") in
    "initialize ") answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    "tools/call pid") answer "{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}" ;;
    "tools/call die") exit 1 ;;
    "tools/call slow") touch "$1/slow-$$" ;;
    "tools/list ") if [ -e "$1/listed" ]; then answer '{"tools":[]}'; else touch "$1/listed"; fi ;;
  esac
done
"#;

async fn scene(folder: &Path) -> (Gateway, Session) {
    let program = folder.join("server.sh");
    std::fs::write(&program, PROGRAM).unwrap();
    let command = format!(r#"[bash, "{}", "{}"]"#, program.display(), folder.display());
    let keys = format!("{{ command: {command}, era: legacy }}");
    let gateway = Setup::new().server_as("alpha", &keys).start().await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    (gateway, session)
}

/// Waits until the server has written such a file.
async fn written(folder: &Path, name: &str) {
    let look = async {
        while !std::fs::read_dir(folder)
            .unwrap()
            .any(|it| it.unwrap().file_name().to_string_lossy().starts_with(name))
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    within(name, look).await;
}

/// The call that kills it is not made again, nor is another one that it had; a list is. Then all goes on, in the
/// same session of the client.
/// Reported in ferro-labs/ai-gateway#353 and #361, MoonshotAI/kimi-code#2109, GCWing/OpenBitFun#888.
#[tokio::test]
async fn a_program_that_dies_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (gateway, session) = scene(folder.path()).await;
    let first = session.text("pid", "{}").await;
    let slow = session.start(json::call("1", "slow", "{}"));
    written(folder.path(), "slow").await;
    let list = session.start(json::request("2", "tools/list", "{}"));
    written(folder.path(), "listed").await;
    let mut reply = session.call("3", "die", "{}").await;
    for reply in [&mut reply, &mut slow.await.unwrap()] {
        let (code, reason) = failure(reply).await;
        assert_eq!((code, reason.as_str()), (-31003, "session_lost"));
    }
    let mut reply = list.await.unwrap();
    let listed: serde_json::Value = json::parse(&super::next(&mut reply).await);
    assert_eq!(listed["result"]["tools"], serde_json::json!([]), "{listed}");
    let mut second = session.call("4", "pid", "{}").await;
    let second = json::text_of(&super::next(&mut second).await);
    assert_ne!(first, second);
    super::is_renewed(&gateway).await;
    let died = |line: &serde_json::Value| line["target"] == "die";
    assert_eq!(gateway.audited_times("the call", 1, died).await.len(), 1);
    let closed = gateway.audit();
    assert!(!closed.iter().any(|line| line["type"] == "session.closed"));
}
