//! A call that its server carries out as a task (2025-11-25 basic/utilities/tasks), driven for a client
//! that knows nothing of tasks: the call creates the task, a second request waits for its outcome, and
//! what is cancelled is the task.
//!
//! # Invariants
//! - A task's id stays on the server's side: what goes to a client doesn't name it.
//! - The outcome is that of the second request, whatever it is; a server that answers the call at once
//!   is taken at its word.
//! - A task goes on when the connection breaks on which its outcome was to come: then it is asked for
//!   again, a few times. The call never is.

use std::borrow::Cow;
use std::time::Duration;

use super::message::Message;
use super::object::{edit, elements, is_object, members, quoted, text};

/// The member of `_meta` that names the task to which a message belongs.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The most tools on one page of a list.
const MOST_TOOLS: usize = 100_000;

/// One page of a list of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The names of those that run as tasks and in no other way.
    pub tasks: Vec<String>,
    /// The cursor of the next page (JSON text).
    pub next: Option<String>,
}

/// Where the call is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// It was sent, and is to be answered with a task.
    #[default]
    Asked,
    /// The server runs the task.
    Running {
        /// Its id.
        id: String,
        /// How often the connection broke on which its outcome was to come.
        lost: u32,
    },
}

/// How often the outcome of a task is asked for again.
const AGAIN: u32 = 3;

/// What a response of the server means.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The task was created; its outcome is to be waited for.
    Wait,
    /// The call has this outcome.
    Outcome(Message),
}

/// Whether a server runs calls of tools as tasks. `result` is that of its `initialize`.
pub fn are_offered(result: &str) -> bool {
    let path = ["capabilities", "tasks", "requests", "tools", "call"];
    let found = path.iter().try_fold(result, |object, name| {
        members(object, [name]).ok().and_then(|[value]| value)
    });
    found.is_some_and(is_object)
}

/// Reads one page of a list of tools; none when it is no list.
pub fn page(result: &str) -> Option<Page> {
    let [tools, next] = members(result, ["tools", "nextCursor"]).ok()?;
    let tools = elements(tools?, MOST_TOOLS).ok()?;
    Some(Page {
        tasks: tools
            .into_iter()
            .filter_map(required)
            .map(Cow::into_owned)
            .collect(),
        next: next.filter(|it| *it != "null").map(str::to_owned),
    })
}

/// The name of a tool that runs as a task only.
fn required(tool: &str) -> Option<Cow<'_, str>> {
    let [name, execution] = members(tool, ["name", "execution"]).ok()?;
    let [support] = members(execution?, ["taskSupport"]).ok()?;
    (text(support?)? == "required").then(|| text(name?))?
}

/// The parameters of a call that is to run as a task, and to be kept for so long.
pub fn as_task(params: &str, life: Duration) -> Option<String> {
    let ttl = format!(r#"{{"ttl":{}}}"#, life.as_millis());
    edited(params, &[("task", Some(&ttl))])
}

/// The id of the task that an object with `_meta` belongs to.
pub fn related(object: &str) -> Option<String> {
    let [meta] = members(object, ["_meta"]).ok()?;
    let [related] = members(meta?, [RELATED]).ok()?;
    let [id] = members(related?, ["taskId"]).ok()?;
    text(id?).map(Cow::into_owned)
}

/// The object without the name of its task; none when it names none.
pub fn unrelated(object: &str) -> Option<String> {
    let [meta] = members(object, ["_meta"]).ok()?;
    let [Some(_)] = members(meta?, [RELATED]).ok()? else {
        return None;
    };
    let left = edited(meta?, &[(RELATED, None)])?;
    let left = Some(left.as_str()).filter(|left| left.trim() != "{}");
    edited(object, &[("_meta", left)])
}

impl Task {
    /// Takes a response: to the call first, then to the request for the outcome. `broken` says that it
    /// is the gateway's own, since the connection broke before the server's was there.
    pub fn take(&mut self, response: Message, broken: bool) -> Step {
        match self {
            Self::Asked => match response.result().and_then(created) {
                Some(id) => {
                    *self = Self::Running { id, lost: 0 };
                    Step::Wait
                }
                None => Step::Outcome(response),
            },
            Self::Running { lost, .. } if broken && *lost < AGAIN => {
                *lost += 1;
                Step::Wait
            }
            Self::Running { .. } => Step::Outcome(anonymous(response)),
        }
    }

    /// The task's id, once it has one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Asked => None,
            Self::Running { id, .. } => Some(id),
        }
    }

    /// The parameters of a request about it, once it has an id.
    pub fn params(&self) -> Option<String> {
        Some(params(self.id()?))
    }

    /// The answer to one of its questions (JSON text), which must name it.
    pub fn answer(&self, result: &str) -> Option<String> {
        let [meta] = members(result, ["_meta"]).ok()?;
        let related = self.params()?;
        let meta = edited(meta.unwrap_or("{}"), &[(RELATED, Some(&related))])?;
        edited(result, &[("_meta", Some(&meta))])
    }
}

fn edited(object: &str, changes: &[(&'static str, Option<&str>)]) -> Option<String> {
    edit(object, changes).ok().map(Cow::into_owned)
}

/// The parameters of a request about the task with this id.
pub fn params(id: &str) -> String {
    format!(r#"{{"taskId":{}}}"#, quoted(id))
}

/// The id of the task that a result says was created.
pub fn created(result: &str) -> Option<String> {
    let [task] = members(result, ["task"]).ok()?;
    let [id] = members(task?, ["taskId"]).ok()?;
    text(id?).map(Cow::into_owned)
}

/// A response without the name of its task.
fn anonymous(response: Message) -> Message {
    let id = response.id().unwrap_or("null");
    let changed = response.result().and_then(unrelated);
    changed
        .and_then(|result| Message::parse(&response.with_body(id, &result)).ok())
        .unwrap_or(response)
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;

    fn response(result: &str) -> Message {
        Message::parse(&message::result("1", result)).unwrap()
    }

    fn running(id: &str) -> Task {
        let (id, lost) = (id.to_owned(), 0);
        Task::Running { id, lost }
    }

    #[test]
    fn a_server_says_whether_calls_may_be_tasks() {
        let table = [
            (r#"{"tasks":{"requests":{"tools":{"call":{}}}}}"#, true),
            (r#"{"tasks":{"requests":{"tools":{"call":null}}}}"#, false),
            (r#"{"tasks":{"requests":{"tools":{}}}}"#, false),
            (r#"{"tasks":{"list":{},"cancel":{}}}"#, false),
            (r#"{"tasks":true}"#, false),
            (r#"{"tools":{"call":{}}}"#, false),
            ("{}", false),
        ];
        for (capabilities, offered) in table {
            let result = format!(r#"{{"capabilities":{capabilities}}}"#);
            assert_eq!(are_offered(&result), offered, "{capabilities}");
        }
        assert!(!are_offered("[]"));
    }

    #[test]
    fn a_list_tells_which_tools_run_as_tasks_only() {
        let list = r#"{"tools":[
            {"name":"a","execution":{"taskSupport":"required"}},
            {"name":"b","execution":{"taskSupport":"optional"}},
            {"name":"c","execution":{"taskSupport":"forbidden"}},
            {"name":"d","execution":{}},
            {"name":"e"},
            {"name":7,"execution":{"taskSupport":"required"}},
            {"execution":{"taskSupport":"required"},"name":"\u0066"},
            7],"nextCursor":"p2"}"#;
        assert_eq!(
            page(list).unwrap(),
            Page {
                tasks: vec!["a".into(), "f".into()],
                next: Some("\"p2\"".into())
            }
        );
        assert_eq!(
            page(r#"{"tools":[],"nextCursor":null}"#),
            Some(Page::default())
        );
        assert_eq!(page("{}"), None);
    }

    #[test]
    fn a_call_becomes_a_task_and_keeps_the_rest() {
        let life = Duration::from_secs(90);
        assert_eq!(
            as_task(r#"{"name":"a","arguments":{"n":1.10}}"#, life).unwrap(),
            r#"{"name":"a","arguments":{"n":1.10},"task":{"ttl":90000}}"#
        );
        // One that the client put there has no meaning in its revision.
        assert_eq!(
            as_task(r#"{"task":{"ttl":1},"name":"a"}"#, life).unwrap(),
            r#"{"task":{"ttl":90000},"name":"a"}"#
        );
    }

    #[test]
    fn the_outcome_is_waited_for_once_the_task_exists() {
        let mut task = Task::default();
        assert_eq!((task.id(), task.params()), (None, None));
        let created = response(r#"{"task":{"taskId":"t\"1","status":"working","ttl":null}}"#);
        assert_eq!(task.take(created, false), Step::Wait);
        assert_eq!(task.id(), Some("t\"1"));
        assert_eq!(task.params().unwrap(), r#"{"taskId":"t\"1"}"#);
        let result = format!(
            r#"{{"content":[],"n":1.0,"_meta":{{"{RELATED}":{{"taskId":"t\"1"}},"v":1}}}}"#
        );
        assert_eq!(
            task.take(response(&result), false),
            Step::Outcome(response(r#"{"content":[],"n":1.0,"_meta":{"v":1}}"#))
        );
    }

    #[test]
    fn a_server_that_answers_at_once_or_with_an_error_has_answered() {
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}"#;
        let error = Message::parse(&error.as_bytes().into()).unwrap();
        for outcome in [
            response(r#"{"content":[]}"#),
            response(r#"{"task":{"status":"working"}}"#),
            response(r#"{"task":"t"}"#),
            response("7"),
            error.clone(),
        ] {
            let mut task = Task::default();
            assert_eq!(task.take(outcome.clone(), false), Step::Outcome(outcome));
            assert_eq!(task, Task::Asked);
        }
        let mut task = running("t");
        assert_eq!(task.take(error.clone(), false), Step::Outcome(error));
        // Not even a task that says it made another is followed further.
        let other = response(r#"{"task":{"taskId":"u"}}"#);
        assert_eq!(task.take(other.clone(), false), Step::Outcome(other));
    }

    #[test]
    fn an_outcome_whose_connection_broke_is_asked_for_again_and_the_call_is_not() {
        let broken = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"broken"}}"#;
        let broken = Message::parse(&broken.as_bytes().into()).unwrap();
        let mut call = Task::default();
        assert_eq!(
            call.take(broken.clone(), true),
            Step::Outcome(broken.clone())
        );
        let mut task = running("t");
        for _ in 0..AGAIN {
            assert_eq!(task.take(broken.clone(), true), Step::Wait);
        }
        assert_eq!(task.take(broken.clone(), true), Step::Outcome(broken));
    }

    #[test]
    fn messages_name_their_task_to_the_server_alone() {
        let asked = format!(r#"{{"message":"?","_meta":{{"{RELATED}":{{"taskId":"t"}}}}}}"#);
        assert_eq!(related(&asked).as_deref(), Some("t"));
        assert_eq!(unrelated(&asked).unwrap(), r#"{"message":"?"}"#);
        for other in ["{}", r#"{"_meta":{}}"#, r#"{"_meta":{"taskId":"t"}}"#, "7"] {
            assert_eq!((related(other), unrelated(other)), (None, None), "{other}");
        }
        let task = running("t");
        let named = format!(r#""_meta":{{"{RELATED}":{{"taskId":"t"}}}}"#);
        assert_eq!(
            task.answer(r#"{"action":"accept"}"#).unwrap(),
            format!(r#"{{"action":"accept",{named}}}"#)
        );
        assert_eq!(Task::Asked.answer("{}"), None);
    }
}
