//! What is wrong with an answer of a server, as its client is told. What the operator reads of it is in
//! [`trouble`](super::trouble).

use std::time::Duration;

use http::StatusCode;

use super::client::ClientError;
use super::reply::{Reply, StreamError};
use crate::error::Error;
use crate::protocol::server_legacy::Answered;

/// When a server is asked again that limits us and does not say for how long.
const SOON: Duration = Duration::from_secs(1);

impl Reply {
    /// What its head says against the gateway, whatever was asked; the body is of no use then.
    pub fn refused(&self) -> Option<Error> {
        match self.what {
            Answered::Unauthorized => Some(Error::Credentials),
            Answered::Limited => Some(Error::ServerLimited(self.retry_after().unwrap_or(SOON))),
            Answered::Redirect => Some(Error::Misbehaved(
                "redirects to another place, which is not followed".into(),
            )),
            _ => None,
        }
    }
}

/// The server took a request for a message without an answer.
pub fn only_accepted() -> Error {
    Error::Misbehaved("accepted the request but did not answer it".into())
}

/// The server answered with what may be JSON, but not what was asked for.
pub fn no_response() -> Error {
    Error::Misbehaved("answered with something that is no response to the request".into())
}

/// The server answered with what is no message.
pub fn no_message(status: StatusCode) -> Error {
    let status = status.as_u16();
    Error::Misbehaved(format!("answered HTTP {status} and no MCP message").into())
}

impl From<&ClientError> for Error {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Connect(_) | ClientError::Start(_) | ClientError::Resting(_) => {
                Self::Unreachable
            }
            ClientError::Full => {
                Self::Capacity("as many processes of the server run as may; try again later".into())
            }
            ClientError::Broken(_) => Self::Broken,
            ClientError::Timeout(within) => Self::Slow(*within),
            ClientError::TooLarge(_) => too_large(),
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        (&error).into()
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Broken(_) => Self::Broken,
            StreamError::TooLarge(_) => too_large(),
        }
    }
}

fn too_large() -> Error {
    Error::Misbehaved("sent a message that is too large".into())
}
