//! Commands that can't be started: the operator reads why.

use contraflow::policy::hook::{HookError, Opinion};
use contraflow::upstream::command::Command;

use crate::support::{PATIENCE, Scripts, before};

async fn refusal(scripts: &Scripts, command: Command) -> String {
    let error = before(&scripts.run(command, PATIENCE)).await.unwrap_err();
    assert!(matches!(error, HookError::Start(_)), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_command_that_can_not_be_started_says_why() {
    let scripts = Scripts::new();
    std::fs::write(scripts.path().join("plain.sh"), "#!/usr/bin/env bash\n").unwrap();
    scripts.write("old.sh", "#!/usr/bin/no-such-shell\n");
    std::fs::create_dir(scripts.path().join("folder")).unwrap();
    for (program, why) in [
        ("./missing.sh", "there is no such file"),
        ("no-such-program-here", "there is no such program on PATH"),
        ("./plain.sh", "it is not executable"),
        ("./folder", "it is a folder"),
        (
            "./old.sh",
            "the interpreter that its first line names does not exist",
        ),
    ] {
        assert_eq!(
            refusal(&scripts, scripts.command(program)).await,
            format!("`{program}` can't be started: {why}")
        );
    }
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_told() {
    let scripts = Scripts::new();
    let command = Command::new("true", Vec::new(), &scripts.path().join("gone"));
    assert_eq!(
        refusal(&scripts, command).await,
        "`true` can't be started: the folder that it is to run in does not exist"
    );
}

#[tokio::test]
async fn no_folder_is_the_one_that_the_gateway_runs_in() {
    let scripts = Scripts::new();
    let command = Command::new("true", Vec::new(), "".as_ref());
    let passed = before(&scripts.run(command, PATIENCE)).await;
    assert_eq!(passed.unwrap(), Opinion::Pass);
}

#[tokio::test]
async fn a_program_with_a_slash_is_taken_from_the_folder_of_the_hook() {
    let scripts = Scripts::new();
    std::fs::create_dir(scripts.path().join("hooks")).unwrap();
    scripts.write("hooks/here.sh", "#!/usr/bin/env bash\nexit 2");
    let blocked = before(&scripts.run(scripts.command("hooks/here.sh"), PATIENCE)).await;
    assert_eq!(blocked.unwrap(), Opinion::Block(String::new()));
}

#[tokio::test]
async fn arguments_and_variables_are_not_shown() {
    let scripts = Scripts::new();
    let command = Command::new("./x.sh", vec!["--key=k-123".to_owned()], scripts.path());
    let command = command.env("KEY", "k-456");
    let hook = scripts.run(command, PATIENCE);
    let error = before(&hook).await.unwrap_err();
    let shown = format!("{hook:?} {error:?} {error}");
    assert!(shown.contains("./x.sh"), "{shown}");
    assert!(
        !shown.contains("k-123") && !shown.contains("k-456"),
        "{shown}"
    );
}
