//! What a command leaves behind, and what is left of it when nobody waits for it any more.

use contraflow::policy::hook::{Event, HookError};

use crate::support::{PATIENCE, QUESTION, SOON, Scripts, before, content, within};

const ANSWER: &str = r#"echo '{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{"name":"Ada"}}}'"#;

/// The answer counts from the end of the command on; a child that holds the output open neither delays
/// nor outlives it.
#[tokio::test]
async fn a_child_in_the_background_ends_with_its_command() {
    let scripts = Scripts::new();
    for body in [
        format!("sleep 1000 & {ANSWER}"),
        format!("{ANSWER}; (trap '' TERM HUP; while :; do sleep 1; done) &"),
        format!("sleep 1000 >/dev/null 2>&1 </dev/null & {ANSWER}"),
        format!("for _ in $(seq 50); do sleep 1000 & done; {ANSWER}"),
    ] {
        let hook = scripts.hook(&body, PATIENCE);
        assert_eq!(content(before(&hook).await), r#"{"name":"Ada"}"#, "{body}");
        scripts.nothing_left().await;
    }
}

#[tokio::test]
async fn a_process_that_leaves_the_group_holds_nobody_up_beyond_the_time() {
    let scripts = Scripts::new();
    let body = "setsid bash -c 'touch away; sleep 3' & until [ -e away ]; do sleep 0.01; done";
    let hook = scripts.hook(&format!("{body}; {ANSWER}"), SOON);
    let error = before(&hook).await.unwrap_err();
    assert!(matches!(error, HookError::Timeout(SOON)), "{error}");
    // It ends by itself.
    scripts.nothing_left().await;
}

#[tokio::test]
async fn a_command_is_ended_when_nobody_waits_for_it_any_more() {
    let scripts = Scripts::new();
    let hook = scripts.hook("echo >>began; sleep 1000 & sleep 1000", PATIENCE);
    {
        let ask = hook.ask(&QUESTION, Event::Before);
        tokio::select! {
            asked = ask => panic!("{asked:?}"),
            _ = scripts.line_of("began") => {}
        }
    }
    scripts.nothing_left().await;
    // What started it has ended too: a gateway that ends waits for it.
    scripts.tasks.close();
    within("the tasks to end", scripts.tasks.wait()).await;
}

/// The runtime of a gateway that ends does not run its tasks to their end.
#[test]
fn a_command_is_ended_with_the_runtime() {
    let scripts = Scripts::new();
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let hook = scripts.hook("echo >>began; sleep 1000 & sleep 1000", PATIENCE);
    first.spawn(async move { hook.ask(&QUESTION, Event::Before).await });
    first.block_on(scripts.line_of("began"));
    first.shutdown_background();
    runtime().block_on(scripts.nothing_left());
}
