//! The demo server's tools: tables in restaurants, booked and cancelled by asking first.
//!
//! # Invariants
//! - Nothing is booked and nothing is cancelled without an accepted form that fits its schema.

use serde_json::{Map, Value, json};

use super::session::{Answer, Back, Booking};

/// Why a request has no result: the JSON-RPC code, and a text for the client.
pub(super) struct Fault(pub(super) i32, pub(super) String);

const INVALID_PARAMS: i32 = -32602;
const LARGEST_PARTY: i64 = 12;
const SEATING: [&str; 2] = ["inside", "terrace"];
/// Names of restaurants and dates come back in texts: no novels.
const LONGEST_NAME: usize = 100;

/// The result of `tools/list`.
pub(super) fn tools() -> Value {
    let text = |description: &str| json!({ "type": "string", "maxLength": LONGEST_NAME, "description": description });
    json!({ "tools": [
        {
            "name": "book_table",
            "description": "Book a table. The server asks for the party size and the seating.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "restaurant": text("The restaurant's name"),
                    "date": text("Day and time, for example: Friday 19:30"),
                },
                "required": ["restaurant", "date"],
            },
        },
        {
            "name": "cancel_booking",
            "description": "Cancel a booking. The server asks for confirmation first.",
            "inputSchema": {
                "type": "object",
                "properties": { "booking": text("The booking's id, for example: B1") },
                "required": ["booking"],
            },
        },
        {
            "name": "list_bookings",
            "description": "List the bookings of this session.",
            "inputSchema": { "type": "object", "properties": {} },
        },
    ]})
}

/// Runs a tool: the result of `tools/call`. What goes wrong inside a tool is a result with
/// `isError`, so that a model can read it; only a call that makes no sense is a fault.
pub(super) async fn call(params: &Value, back: &Back) -> Result<Value, Fault> {
    let arguments = params.get("arguments").unwrap_or(&Value::Null);
    match params.get("name").and_then(Value::as_str) {
        Some("book_table") => {
            let restaurant = argument(arguments, "restaurant")?;
            book(restaurant, argument(arguments, "date")?, back).await
        }
        Some("cancel_booking") => cancel(argument(arguments, "booking")?, back).await,
        Some("list_bookings") => Ok(said(&list(&back.session.bookings()))),
        _ => Err(Fault(INVALID_PARAMS, "there is no such tool".to_owned())),
    }
}

async fn book(restaurant: &str, date: &str, back: &Back) -> Result<Value, Fault> {
    let form = json!({
        "type": "object",
        "properties": {
            "party_size": {
                "type": "integer", "title": "Party size", "minimum": 1, "maximum": LARGEST_PARTY,
                "description": "How many people will come",
            },
            "seating": {
                "type": "string", "title": "Seating", "enum": SEATING,
                "description": "Where to sit",
            },
        },
        "required": ["party_size", "seating"],
    });
    let question =
        format!("{restaurant}, {date}: how many people, and where would you like to sit?");
    let filled = match back.ask(&question, form).await {
        Answer::Accept(filled) => filled,
        Answer::Decline => return Ok(said("Nothing was booked: the user declined to answer.")),
        Answer::Cancel => return Ok(said("Nothing was booked: the user closed the question.")),
        Answer::None(why) => {
            return Ok(went_wrong(&format!(
                "Nothing was booked: I need to ask for the party size and the seating, but {why}."
            )));
        }
    };
    let Some((party, seating)) = table(&filled) else {
        return Ok(went_wrong(
            "Nothing was booked: the answer does not fit the form.",
        ));
    };
    let people = if party == 1 {
        "1 person".to_owned()
    } else {
        format!("{party} people")
    };
    let what = format!("{restaurant}, {date}, {people}, {seating}");
    Ok(match back.session.book(what) {
        Some(Booking { id, what }) => said(&format!("Booked {id}: {what}.")),
        None => went_wrong("Nothing was booked: there are too many bookings, cancel one first."),
    })
}

async fn cancel(id: &str, back: &Back) -> Result<Value, Fault> {
    let Some(booking) = back.session.booking(id) else {
        return Ok(went_wrong("There is no such booking."));
    };
    let form = json!({
        "type": "object",
        "properties": { "confirm": { "type": "boolean", "title": "Yes, cancel it", "default": false } },
        "required": ["confirm"],
    });
    let question = format!("Really cancel {id} ({})?", booking.what);
    Ok(match back.ask(&question, form).await {
        Answer::Accept(filled) if filled.get("confirm") == Some(&Value::Bool(true)) => {
            if back.session.cancel(id) {
                said(&format!("Cancelled {id}: {}.", booking.what))
            } else {
                went_wrong("The booking was cancelled already.")
            }
        }
        Answer::Accept(_) => said(&format!("{id} stays booked: it was not confirmed.")),
        Answer::Decline => said(&format!("{id} stays booked: the user said no.")),
        Answer::Cancel => said(&format!("{id} stays booked: the user closed the question.")),
        Answer::None(why) => went_wrong(&format!(
            "{id} stays booked: I need a confirmation, but {why}."
        )),
    })
}

fn list(bookings: &[Booking]) -> String {
    if bookings.is_empty() {
        return "There are no bookings.".to_owned();
    }
    let lines: Vec<_> = bookings
        .iter()
        .map(|Booking { id, what }| format!("{id}: {what}"))
        .collect();
    lines.join("\n")
}

/// The filled-in form, if it is what its schema allows: the schema in a question is a request, and
/// nothing in between checks the answer for the server.
fn table(filled: &Map<String, Value>) -> Option<(i64, &str)> {
    let party = filled.get("party_size")?.as_i64()?;
    let seating = filled.get("seating")?.as_str()?;
    ((1..=LARGEST_PARTY).contains(&party) && SEATING.contains(&seating)).then_some((party, seating))
}

fn argument<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, Fault> {
    let value = arguments.get(name).and_then(Value::as_str).map(str::trim);
    match value {
        Some(text) if !text.is_empty() && text.chars().count() <= LONGEST_NAME => Ok(text),
        _ => Err(Fault(
            INVALID_PARAMS,
            format!("the argument {name} must be a text of 1 to {LONGEST_NAME} characters"),
        )),
    }
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn went_wrong(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_only_if_it_fits_the_form() {
        let fits = |filled: Value| table(filled.as_object().unwrap()).is_some();
        assert!(fits(json!({ "party_size": 1, "seating": "inside" })));
        assert!(fits(json!({ "party_size": 12, "seating": "terrace" })));
        assert!(!fits(json!({ "party_size": 0, "seating": "inside" })));
        assert!(!fits(json!({ "party_size": 13, "seating": "inside" })));
        assert!(!fits(json!({ "party_size": 2.5, "seating": "inside" })));
        assert!(!fits(json!({ "party_size": "2", "seating": "inside" })));
        assert!(!fits(json!({ "party_size": 2, "seating": "roof" })));
        assert!(!fits(json!({ "party_size": 2 })));
        assert!(!fits(json!({})));
    }
}
