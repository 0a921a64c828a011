//! What a command is told, and how what it says is understood.

use contraflow::policy::hook::{Event, HookError, Junk, Opinion, Question};
use contraflow::upstream::command::INHERITED;
use serde_json::{Value, json};

use crate::support::{PATIENCE, QUESTION, Scripts, after, before, content, within};

#[tokio::test]
async fn a_command_gets_the_question_on_standard_input_and_its_output_is_the_answer() {
    let scripts = Scripts::new();
    let hook = scripts.hook(
        r#"cat >told
           echo '{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{"name": "Ada", "guests": 2.0}}}'"#,
        PATIENCE,
    );
    // The bytes that it wrote, spaces and the spelling of numbers included.
    assert_eq!(
        content(before(&hook).await),
        r#"{"name": "Ada", "guests": 2.0}"#
    );
    let told = std::fs::read_to_string(scripts.path().join("told")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["hook_event_name"], "Elicitation");
    assert_eq!(told["tool_name"], "mcp__booking__book_table");
    assert_eq!(told["cwd"], json!(scripts.path()));
    scripts.nothing_left().await;
}

#[tokio::test]
async fn no_output_is_no_opinion() {
    let scripts = Scripts::new();
    assert_eq!(
        before(&scripts.hook("exit 0", PATIENCE)).await.unwrap(),
        Opinion::Pass
    );
}

#[tokio::test]
async fn after_the_person_a_command_gets_their_answer_too_and_may_change_or_refuse_it() {
    let scripts = Scripts::new();
    let hook = scripts.hook(
        r#"case $(cat) in
             *'"name":"Ada"'*) echo '{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"accept","content":{"name":"A. L."}}}' ;;
             *'"name":"Bob"'*) echo '{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"cancel"}}' ;;
           esac"#,
        PATIENCE,
    );
    let answered = |name| format!(r#"{{"action":"accept","content":{{"name":"{name}"}}}}"#);
    assert_eq!(
        content(after(&hook, &answered("Ada")).await),
        r#"{"name":"A. L."}"#
    );
    assert_eq!(
        after(&hook, &answered("Bob")).await.unwrap(),
        Opinion::Cancel
    );
    assert_eq!(after(&hook, &answered("Eve")).await.unwrap(), Opinion::Pass);
}

#[tokio::test]
async fn exit_code_2_blocks_and_standard_error_says_why() {
    let scripts = Scripts::new();
    let hook = scripts.hook(
        r#"echo '{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{}}}'
           echo "never on a Sunday" >&2
           echo "and more" >&2
           exit 2"#,
        PATIENCE,
    );
    let blocked = Opinion::Block("never on a Sunday".to_owned());
    assert_eq!(before(&hook).await.unwrap(), blocked);
}

#[tokio::test]
async fn any_other_exit_code_is_a_failure_whatever_the_output_says() {
    let scripts = Scripts::new();
    let hook = scripts.hook(
        r#"echo '{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{}}}'
           echo "no database" >&2
           exit 1"#,
        PATIENCE,
    );
    let error = before(&hook).await.unwrap_err();
    assert_eq!(error.to_string(), "it failed (exit status: 1): no database");
}

#[tokio::test]
async fn an_end_by_a_signal_is_a_failure() {
    let scripts = Scripts::new();
    let error = before(&scripts.hook("kill -KILL $$", PATIENCE)).await;
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "it failed (signal: 9 (SIGKILL))");
}

#[tokio::test]
async fn junk_is_a_failure_that_does_not_repeat_it() {
    let scripts = Scripts::new();
    let error = before(&scripts.hook("echo 'the key is k-123'", PATIENCE)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, HookError::Junk(Junk::NoObject(..))));
    let all = format!("{error:?} {error}");
    assert!(!all.contains("k-123"), "{all}");
}

#[tokio::test]
async fn a_command_finds_a_small_environment_and_its_own_folder() {
    let scripts = Scripts::new();
    scripts.write("hook.sh", "#!/usr/bin/env bash\nenv >variables\npwd >here");
    let command = scripts.command("./hook.sh").env("BOOKING_KEY", "k-123");
    let hook = scripts.run(command, PATIENCE);
    assert_eq!(before(&hook).await.unwrap(), Opinion::Pass);
    let here = scripts.line_of("here").await;
    assert_eq!(here, scripts.path().to_str().unwrap());
    let variables = std::fs::read_to_string(scripts.path().join("variables")).unwrap();
    assert!(variables.contains("BOOKING_KEY=k-123\n"));
    assert!(variables.contains(&format!("CLAUDE_PROJECT_DIR={here}\n")));
    // cargo sets many more in the environment of this test. Bash adds some by itself.
    let own = ["BOOKING_KEY", "CLAUDE_PROJECT_DIR", "HOOK_TEST"];
    let bash = ["PWD", "OLDPWD", "SHLVL", "_"];
    for line in variables.lines() {
        let name = line.split('=').next().unwrap();
        let known = [&own[..], &bash[..], &INHERITED[..]].concat();
        assert!(known.contains(&name), "{line}");
    }
}

#[tokio::test]
async fn arguments_are_not_looked_at_by_a_shell() {
    let scripts = Scripts::new();
    scripts.write(
        "hook.sh",
        "#!/usr/bin/env bash\nprintf '%s|' \"$@\" >got; echo >>got",
    );
    let arguments = ["; touch there", "$(id)", "", "*"].map(str::to_owned);
    let command = contraflow::upstream::command::Command::new(
        "./hook.sh",
        arguments.to_vec(),
        scripts.path(),
    );
    let hook = scripts.run(command, PATIENCE);
    assert_eq!(before(&hook).await.unwrap(), Opinion::Pass);
    assert_eq!(scripts.line_of("got").await, "; touch there|$(id)||*|");
    assert!(!scripts.path().join("there").exists());
}

#[tokio::test]
async fn a_large_question_reaches_a_command_that_reads_and_does_not_block_one_that_does_not() {
    let message = "x".repeat(900 * 1024);
    let params = format!(r#"{{"message":"{message}"}}"#);
    let question = Question {
        params: &params,
        ..QUESTION
    };
    let scripts = Scripts::new();
    for (body, expected) in [
        (r#"[ "$(wc -c)" -gt 900000 ] && exit 2"#, true),
        ("exit 2", true),
        // It closes what it could read from.
        ("exec <&-; exit 2", true),
        ("exit 0", false),
    ] {
        let hook = scripts.hook(body, PATIENCE);
        let opinion = within("the hook", hook.ask(&question, Event::Before)).await;
        let blocked = matches!(opinion, Ok(Opinion::Block(_)));
        assert_eq!(blocked, expected, "{body}: {opinion:?}");
    }
    scripts.nothing_left().await;
}

#[tokio::test]
async fn a_question_that_can_be_read_in_two_ways_is_not_shown() {
    let scripts = Scripts::new();
    let hook = scripts.hook("touch asked", PATIENCE);
    let question = Question {
        params: r#"{"message":"a","message":"b"}"#,
        ..QUESTION
    };
    let error = hook.ask(&question, Event::Before).await.unwrap_err();
    assert!(matches!(error, HookError::Unreadable(_)), "{error:?}");
    assert!(!scripts.path().join("asked").exists());
}
