//! The answers of a parked call: which ones can be taken from a client, and how questions and answers
//! change on their way between the eras.
//!
//! # Invariants
//! - What is looked at is unambiguous, so that a server reads what was checked.
//! - Nobody's absence is told as `decline` or `accept`.

use std::borrow::Cow;

use super::{Asked, Output};
use crate::protocol::capability::ClientCapabilities;
use crate::protocol::client_modern::Rejected;
use crate::protocol::convert::keep;
use crate::protocol::object::{edit, is_object, members, text};
use crate::protocol::session::QuestionId;
use crate::protocol::tasks;

/// What a server is told when nobody is there to answer.
pub(super) fn absent(id: QuestionId, method: &str) -> Output {
    match method {
        "elicitation/create" => Output::Dismiss(id),
        "sampling/createMessage" => Output::Refuse(id, -1, "user rejected the sampling request"),
        _ => Output::Refuse(id, -32603, "the client did not answer"),
    }
}

/// Whether an answer is of the kind of its question.
pub(super) fn check(asked: &Asked, answer: &str) -> Result<(), Rejected> {
    let wrong = |what: &str| {
        Err(Rejected::Answer(format!(
            "the answer to {:?} {what}",
            asked.key
        )))
    };
    if !is_object(answer) {
        return wrong("must be an object");
    }
    match asked.method.as_str() {
        "elicitation/create" => {
            // The content is looked at because it is what is taken out when the action is no `accept`.
            let action = members(answer, ["action", "content"])
                .ok()
                .and_then(|[action, _]| action.and_then(text));
            match action.as_deref() {
                Some("accept" | "decline" | "cancel") => Ok(()),
                _ => wrong("must have the action accept, decline or cancel"),
            }
        }
        "sampling/createMessage" => match members(answer, ["role", "content", "model"]) {
            Ok([Some(_), Some(_), Some(_)]) => Ok(()),
            _ => wrong("must have role, content and model"),
        },
        _ => match members(answer, ["roots"]) {
            Ok([Some(roots)]) if roots.starts_with('[') => Ok(()),
            _ => wrong("must have roots"),
        },
    }
}

/// An answer as a legacy server takes it: content only with `accept`.
pub(super) fn for_server(method: &str, answer: &str) -> String {
    if method != "elicitation/create" {
        return answer.to_owned();
    }
    let accepted = members(answer, ["action"])
        .ok()
        .and_then(|[action]| action.and_then(text))
        .is_some_and(|action| action == "accept");
    if accepted {
        return answer.to_owned();
    }
    let without = edit(answer, &[("content", None)]);
    without.map_or_else(|_| answer.to_owned(), Cow::into_owned)
}

/// Parameters as a modern client takes them: a URL has no id of its own any more, the context of servers
/// is asked of those alone who declared that they have it, and of the task in whose midst it is asked the
/// client knows nothing.
pub(super) fn for_client(params: &str, capabilities: ClientCapabilities) -> String {
    let context = capabilities
        .sampling_context
        .then(|| keep(params, "includeContext"))
        .flatten();
    let unrelated = tasks::unrelated(params);
    let params = unrelated.as_deref().unwrap_or(params);
    let changes = [("elicitationId", None), ("includeContext", context)];
    edit(params, &changes).map_or_else(|_| params.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_accepted_has_content() {
        let table = [
            (
                r#"{"content":{"size":1.0}, "action":"accept"}"#,
                r#"{"content":{"size":1.0}, "action":"accept"}"#,
            ),
            (
                r#"{"action":"decline","content":{"size":"M"}}"#,
                r#"{"action":"decline"}"#,
            ),
            (
                r#"{"content":null,"action":"cancel","x":1e2}"#,
                r#"{"action":"cancel","x":1e2}"#,
            ),
            (r#"{"action":"cancel"}"#, r#"{"action":"cancel"}"#),
        ];
        for (from_client, to_server) in table {
            assert_eq!(for_server("elicitation/create", from_client), to_server);
        }
        let sample = r#"{"role":"user","content":[],"model":"m"}"#;
        assert_eq!(for_server("sampling/createMessage", sample), sample);
    }

    #[test]
    fn a_url_loses_the_id_that_only_the_older_era_has() {
        assert_eq!(
            for_client(
                r#"{"mode":"url","elicitationId":"7","url":"https://x/?a=%20"}"#,
                ClientCapabilities::default()
            ),
            r#"{"mode":"url","url":"https://x/?a=%20"}"#
        );
        let form = r#"{"message":"?", "requestedSchema":{"default":1.0}}"#;
        assert_eq!(for_client(form, ClientCapabilities::default()), form);
        let in_task = r#"{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"},"v":1}}"#;
        assert_eq!(
            for_client(in_task, ClientCapabilities::default()),
            r#"{"message":"?","_meta":{"v":1}}"#
        );
        let sampling = r#"{"includeContext":"allServers","maxTokens":1.0}"#;
        let bare = ClientCapabilities {
            sampling: true,
            ..ClientCapabilities::default()
        };
        let whole = ClientCapabilities {
            sampling_context: true,
            ..bare
        };
        assert_eq!(for_client(sampling, bare), r#"{"maxTokens":1.0}"#);
        assert_eq!(for_client(sampling, whole), sampling);
    }
}
