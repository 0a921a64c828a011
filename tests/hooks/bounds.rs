//! A command that does not stop: bounded in time, in output and in number, and gone afterwards.

use std::time::Duration;

use contraflow::policy::hook::{HookError, Opinion};
use futures_util::future::join_all;

use crate::support::{PATIENCE, SOON, Scripts, before};

#[tokio::test]
async fn a_command_that_hangs_is_ended_when_its_time_is_over() {
    let scripts = Scripts::new();
    for body in [
        "sleep 1000",
        // Reads nothing and says something.
        "echo '{'; sleep 1000",
        // Closes everything and stays.
        "exec <&- >&- 2>&-; sleep 1000",
        // Does not go when it is asked to.
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        // Is not alone.
        "for _ in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait",
        "(trap '' TERM; sleep 1000) | cat | cat",
    ] {
        let error = before(&scripts.hook(body, SOON)).await.unwrap_err();
        assert!(matches!(error, HookError::Timeout(SOON)), "{body}: {error}");
        scripts.nothing_left().await;
    }
}

#[tokio::test]
async fn a_command_that_floods_is_ended_at_once() {
    let scripts = Scripts::new();
    for (body, what) in [
        ("head -c 1G /dev/zero; sleep 1000", "standard output"),
        ("yes", "standard output"),
        ("yes >&2", "standard error"),
        // It only looks on.
        ("yes & sleep 1000", "standard output"),
    ] {
        let error = before(&scripts.hook(body, PATIENCE)).await.unwrap_err();
        let HookError::TooMuch(found) = &error else {
            panic!("{body}: {error}");
        };
        assert_eq!(*found, what, "{body}");
        scripts.nothing_left().await;
    }
}

#[tokio::test]
async fn an_output_of_exactly_the_allowed_size_is_read() {
    let scripts = Scripts::new();
    let hook = scripts.hook("head -c 262144 /dev/zero | tr '\\0' ' '", PATIENCE);
    assert_eq!(before(&hook).await.unwrap(), Opinion::Pass);
    let hook = scripts.hook("head -c 262145 /dev/zero | tr '\\0' ' '", PATIENCE);
    let error = before(&hook).await.unwrap_err();
    assert!(matches!(error, HookError::TooMuch(_)), "{error}");
}

#[tokio::test]
async fn no_more_run_at_once_than_may() {
    let scripts = Scripts::new();
    std::fs::create_dir(scripts.path().join("running")).unwrap();
    let hook = scripts
        .hook(
            "touch running/$$; ls running | wc -l >seen.$$; sleep 0.05; rm running/$$",
            PATIENCE,
        )
        .at_once(4);
    let asked = join_all((0..100).map(|_| before(&hook))).await;
    assert!(asked.iter().all(|asked| matches!(asked, Ok(Opinion::Pass))));
    let seen: Vec<u32> = std::fs::read_dir(scripts.path())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("seen."))
        .map(|entry| std::fs::read_to_string(entry.path()).unwrap())
        .map(|count| count.trim().parse().unwrap())
        .collect();
    assert_eq!(seen.len(), 100);
    assert!(seen.iter().all(|count| (1..=4).contains(count)), "{seen:?}");
    scripts.nothing_left().await;
}

/// The first holds the one place for its whole time, in which the time of the others goes by too. One
/// of them may come to the place a moment before it is over.
#[tokio::test]
async fn waiting_for_a_place_counts_into_the_time() {
    let scripts = Scripts::new();
    let hook = scripts.hook("sleep 1000", SOON).at_once(1);
    let asked = join_all((0..5).map(|_| before(&hook))).await;
    let busy = |asked: &Result<_, _>| matches!(asked, Err(HookError::Busy(SOON)));
    let late = |asked: &Result<_, _>| matches!(asked, Err(HookError::Timeout(SOON)));
    assert!(asked.iter().all(|asked| busy(asked) || late(asked)));
    assert!(
        late(&asked[0]) && busy(&asked[3]) && busy(&asked[4]),
        "{asked:?}"
    );
    scripts.nothing_left().await;
}

#[tokio::test]
async fn a_place_is_free_again_after_whatever_happened() {
    let scripts = Scripts::new();
    let hook = scripts
        .hook(
            r"[ -e flood ] && yes
               [ -e fail ] && exit 1
               [ -e hang ] && sleep 1000
               exit 0",
            Duration::from_secs(3),
        )
        .at_once(1);
    for trouble in ["flood", "fail", "hang"] {
        let file = scripts.path().join(trouble);
        std::fs::write(&file, "").unwrap();
        assert!(before(&hook).await.is_err(), "{trouble}");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(before(&hook).await.unwrap(), Opinion::Pass, "{trouble}");
    }
}
