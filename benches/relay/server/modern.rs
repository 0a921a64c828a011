//! The server as one of 2026-07-28: everything is in the request, and a question is an answer.

use hyper::{Response, StatusCode};

use super::body::Body;
use super::message::{Message, answered, form, heard, padded};
use super::{empty, events, json};

const COMPLETE: &str = r#""resultType":"complete","#;

pub(super) fn serve(body: &[u8]) -> Response<Body> {
    let Ok(message) = serde_json::from_slice::<Message>(body) else {
        return empty(StatusCode::BAD_REQUEST);
    };
    let (id, params) = (message.id(), &message.params);
    match (message.method.as_deref(), params.name.as_str()) {
        (Some("server/discover"), _) => json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{{COMPLETE}"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}},"ttlMs":3600000,"cacheScope":"public","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"bench","version":"1"}}}}}}}}"#
        )),
        (Some("tools/call"), "ask") => match params.input_responses.get("word") {
            Some(answer) => json(answered(
                id,
                COMPLETE,
                &heard(&params.request_state, &answer.content.said),
            )),
            None => json(needs_a_word(id, &params.arguments.token)),
        },
        (Some("tools/call"), _) if params.arguments.events => {
            events(Body::stream(padded(&message, COMPLETE, ("data: ", "\n\n"))))
        }
        (Some("tools/call"), _) => {
            let mut response = json(String::new());
            *response.body_mut() = Body::whole(padded(&message, COMPLETE, ("", "")));
            response
        }
        _ => empty(StatusCode::ACCEPTED),
    }
}

fn needs_a_word(id: &str, token: &str) -> String {
    let params = form(token);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{{"word":{{"method":"elicitation/create","params":{params}}}}},"requestState":"{token}"}}}}"#
    )
}
