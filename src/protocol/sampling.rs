//! What a model said, as the server that asked can take it: until 2025-06-18 it is one block of
//! content, from 2025-11-25 on it may be several (client/sampling).

use std::borrow::Cow;

use super::object::{edit, elements, members, quoted, text};
use super::version::Version;

/// The most blocks that are joined into one.
const MOST: usize = 1000;

/// Several blocks, for a version that has one, and they can't be made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model's answer has several parts, and this protocol version has no way to say that")]
pub struct Unsayable;

/// The result of `sampling/createMessage` as a server takes it that speaks `version`: a block alone is
/// taken out of its list, texts become one text, and the rest stays as it is.
///
/// # Errors
/// When the version has no way to say it.
pub fn for_server<'a>(version: &Version, result: &'a str) -> Result<Cow<'a, str>, Unsayable> {
    if version.has_blocks() {
        return Ok(Cow::Borrowed(result));
    }
    let content = match members(result, ["content"]) {
        Ok([Some(content)]) if content.starts_with('[') => content,
        _ => return Ok(Cow::Borrowed(result)),
    };
    let blocks = elements(content, MOST).map_err(|_| Unsayable)?;
    let joined = match blocks.as_slice() {
        [only] => Some((*only).to_owned()),
        blocks => joined(blocks),
    };
    let joined = joined.ok_or(Unsayable)?;
    edit(result, &[("content", Some(&joined))]).map_err(|_| Unsayable)
}

/// One block of all the texts; none when there are none, or something else is among them.
fn joined(blocks: &[&str]) -> Option<String> {
    let texts: Vec<_> = blocks
        .iter()
        .map(|block| {
            let [kind, said] = members(block, ["type", "text"]).ok()?;
            (text(kind?)? == "text").then(|| text(said?))?
        })
        .collect::<Option<_>>()?;
    let whole = quoted(&texts.join("\n"));
    (!texts.is_empty()).then(|| format!(r#"{{"type":"text","text":{whole}}}"#))
}

#[cfg(test)]
mod tests {
    use super::super::version::{V2025_06_18, V2025_11_25};
    use super::*;

    const IMAGE: &str = r#"{"type":"image","data":"eA==","mimeType":"image/png"}"#;

    fn said(content: &str) -> String {
        format!(r#"{{"role":"assistant","content":{content},"model":"m","n":1.0}}"#)
    }

    #[test]
    fn an_older_server_gets_one_block() {
        let text = r#"{"type":"text","text":"a\u00e9","x":1.0}"#;
        let table = [
            (text.to_owned(), text),
            (IMAGE.to_owned(), IMAGE),
            (format!("[ {text} ]"), text),
            (format!("[{IMAGE}]"), IMAGE),
            (
                format!(r#"[{text},{{"text":"\"b\"","type":"text"}}]"#),
                r#"{"type":"text","text":"aé\n\"b\""}"#,
            ),
            // What is no content is the server's to judge.
            ("7".to_owned(), "7"),
        ];
        for version in ["2025-03-26", V2025_06_18].map(Version::new) {
            for (content, expected) in &table {
                let result = said(content);
                let taken = for_server(&version, &result).unwrap();
                assert_eq!(taken, said(expected), "{content}");
            }
            assert_eq!(for_server(&version, "{}").unwrap(), "{}");
        }
    }

    #[test]
    fn what_is_not_one_block_and_not_only_text_can_not_be_said() {
        let text = r#"{"type":"text","text":"a"}"#;
        for content in [
            "[]".to_owned(),
            format!("[{text},{IMAGE}]"),
            format!("[{IMAGE},{IMAGE}]"),
            format!(r#"[{text},{{"type":"text"}}]"#),
            format!(r#"[{text},{{"type":"text","text":7}}]"#),
            format!("[{text},7]"),
        ] {
            let result = said(&content);
            let taken = for_server(&Version::new(V2025_06_18), &result);
            assert_eq!(taken, Err(Unsayable), "{content}");
        }
    }

    #[test]
    fn a_newer_server_gets_what_was_said() {
        let newer = Version::new(V2025_11_25);
        for content in ["[]", "[1,2]", IMAGE] {
            let result = said(content);
            assert_eq!(for_server(&newer, &result).unwrap(), result);
        }
    }
}
