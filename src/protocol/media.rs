//! Media types as headers spell them.

/// A media type without parameters, in lower case: what types are compared by.
pub fn media_type(value: &[u8]) -> String {
    let bare = value.split(|byte| *byte == b';').next().unwrap_or_default();
    String::from_utf8_lossy(bare.trim_ascii()).to_ascii_lowercase()
}
