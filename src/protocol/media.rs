//! Media types as headers spell them.

/// A media type without its parameters.
pub fn bare(value: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    value.get(..end).unwrap_or_default().trim_ascii()
}

/// Whether a header names this media type. Case and parameters don't matter (RFC 9110, section 8.3.1).
pub fn is(value: &[u8], media_type: &str) -> bool {
    bare(value).eq_ignore_ascii_case(media_type.as_bytes())
}
