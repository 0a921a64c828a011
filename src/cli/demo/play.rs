//! The played conversation: a client books a table and is asked; cancels it, is asked, says no.

use http::Uri;
use serde_json::{Value, json};

use super::client::{Answer, Client, OFFER, Question, TalkError};
use super::message::pairs;
use super::story::{Story, Way};
use crate::upstream::client::HttpClient;

/// Why the conversation did not go as it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlayError {
    /// It broke off.
    #[error("the conversation broke off")]
    Talk(#[from] TalkError),
    /// It ended with another result than it should.
    #[error("the conversation went astray: {0}")]
    Astray(String),
}

/// Plays it against the endpoint at `url`.
pub(super) async fn play(story: &Story, http: HttpClient, url: Uri) -> Result<(), PlayError> {
    story.title("1  The client connects");
    let hello = format!("hello, I speak MCP {OFFER} and I can be asked questions");
    story.message(Way::ClientToGateway, hello);
    let capabilities = json!({ "elicitation": { "form": {} } });
    let (mut client, welcome) = Client::connect(http, url, capabilities).await?;
    let name = welcome
        .pointer("/serverInfo/name")
        .and_then(Value::as_str)
        .unwrap_or("unnamed");
    story.message(Way::GatewayToClient, format_args!("welcome, I am “{name}”"));

    story.title("2  A call goes up, and a question comes back");
    let booking = json!({ "restaurant": "Trattoria Lina", "date": "Friday 19:30" });
    let booked = call(story, &mut client, "book_table", booking, |_| {
        Answer::Accept(json!({ "party_size": 4, "seating": "terrace" }))
    })
    .await?;
    expect(&booked, "Booked B1")?;

    story.title("3  A question can be answered with no");
    let booking = json!({ "booking": "B1" });
    let kept = call(story, &mut client, "cancel_booking", booking, |_| {
        Answer::Decline
    })
    .await?;
    expect(&kept, "B1 stays booked")?;

    story.line("");
    story.message(Way::ClientToGateway, "goodbye");
    client.end().await?;
    Ok(())
}

/// Calls a tool and tells what the client says and hears.
async fn call(
    story: &Story,
    client: &mut Client,
    tool: &str,
    arguments: Value,
    person: impl Fn(&Question) -> Answer,
) -> Result<String, TalkError> {
    let given = arguments.as_object().map(pairs).unwrap_or_default();
    story.message(Way::ClientToGateway, format_args!("call {tool}: {given}"));
    let asked = |question: &Question| {
        story.message(
            Way::GatewayToClient,
            format_args!("question: {}", question.message),
        );
        for field in fields(&question.form) {
            story.detail(field);
        }
        let answer = person(question);
        story.message(
            Way::ClientToGateway,
            match &answer {
                Answer::Accept(content) => {
                    format!(
                        "answer: {}",
                        content.as_object().map(pairs).unwrap_or_default()
                    )
                }
                Answer::Decline => "answer: no".to_owned(),
                Answer::Cancel => "the question is closed".to_owned(),
            },
        );
        answer
    };
    let text = client.call(tool, arguments, asked).await?;
    story.message(Way::GatewayToClient, format_args!("result: {text}"));
    Ok(text)
}

/// The fields of a form as a person reads them: `party_size: integer, 1 to 12`.
fn fields(form: &Value) -> Vec<String> {
    let Some(fields) = form.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let describe = |(name, field): (&String, &Value)| {
        let kind = field
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("anything");
        let range = (field.get("minimum"), field.get("maximum"));
        let choices = field.get("enum").and_then(Value::as_array);
        match (choices, range) {
            (Some(choices), _) => {
                let choices: Vec<_> = choices.iter().filter_map(Value::as_str).collect();
                format!("{name}: {}", choices.join(" or "))
            }
            (None, (Some(least), Some(most))) => format!("{name}: {kind}, {least} to {most}"),
            (None, _) if kind == "boolean" => format!("{name}: yes or no"),
            (None, _) => format!("{name}: {kind}"),
        }
    };
    fields.iter().map(describe).collect()
}

fn expect(text: &str, start: &str) -> Result<(), PlayError> {
    if text.starts_with(start) {
        Ok(())
    } else {
        Err(PlayError::Astray(text.to_owned()))
    }
}
