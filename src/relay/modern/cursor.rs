//! Cursors of lists. One is good at the session that gave it and at no other, so it carries the
//! session's tag while a client holds it.

use std::borrow::Cow;

use crate::protocol::client_modern::Rejected;
use crate::protocol::object::{edit, members, text};

/// A result whose cursor names its session.
pub(super) fn wrap<'a>(result: &'a str, tag: &str) -> Cow<'a, str> {
    let cursor = members(result, ["nextCursor"])
        .ok()
        .and_then(|[cursor]| cursor.and_then(text));
    let Some(cursor) = cursor else {
        return Cow::Borrowed(result);
    };
    let wrapped = serde_json::Value::from(format!("{tag}.{cursor}")).to_string();
    edit(result, &[("nextCursor", Some(&wrapped))]).unwrap_or(Cow::Borrowed(result))
}

/// Parameters whose cursor is the server's own again.
///
/// # Errors
/// When the cursor is of another session, or none of ours.
pub(super) fn unwrap<'a>(params: &'a str, tag: &str) -> Result<Cow<'a, str>, Rejected> {
    let cursor = members(params, ["cursor"])
        .ok()
        .and_then(|[cursor]| cursor.and_then(text));
    let Some(cursor) = cursor else {
        return Ok(Cow::Borrowed(params));
    };
    let invalid =
        || Rejected::Answer("the cursor is not valid any more; list from the beginning".to_owned());
    let own = cursor
        .strip_prefix(tag)
        .and_then(|rest| rest.strip_prefix('.'))
        .ok_or_else(invalid)?;
    let own = serde_json::Value::from(own).to_string();
    edit(params, &[("cursor", Some(&own))]).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        for cursor in ["", "p2", "a.b", "\"quoted\" \u{e9}"] {
            let raw = serde_json::Value::from(cursor).to_string();
            let wrapped =
                wrap(&format!(r#"{{"tools":[],"nextCursor":{raw}}}"#), "tag").into_owned();
            let [held] = members(&wrapped, ["nextCursor"]).unwrap();
            let params = format!(r#"{{"cursor":{}}}"#, held.unwrap());
            assert_eq!(
                unwrap(&params, "tag").unwrap(),
                format!(r#"{{"cursor":{raw}}}"#)
            );
            assert!(unwrap(&params, "other").is_err());
        }
        assert_eq!(wrap(r#"{"tools":[]}"#, "tag"), r#"{"tools":[]}"#);
        assert_eq!(unwrap(r#"{"x":1}"#, "tag").unwrap(), r#"{"x":1}"#);
    }
}
