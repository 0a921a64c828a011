//! The scripts that people copy from `config/hooks`, and scripts as others have them for this contract.

use std::path::Path;

use contraflow::policy::hook::{Event, Hook, Opinion, Question};
use contraflow::upstream::command::Command;

use crate::support::{
    PATIENCE, QUESTION, Scripts, after, before, content, is_executable, needs_jq, within,
};

fn example(scripts: &Scripts, name: &str) -> Hook {
    needs_jq();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/hooks");
    assert!(is_executable(&folder.join(name)), "{name}");
    let command = Command::new(&format!("./{name}"), Vec::new(), &folder);
    scripts.run(command, PATIENCE)
}

#[tokio::test]
async fn auto_fill_answers_for_one_tool_and_leaves_others_to_the_person() {
    let scripts = Scripts::new();
    let hook = example(&scripts, "auto-fill.sh");
    assert_eq!(
        content(before(&hook).await),
        r#"{"guests":2,"name":"Front desk"}"#
    );
    for tool in [Some("cancel_table"), None] {
        let question = Question { tool, ..QUESTION };
        let opinion = within("the hook", hook.ask(&question, Event::Before)).await;
        assert_eq!(opinion.unwrap(), Opinion::Pass, "{tool:?}");
    }
}

#[tokio::test]
async fn check_names_trims_a_name_and_declines_a_short_one() {
    let scripts = Scripts::new();
    let hook = example(&scripts, "check-names.sh");
    let trimmed = after(
        &hook,
        r#"{"action":"accept","content":{"guests":2,"name":"  Ada L. \n"}}"#,
    );
    assert_eq!(content(trimmed.await), r#"{"guests":2,"name":"Ada L."}"#);
    let short = r#"{"action":"accept","content":{"name":" A "}}"#;
    assert_eq!(after(&hook, short).await.unwrap(), Opinion::Decline);
    for other in [
        r#"{"action":"decline"}"#,
        r#"{"action":"cancel"}"#,
        r#"{"action":"accept","content":{"guests":2}}"#,
    ] {
        let opinion = after(&hook, other).await.unwrap();
        assert_eq!(opinion, Opinion::Pass, "{other}");
    }
}

/// As scripts for Claude Code are that know the form as a list of fields, and the answer as its values.
#[tokio::test]
async fn a_script_that_reads_the_fields_and_the_values_of_the_answer_runs_unchanged() {
    needs_jq();
    let scripts = Scripts::new();
    let fill = scripts.hook(
        r#"IN=$(cat)
           FIRST=$(echo "$IN" | jq -r '.elicitation_form.fields[] | select(.required) | .name')
           KINDS=$(echo "$IN" | jq -rc '[.elicitation_form.fields[] | .type]')
           [ "$(echo "$IN" | jq -r .mcp_server_name)" = booking ] || exit 0
           jq -n --arg f "$FIRST" --arg k "$KINDS" \
             '{hookSpecificOutput:{hookEventName:"Elicitation",action:"accept",content:{($f):$k}}}'"#,
        PATIENCE,
    );
    let filled: serde_json::Value = serde_json::from_str(&content(before(&fill).await)).unwrap();
    assert_eq!(filled["name"], r#"["text","number"]"#);

    let check = scripts.hook(
        r#"IN=$(cat)
           NAME=$(echo "$IN" | jq -r '.user_response.name // empty')
           if [ ${#NAME} -lt 3 ]; then
             jq -n '{hookSpecificOutput:{hookEventName:"ElicitationResult",action:"decline"}}'
             exit 0
           fi
           jq -nc --arg n "$(echo "$NAME" | xargs)" \
             '{hookSpecificOutput:{hookEventName:"ElicitationResult",action:"accept",content:{name:$n}}}'"#,
        PATIENCE,
    );
    let answered = |name: &str| format!(r#"{{"action":"accept","content":{{"name":"{name}"}}}}"#);
    let trimmed = content(after(&check, &answered("  Ada  ")).await);
    assert_eq!(trimmed, r#"{"name":"Ada"}"#);
    assert_eq!(
        after(&check, &answered("A")).await.unwrap(),
        Opinion::Decline
    );
}

/// As scripts are that follow the reference.
#[tokio::test]
async fn a_script_that_reads_the_schema_and_the_content_runs_unchanged() {
    needs_jq();
    let scripts = Scripts::new();
    let hook = scripts.hook(
        r#"set -eu
           IN=$(cat)
           case $(jq -r .hook_event_name <<<"$IN") in
             Elicitation)
               jq -e '.mode == "form" and .requested_schema.properties.name.type == "string"' <<<"$IN" >/dev/null
               jq -e '.session_id and .cwd and .permission_mode and (.transcript_path != null)' <<<"$IN" >/dev/null
               echo '{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"decline","content":{}}}' ;;
             ElicitationResult)
               jq '{hookSpecificOutput: {hookEventName: .hook_event_name, action, content: (.content | .name |= ascii_upcase)}}' <<<"$IN" ;;
           esac"#,
        PATIENCE,
    );
    assert_eq!(before(&hook).await.unwrap(), Opinion::Decline);
    let changed = after(&hook, r#"{"action":"accept","content":{"name":"ada"}}"#).await;
    let changed: serde_json::Value = serde_json::from_str(&content(changed)).unwrap();
    assert_eq!(changed["name"], "ADA");
}
