//! Who gets which process, with real ones.

use std::num::NonZeroU32;

use super::*;
use crate::config::Program;

/// A program that runs this script of `sh`.
fn programs(script: &str, processes: u32, shared: bool) -> Programs {
    let program = Program {
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        env: Vec::new(),
        cwd: None,
    };
    let stdio = Stdio {
        program,
        shared,
        processes: NonZeroU32::new(processes).unwrap(),
    };
    let (name, tasks) = (ServerName("it".into()), TaskTracker::new());
    let troubles = Troubles::of_nobody();
    Programs::new(name, &stdio, 1024, troubles, &tasks, None)
}

/// It does nothing until its input ends.
const QUIET: &str = "cat >/dev/null";

impl Programs {
    async fn over(self) {
        self.close();
        self.tasks.close();
        self.tasks.wait().await;
        assert_eq!(self.places.available_permits(), 2, "every place is free");
    }
}

/// A process of a program that ends by itself has done so.
async fn ended(programs: &Programs) {
    let link = programs.session().await.unwrap();
    let mut rest = link.rest().unwrap();
    assert_eq!(rest.recv().await, None);
}

#[tokio::test]
async fn each_caller_has_a_link_and_keeps_it() {
    let programs = programs(QUIET, 2, false);
    let [mira, joris] = ["mira", "joris"].map(Whose::of);
    let hers = programs.of(&mira).await.unwrap();
    let his = programs.of(&joris).await.unwrap();
    assert!(!Arc::ptr_eq(&hers, &his));
    assert!(Arc::ptr_eq(&hers, &programs.of(&mira).await.unwrap()));
    drop((hers, his));
    programs.over().await;
}

#[tokio::test]
async fn all_have_one_link_where_it_is_shared() {
    let programs = programs(QUIET, 2, true);
    let hers = programs.of(&Whose::of("mira")).await.unwrap();
    let alone = programs.of(&Whose::alone()).await.unwrap();
    assert!(Arc::ptr_eq(&hers, &alone));
    drop((hers, alone));
    programs.over().await;
}

#[tokio::test]
async fn a_request_alone_has_a_process_that_ends_with_it() {
    let programs = programs(QUIET, 2, false);
    let [one, two] = [Whose::alone(), Whose::alone()];
    let one = programs.of(&one).await.unwrap();
    let two = programs.of(&two).await.unwrap();
    assert!(!Arc::ptr_eq(&one, &two));
    assert!(matches!(
        programs.of(&Whose::alone()).await,
        Err(ClientError::Full)
    ));
    drop(one);
    let three = programs.of(&Whose::alone()).await.unwrap();
    drop((two, three));
    programs.over().await;
}

#[tokio::test]
async fn who_is_only_kept_makes_room_and_sessions_do_not() {
    let programs = programs(QUIET, 2, false);
    let session = programs.session().await.unwrap();
    let hers = Arc::downgrade(&programs.of(&Whose::of("mira")).await.unwrap());
    let his = programs.of(&Whose::of("joris")).await.unwrap();
    assert!(hers.upgrade().is_none(), "hers made room");
    let second = programs.session().await.unwrap_err();
    assert!(
        matches!(second, ClientError::Full),
        "his is in use: {second}"
    );
    assert!(!session.has_ended() && !his.has_ended());
    drop((session, his));
    programs.over().await;
}

#[tokio::test]
async fn what_nobody_used_for_so_long_is_let_go() {
    let programs = programs(QUIET, 2, false);
    let link = Arc::downgrade(&programs.of(&Whose::of("mira")).await.unwrap());
    programs.sweep(Duration::from_hours(1));
    assert!(link.upgrade().is_some());
    programs.sweep(Duration::ZERO);
    assert!(link.upgrade().is_none());
    programs.over().await;
}

#[tokio::test]
async fn a_program_that_ends_without_a_word_is_left_alone_after_three_times() {
    let programs = programs("exit 1", 2, false);
    for _ in 0..3 {
        ended(&programs).await;
    }
    let resting = programs.session().await.unwrap_err();
    assert!(matches!(resting, ClientError::Resting(_)), "{resting}");
    programs.over().await;
}

/// It is well again: that it has spoken is enough, it need not end.
#[tokio::test]
async fn a_program_that_speaks_is_let_through_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let healthy = folder.path().join("healthy");
    let script = format!(
        r#"test -e "{}" || exit 1; echo '{{"jsonrpc":"2.0","method":"x"}}'; {QUIET}"#,
        healthy.display()
    );
    let programs = programs(&script, 2, false);
    for _ in 0..3 {
        ended(&programs).await;
    }
    std::fs::write(&healthy, "").unwrap();
    let first = loop {
        match programs.session().await {
            Ok(link) => break link,
            Err(_resting) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let mut rest = first.rest().unwrap();
    rest.recv().await.unwrap();
    // What it said is read a moment before the breaker learns of it.
    while programs.breaker.lock().rests(now()) {
        tokio::task::yield_now().await;
    }
    let second = programs.session().await.unwrap();
    drop((first, second, rest));
    programs.over().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_started() {
    let mut programs = programs("", 2, false);
    let nowhere = std::path::Path::new(".");
    programs.command = Command::new("there-is-no-such-program", Vec::new(), nowhere);
    let error = programs.session().await.unwrap_err();
    assert!(matches!(error, ClientError::Start(_)), "{error}");
    programs.over().await;
}
