//! Finding out which era a program speaks: in a process of its own, since some end when they are asked what
//! they don't know.

use super::{Process, Starts, command, open, visitor};
use crate::support::{Gateway, Setup};

struct Probed {
    gateway: Gateway,
    starts: Starts,
    _folder: tempfile::TempDir,
}

/// A gateway that does not know what its program speaks.
async fn unknown(arguments: &[&'static str]) -> Probed {
    let folder = tempfile::tempdir().unwrap();
    let starts = Starts::within(folder.path());
    let setup = Setup::new().program("alpha", &command(arguments), &starts.env());
    Probed {
        gateway: setup.start().await,
        starts,
        _folder: folder,
    }
}

impl Probed {
    /// A session works, and is in another process than the probe, which is gone.
    async fn serves_in_another_process(&self) {
        let session = open(&self.gateway).await;
        let process = Process::of(&session).await;
        session.works().await;
        let [probe, served] = self.starts.all()[..] else {
            panic!("{:?}", self.starts);
        };
        assert_eq!(served, process);
        probe.is_gone().await;
    }
}

#[tokio::test]
async fn a_program_that_does_not_know_the_question_is_legacy() {
    for habits in [&["legacy"][..], &["legacy", "probe-junk", "probe-exits"]] {
        let probed = unknown(habits).await;
        probed.serves_in_another_process().await;
        assert!(probed.gateway.output().contains("era=Legacy"));
    }
}

#[tokio::test]
async fn a_program_that_ends_when_it_is_asked_is_legacy() {
    let probed = unknown(&["legacy", "probe-exits"]).await;
    probed.serves_in_another_process().await;
    visitor(&probed.gateway).works().await;
}

#[tokio::test]
async fn a_program_that_says_nothing_is_legacy() {
    let probed = unknown(&["legacy", "probe-silent"]).await;
    probed.serves_in_another_process().await;
}

#[tokio::test]
async fn a_modern_program_is_found_out() {
    let probed = unknown(&["modern"]).await;
    let client = visitor(&probed.gateway);
    let process = Process::read(&client.text("pid", "{}").await);
    open(&probed.gateway).await.works().await;
    let [probe, served] = probed.starts.all()[..] else {
        panic!("{:?}", probed.starts);
    };
    assert_eq!(served, process);
    probe.is_gone().await;
}

/// Who come together wait for one probe.
#[tokio::test]
async fn it_is_asked_once() {
    let probed = unknown(&["legacy"]).await;
    let asks: Vec<_> = (0..6)
        .map(|_| visitor(&probed.gateway).call("1", "pid", "{}").start())
        .collect();
    for ask in asks {
        assert_eq!(ask.await.unwrap().status, 200);
    }
    assert_eq!(probed.starts.all().len(), 2);
}
