//! The wire of legacy servers (Streamable HTTP of 2025-03-26 … 2025-11-25, basic/transports): what
//! a server's HTTP answer means.

use http::{HeaderMap, StatusCode};

use super::media;

/// What a server's answer to a POST or GET is, told by its head alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// An event stream: messages come as they are sent.
    Events,
    /// One JSON body.
    Json,
    /// Taken, and there is nothing to read.
    Accepted,
    /// The session is not known any more (404 on a request that named one).
    SessionGone,
    /// Refused, and the body may be a JSON-RPC error that says why.
    Refused,
    /// The method is not offered (405), as on GET by servers without a standalone stream.
    NotOffered,
    /// Too many requests.
    Limited,
    /// The gateway's own credentials are not good.
    Unauthorized,
    /// A redirect, which is not followed.
    Redirect,
    /// The server is in trouble, or talks something else.
    Broken,
}

impl Answered {
    /// Reads the head of an answer. `in_session` says whether the request named a session.
    pub fn read(status: StatusCode, headers: &HeaderMap, in_session: bool) -> Self {
        let named = headers.get(http::header::CONTENT_TYPE);
        let is = |name| named.is_some_and(|it| media::is(it.as_bytes(), name));
        match status.as_u16() {
            200..=299 if is("text/event-stream") => Self::Events,
            200..=299 if is("application/json") => Self::Json,
            202 | 204 => Self::Accepted,
            300..=399 => Self::Redirect,
            401 | 403 | 407 => Self::Unauthorized,
            404 if in_session => Self::SessionGone,
            405 => Self::NotOffered,
            429 => Self::Limited,
            400..=499 => Self::Refused,
            _ => Self::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn the_head_tells_what_an_answer_is() {
        let table = [
            (200, "text/event-stream;charset=UTF-8", Answered::Events),
            (200, "Application/JSON; charset=utf-8", Answered::Json),
            (202, "", Answered::Accepted),
            (202, "text/plain", Answered::Accepted),
            (204, "", Answered::Accepted),
            (200, "text/html", Answered::Broken),
            (200, "", Answered::Broken),
            (307, "", Answered::Redirect),
            (400, "application/json", Answered::Refused),
            (401, "application/json", Answered::Unauthorized),
            (403, "", Answered::Unauthorized),
            (404, "application/json", Answered::SessionGone),
            (405, "", Answered::NotOffered),
            (429, "application/json", Answered::Limited),
            (500, "application/json", Answered::Broken),
            (503, "text/html", Answered::Broken),
        ];
        for (status, media, expected) in table {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media))]);
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(
                Answered::read(status, &headers, true),
                expected,
                "{status} {media}"
            );
        }
        assert_eq!(
            Answered::read(StatusCode::NOT_FOUND, &HeaderMap::new(), false),
            Answered::Refused
        );
    }
}
