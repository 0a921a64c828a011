//! What is at which path.

use crate::http::mcp::Door;
use crate::http::{Place, decoded};

#[test]
fn every_route_and_what_is_next_to_it() {
    let endpoint = Place::Door(Door::Endpoint, "a");
    let table = [
        ("/mcp/a", endpoint),
        ("/mcp/a/", Place::Door(Door::Endpoint, "a")),
        ("/mcp/a%2Fb", Place::Door(Door::Endpoint, "a%2Fb")),
        ("/mcp/sse", Place::Door(Door::Endpoint, "sse")),
        ("/mcp/a/sse", Place::Door(Door::Stream, "a")),
        ("/mcp/a/messages", Place::Door(Door::Messages, "a")),
        ("/mcp/a/sse/", Place::Nowhere),
        ("/mcp/a/messages/", Place::Nowhere),
        ("/mcp/a//", Place::Nowhere),
        ("/mcp/a/other", Place::Nowhere),
        ("/mcp//sse", Place::Nowhere),
        ("/mcp//", Place::Nowhere),
        ("/mcp/", Place::Nowhere),
        ("/mcp", Place::Nowhere),
        ("/MCP/a", Place::Nowhere),
        ("/%6Dcp/a", Place::Nowhere),
        ("//mcp/a", Place::Nowhere),
        ("/healthz", Place::Health),
        ("/readyz", Place::Readiness),
        ("/healthz/", Place::Nowhere),
        (
            "/.well-known/oauth-protected-resource/mcp/a",
            Place::Metadata,
        ),
        ("/.well-known/oauth-protected-resource/x", Place::Metadata),
        ("/.well-known/oauth-protected-resource//", Place::Metadata),
        ("/.well-known/oauth-protected-resource/", Place::Nowhere),
        ("/.well-known/oauth-protected-resource", Place::Nowhere),
        ("/.well-known/oauth-protected-resources/x", Place::Nowhere),
        ("/", Place::Nowhere),
        ("", Place::Nowhere),
        ("*", Place::Nowhere),
    ];
    for (path, place) in table {
        assert_eq!(Place::of(path, true), place, "{path}");
    }
}

#[test]
fn the_oldest_transport_has_routes_where_it_is_wanted() {
    for path in ["/mcp/a/sse", "/mcp/a/messages"] {
        assert_eq!(Place::of(path, false), Place::Nowhere, "{path}");
    }
}

#[test]
fn names_are_decoded_once_and_what_is_no_encoding_stays() {
    let table = [
        ("plain", Some("plain")),
        ("a%2Fb", Some("a/b")),
        ("%61%6c%6C", Some("all")),
        ("%2561", Some("%61")),
        ("a+b", Some("a+b")),
        ("100%", Some("100%")),
        ("%4", Some("%4")),
        ("%zz%", Some("%zz%")),
        ("%c3%a9", Some("é")),
        ("%ff", None),
        ("%c3", None),
    ];
    for (segment, expected) in table {
        assert_eq!(decoded(segment).as_deref(), expected, "{segment}");
    }
}
