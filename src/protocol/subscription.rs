//! Subscriptions to what changes (2026-07-28 basic/patterns/subscriptions), for both sides.

/// Whether who wants to hear of the resource `own` hears of `uri`: it is the same, or lies under it
/// (`ResourceUpdatedNotification` in the schema of each version: it may be of a sub-resource).
pub fn covers(own: &str, uri: &str) -> bool {
    uri.strip_prefix(own).is_some_and(|rest| {
        rest.is_empty() || own.ends_with('/') || rest.starts_with(['/', '?', '#'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_itself_and_what_lies_under_it() {
        let table = [
            ("file:///a", "file:///a", true),
            ("file:///a", "file:///a/", true),
            ("file:///a", "file:///a/b/c", true),
            ("file:///a", "file:///a?page=2", true),
            ("file:///a", "file:///a#top", true),
            ("file:///a/", "file:///a/b", true),
            ("shop://", "shop://a", true),
            // The same letters are not the same place.
            ("file:///a", "file:///ab", false),
            ("file:///a", "file:///a.txt", false),
            ("file:///a", "file:///A", false),
            // What is above is not covered, nor is anything by nothing.
            ("file:///a/", "file:///a", false),
            ("file:///a/b", "file:///a", false),
            ("", "file:///a", false),
        ];
        for (own, uri, covered) in table {
            assert_eq!(covers(own, uri), covered, "{own} {uri}");
        }
    }
}
