//! Bodies that are too large are refused by their bytes, whether or not their length was said before, and
//! in a way that reaches clients which read the answer only after they have written everything.

use std::fmt::Write as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    Client, EVERYTHING, Gateway, NOTHING, Server, Session, Setup, json, triple, within,
};

/// F13: up to the cap a body passes intact, beyond it nothing of it reaches the server.
/// Reported in agentrust-io/cmcp#177, forecast-bio/crosslink#319, thunderbird/thunderbolt#524.
#[tokio::test]
async fn the_cap_counts_bytes() {
    let server = Server::start().await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("limits: { body: 64KiB }")
        .start()
        .await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let limit = 64 * 1024;
    let mut fits = session.post(sized(limit)).await;
    assert_eq!(fits.status, 200);
    assert!(json::text_of(&fits.next().await).len() > limit - 200);
    for size in [limit + 1, 2 * limit] {
        for way in [Way::Length, Way::Chunks] {
            assert_eq!(
                write_then_read(&gateway, &session, &sized(size), way).await,
                413
            );
        }
    }
    session.works().await;
    assert_eq!(server.seen_method("tools/call").len(), 2);
}

/// The default cap is 4 MiB, said or not said beforehand.
#[tokio::test]
async fn the_default_cap() {
    let (_server, gateway, session) = triple().await;
    let limit = 4 * 1024 * 1024;
    for way in [Way::Length, Way::Chunks] {
        assert_eq!(
            write_then_read(&gateway, &session, &sized(limit), way).await,
            200
        );
        assert_eq!(
            write_then_read(&gateway, &session, &sized(limit + 1), way).await,
            413
        );
        assert_eq!(
            write_then_read(&gateway, &session, &sized(limit + limit / 2), way).await,
            413
        );
    }
    session.works().await;
}

/// Without end: memory stays bounded, the connection is closed sooner or later, nobody else notices.
#[tokio::test]
async fn a_body_without_an_end() {
    let (_server, gateway, session) = triple().await;
    let mut socket = tokio::net::TcpStream::connect(gateway.address())
        .await
        .unwrap();
    socket
        .write_all(head(&gateway, &session, Way::Chunks, 0).as_bytes())
        .await
        .unwrap();
    let chunk = format!("10000\r\n{}\r\n", "a".repeat(65_536));
    let flood = async { while socket.write_all(chunk.as_bytes()).await.is_ok() {} };
    within("the gateway to close the connection", flood).await;
    session.works().await;
    Client::new(&gateway, "alpha")
        .open(NOTHING)
        .await
        .works()
        .await;
}

/// How a body says where it ends.
#[derive(Clone, Copy, Debug)]
enum Way {
    Length,
    Chunks,
}

/// A call of exactly this many bytes.
fn sized(size: usize) -> String {
    let shell = json::call("1", "echo", r#"{"x":""}"#);
    let filler = "a".repeat(size - shell.len());
    let body = json::call("1", "echo", &format!(r#"{{"x":"{filler}"}}"#));
    assert_eq!(body.len(), size);
    body
}

fn head(gateway: &Gateway, session: &Session, way: Way, length: usize) -> String {
    let mut head = format!(
        "POST /mcp/alpha HTTP/1.1\r\nhost: {}\r\n",
        gateway.address()
    );
    match way {
        Way::Length => write!(head, "content-length: {length}\r\n").unwrap(),
        Way::Chunks => head.push_str("transfer-encoding: chunked\r\n"),
    }
    for (name, value) in &session.client.headers {
        write!(head, "{name}: {}\r\n", value.to_str().unwrap()).unwrap();
    }
    head + "\r\n"
}

/// Writes the whole request, and only then reads the status, as many HTTP clients do.
async fn write_then_read(gateway: &Gateway, session: &Session, body: &str, way: Way) -> u16 {
    let case = format!("{way:?}, {} bytes", body.len());
    let mut socket = tokio::net::TcpStream::connect(gateway.address())
        .await
        .unwrap();
    let mut request = head(gateway, session, way, body.len()).into_bytes();
    match way {
        Way::Length => request.extend_from_slice(body.as_bytes()),
        Way::Chunks => {
            for part in body.as_bytes().chunks(50_000) {
                request.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                request.extend_from_slice(part);
                request.extend_from_slice(b"\r\n");
            }
            request.extend_from_slice(b"0\r\n\r\n");
        }
    }
    let written = within(&case, socket.write_all(&request)).await;
    assert!(
        written.is_ok(),
        "{case}: the connection was closed in the middle: {written:?}"
    );
    let mut answer = [0; 12];
    let read = within(&case, socket.read_exact(&mut answer)).await;
    assert!(read.is_ok(), "{case}: no answer: {read:?}");
    String::from_utf8_lossy(&answer[9..]).parse().unwrap()
}
