//! What the tests are told with: a question to ask.

use std::time::Duration;

use contraflow::policy::hook::{Event, Hook, HookError, Opinion, Question};

/// How long anything that must happen may take. It decides nothing, it only ends a test that would
/// hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Time for a hook that is not going to answer.
pub(crate) const SOON: Duration = Duration::from_millis(300);

/// Waits for `future`, and says what was awaited when it does not come.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}

/// A question of the tool `book_table` of the server `booking`.
pub(crate) const QUESTION: Question<'static> = Question {
    server: "booking",
    tool: Some("book_table"),
    principal: "mira@login.example",
    session: "5f0c",
    params: r#"{"message":"For whom?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"guests":{"type":"integer"}},"required":["name"]}}"#,
};

/// Asks before a person does.
pub(crate) async fn before(hook: &Hook) -> Result<Opinion, HookError> {
    within("the hook", hook.ask(&QUESTION, Event::Before)).await
}

/// Asks after a person answered this.
pub(crate) async fn after(hook: &Hook, user_response: &str) -> Result<Opinion, HookError> {
    let event = Event::After { user_response };
    within("the hook", hook.ask(&QUESTION, event)).await
}

/// The values of an opinion that accepts a form.
#[track_caller]
pub(crate) fn content(opinion: Result<Opinion, HookError>) -> String {
    match opinion {
        Ok(Opinion::Accept(Some(content))) => content,
        other => panic!("not accepted: {other:?}"),
    }
}
