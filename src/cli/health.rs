//! `contraflow health`: asks a running gateway whether it is alive.
//!
//! A container image without a shell or `curl` can check itself with the binary it already has.

use std::fmt::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::{Request, StatusCode, Uri};
use http_body_util::Full;

use super::Causes;
use crate::upstream::client::{ClientError, HttpClient};

/// Options of `contraflow health`.
#[derive(Args, Debug)]
pub struct Options {
    /// What to ask: a gateway's `/healthz` or `/readyz`.
    #[arg(
        long,
        default_value = "http://127.0.0.1:8080/healthz",
        env = "CONTRAFLOW_HEALTH_URL"
    )]
    url: Uri,
}

/// Why a gateway counts as not alive.
#[derive(Debug, thiserror::Error)]
enum Sick {
    #[error("the system's certificate store can't be read")]
    Certificates(#[from] rustls::Error),
    #[error("{0} is not a URL with scheme and host")]
    Url(Uri),
    #[error("no answer from {0}")]
    Silent(Uri, #[source] ClientError),
    #[error("{0} answers {1}{2}")]
    Says(Uri, StatusCode, Excerpt),
}

/// The beginning of an answer's body, as one line behind its status; nothing when it is empty.
#[derive(Debug)]
struct Excerpt(Bytes);

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 200;
        let text = String::from_utf8_lossy(&self.0);
        let mut letters = text.trim().chars();
        if letters.as_str().is_empty() {
            return Ok(());
        }
        f.write_str(": ")?;
        for letter in letters.by_ref().take(LONGEST) {
            f.write_char(if letter.is_control() { ' ' } else { letter })?;
        }
        f.write_str(if letters.as_str().is_empty() {
            ""
        } else {
            "…"
        })
    }
}

/// Shorter than the time that container engines give a check.
const PATIENCE: Duration = Duration::from_secs(3);
const ANSWER_BYTES: usize = 64 * 1024;

/// Asks once. Exit code 0 when the answer is a 2xx within three seconds, 1 otherwise.
pub fn run(options: &Options) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return super::problem(format_args!("no runtime: {error}")),
    };
    match runtime.block_on(ask(&options.url)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sick) => super::problem(Causes(&sick)),
    }
}

async fn ask(url: &Uri) -> Result<(), Sick> {
    if url.scheme().is_none() || url.host().is_none() {
        return Err(Sick::Url(url.clone()));
    }
    let client = HttpClient::new(PATIENCE)?;
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.uri_mut() = url.clone();
    let answer = client
        .fetch(request, PATIENCE, ANSWER_BYTES)
        .await
        .map_err(|error| Sick::Silent(url.clone(), error))?;
    if answer.status().is_success() {
        Ok(())
    } else {
        let status = answer.status();
        Err(Sick::Says(url.clone(), status, Excerpt(answer.into_body())))
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::net::TcpListener;
    use tokio_util::task::TaskTracker;

    use super::*;

    async fn gateway() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route(
                "/readyz",
                get(|| async {
                    let body = "{\"status\":\"ending\"}\n".repeat(1 + 20);
                    (StatusCode::SERVICE_UNAVAILABLE, body)
                }),
            )
            .route("/silent", get(|| async { StatusCode::BAD_GATEWAY }));
        TaskTracker::new().spawn(async move { axum::serve(listener, routes).await });
        format!("http://{address}")
    }

    #[tokio::test]
    async fn a_gateway_that_answers_is_alive() {
        let url = format!("{}/healthz", gateway().await).parse().unwrap();
        assert!(ask(&url).await.is_ok());
    }

    #[tokio::test]
    async fn a_refusal_is_told_with_its_status_and_what_it_says() {
        let gateway = gateway().await;
        let url = format!("{gateway}/readyz").parse().unwrap();
        let told = ask(&url).await.unwrap_err().to_string();
        let said = "answers 503 Service Unavailable: {\"status\":\"ending\"} {\"status\"";
        assert!(told.contains(said) && told.ends_with('…'), "{told}");
        assert_eq!(told.lines().count(), 1);
        let url = format!("{gateway}/silent").parse().unwrap();
        let told = ask(&url).await.unwrap_err().to_string();
        assert!(told.ends_with("answers 502 Bad Gateway"), "{told}");
    }

    #[tokio::test]
    async fn nobody_at_the_address_is_told() {
        let free = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        let url = format!("http://{free}/healthz").parse().unwrap();
        assert!(matches!(ask(&url).await, Err(Sick::Silent(..))));
    }

    #[tokio::test]
    async fn a_url_without_a_host_is_refused() {
        assert!(matches!(
            ask(&Uri::from_static("/healthz")).await,
            Err(Sick::Url(_))
        ));
    }
}
