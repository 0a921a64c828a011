//! The server that is called: as fast as can be, in a thread of its own, of both eras.
//!
//! `/mcp/legacy` keeps sessions and asks in the midst of a call; `/mcp/modern` keeps none and asks by
//! answering that it needs something first. Both have the same two tools: `pad` answers with a text of a
//! given size, `ask` asks for a word and answers with it.
//!
//! # Invariants
//! - An answer is made of the token that the call carries, so that one which reaches somebody else shows.
//! - It does as little as it can: what it costs is in every figure.

mod body;
mod legacy;
mod message;
mod modern;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use self::body::Body;
use self::legacy::Desk;
use crate::Fallible;

/// Starts it; it serves until the process ends.
pub(crate) fn start() -> Fallible<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || runtime.block_on(accept(listener)))?;
    Ok(address)
}

async fn accept(listener: std::net::TcpListener) -> Fallible<()> {
    let listener = TcpListener::from_std(listener)?;
    let desk = Arc::new(Desk::default());
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(converse(socket, Arc::clone(&desk)));
    }
}

async fn converse(socket: TcpStream, desk: Arc<Desk>) {
    let service = service_fn(move |request| {
        let desk = Arc::clone(&desk);
        async move { Ok::<_, Infallible>(respond(&desk, request).await) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    // Whoever has gone away needs no answer.
    drop(connection.await);
}

async fn respond(desk: &Desk, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return empty(StatusCode::BAD_REQUEST);
    };
    let body = body.to_bytes();
    match head.uri.path() {
        "/mcp/legacy" => desk.serve(&head.method, &body),
        "/mcp/modern" => modern::serve(&body),
        _ => empty(StatusCode::NOT_FOUND),
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::whole([]));
    *response.status_mut() = status;
    response
}

fn json(text: String) -> Response<Body> {
    with_type("application/json", Body::whole([Bytes::from(text)]))
}

fn events(body: Body) -> Response<Body> {
    with_type("text/event-stream", body)
}

fn with_type(media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
