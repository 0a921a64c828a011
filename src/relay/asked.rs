//! A question that a server asked, with what is known about the call that caused it.

use std::borrow::Cow;
use std::sync::Arc;

use super::caller::Caller;
use super::pending::Asker;
use super::session::LiveSession;
use crate::policy;
use crate::protocol::capability::Need;
use crate::protocol::message::Message;
use crate::protocol::object::text;
use crate::protocol::session::LegId;

/// A question, who waits for its answer, and whom it is for.
#[derive(Debug)]
pub(super) struct Asked {
    /// The call on whose stream it came; none when it came on its own.
    pub(super) cause: Option<LegId>,
    pub(super) question: Message,
    pub(super) asker: Asker,
    /// What a client must have declared to be asked it.
    pub(super) need: Need,
    pub(super) caller: Arc<Caller>,
    /// Which of the questions of its call it is, from 1 on; what asks nobody doesn't count.
    pub(super) number: u32,
    /// The request that caused it, as far as is known.
    request: Option<Message>,
    /// The person, as logs name them.
    named: String,
    /// The tool that the request calls.
    tool: Option<String>,
}

impl Asked {
    /// A question of the server of this session. One that came on its own is taken for one of the only call
    /// in flight, if there is but one.
    pub(super) fn new(
        session: &LiveSession,
        cause: Option<LegId>,
        (question, need): (Message, Need),
        asker: Asker,
    ) -> Self {
        let mut state = session.state();
        let only = || {
            let mut legs = state.calls.keys();
            legs.next().copied().filter(|_| legs.next().is_none())
        };
        let leg = cause.or_else(only);
        let state = &mut *state;
        let call = leg.and_then(|leg| state.calls.get_mut(&leg));
        let (request, caller, number) = match call {
            Some(call) => {
                // A call that became a task goes on as the request for its outcome.
                let task = task_of(&call.request).and_then(|task| state.tasks.get_mut(&*task));
                let (request, count) = match task {
                    Some(became) => (&became.request, &mut became.asked),
                    None => (&call.request, &mut call.asked),
                };
                if counts(&question) {
                    *count = count.saturating_add(1);
                }
                (Some(request.clone()), call.caller.clone(), *count)
            }
            None => (None, None, 1),
        };
        let tool = request
            .as_ref()
            .filter(|request| request.method() == "tools/call")
            .and_then(|request| request.param(["name"]).ok())
            .and_then(|[name]| name.and_then(text).map(Cow::into_owned));
        Self {
            cause,
            need,
            question,
            asker,
            caller: caller.unwrap_or_else(|| Arc::clone(&session.caller)),
            number,
            request,
            named: session.principal().to_string(),
            tool,
        }
    }

    /// A question of the gateway's own about a call, before the server has it.
    pub(super) fn of_the_gateway(
        session: &LiveSession,
        call: LegId,
        question: Message,
        asker: Asker,
    ) -> Self {
        let state = session.state();
        let caller = state.calls.get(&call).and_then(|call| call.caller.clone());
        drop(state);
        Self {
            cause: Some(call),
            need: Need::of(&question),
            question,
            asker,
            caller: caller.unwrap_or_else(|| Arc::clone(&session.caller)),
            number: 0,
            request: None,
            named: session.principal().to_string(),
            tool: None,
        }
    }

    /// The question as policy sees it.
    pub(super) fn view<'a>(&'a self, session: &'a LiveSession) -> policy::Question<'a> {
        let arguments = self.request.as_ref().and_then(|request| {
            let [arguments] = request.param(["arguments"]).ok()?;
            arguments
        });
        let principal = (session.principal(), self.named.as_str());
        policy::Question {
            server: session.server().name().as_str(),
            method: self.question.method(),
            params: self.question.params().unwrap_or("{}"),
            tool: self.tool.as_deref(),
            arguments,
            person: self.caller.person(self.need, principal, session.tag()),
        }
    }
}

/// The task whose outcome a request waits for.
fn task_of(request: &Message) -> Option<Cow<'_, str>> {
    let asks = request.method() == "tasks/result";
    let [task] = request.param(["taskId"]).ok().filter(|_| asks)?;
    task.and_then(text)
}

/// Whether a person is bothered with it.
fn counts(question: &Message) -> bool {
    matches!(
        question.method(),
        "elicitation/create" | "sampling/createMessage" | "roots/list"
    )
}
