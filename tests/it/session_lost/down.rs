//! A server that lost its sessions and can't be had: the client is told so, keeps its session, and goes on when
//! the server is back.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::failure;
use crate::support::{Client, EVERYTHING, Modern, Server, Setup, json, within};

/// The way to a server, which can be closed and opened.
struct Way {
    to: String,
    at: SocketAddr,
    open: Option<tokio::task::JoinHandle<()>>,
}

impl Way {
    async fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = server.url();
        let to = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let mut way = Self {
            to: to.to_owned(),
            at: listener.local_addr().unwrap(),
            open: None,
        };
        way.serve(listener);
        way
    }

    fn serve(&mut self, listener: TcpListener) {
        let to = self.to.clone();
        self.open = Some(tokio::spawn(async move {
            // Ends with this task, and every connection with it.
            let mut connections = JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                let to = to.clone();
                connections.spawn(async move {
                    let mut to = TcpStream::connect(to).await.unwrap();
                    drop(tokio::io::copy_bidirectional(&mut from, &mut to).await);
                });
            }
        }));
    }

    async fn close(&mut self) {
        let open = self.open.take().unwrap();
        open.abort();
        drop(open.await);
    }

    fn open(&mut self) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.at).unwrap();
        self.serve(socket.listen(64).unwrap());
    }
}

async fn scene() -> (Server, Way, crate::support::Gateway) {
    let server = Server::start().await;
    let way = Way::to(&server).await;
    let setup = Setup::new().server_at("alpha", &format!("http://{}/mcp", way.at), "{}");
    (server, way, setup.start().await)
}

/// The whole of a restart: gone, and back with no memory.
#[tokio::test]
async fn a_server_that_goes_and_comes_back() {
    let (server, mut way, gateway) = scene().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    session.works().await;
    way.close().await;
    server.forget();
    for id in ["1", "2"] {
        let mut reply = session.call(id, "echo", "{}").await;
        assert_eq!(reply.status, 200);
        let message = reply.json().await;
        assert_eq!(message["error"]["code"], -31001, "{message}");
        assert_eq!(message["error"]["data"]["upstream"], "alpha");
        let text = message["error"]["message"].as_str().unwrap();
        assert!(text.contains("alpha"), "{text}");
    }
    way.open();
    // A server that was not there is not asked by each call.
    let came_back = async {
        while session.call("3", "echo", "{}").await.json().await["error"]["code"] == -31001 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within("the server to be asked again", came_back).await;
    session.works().await;
    assert_eq!(server.opened().len(), 2);
}

/// The same for a client that holds no session.
#[tokio::test]
async fn a_server_that_comes_back_to_a_modern_client() {
    let (server, mut way, gateway) = scene().await;
    let client = Modern::new(&gateway, "alpha");
    client.works().await;
    way.close().await;
    server.forget();
    let (status, code, _) = client.call("1", "echo", "{}").refused().await;
    assert_eq!((status, code), (200, -31001));
    way.open();
    let came_back = async {
        while client.call("2", "echo", "{}").send().await.json().await["error"]["code"] == -31001 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within("the server to be asked again", came_back).await;
    client.works().await;
    assert_eq!(server.opened().len(), 2);
}

/// The server is there and knows nothing, and can't open a session yet: each call is told so, the server is not
/// asked by each of them, and the session goes on when it can.
#[tokio::test]
async fn a_server_that_needs_a_while() {
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    server.change(|habits| habits.hold_initialize = true);
    server.forget();
    let call = session.start(json::call("1", "echo", "{}"));
    let held = server.asked("initialize").await;
    held.respond(503, "text/plain", "starting");
    let mut reply = call.await.unwrap();
    assert_eq!(reply.status, 200);
    let (code, reason) = failure(&mut reply).await;
    assert_eq!((code, reason.as_str()), (-32603, "upstream_misbehaved"));
    server.change(|habits| habits.hold_initialize = false);
    let came_back = async {
        while session.call("1", "echo", r#"{"x":1}"#).await.json().await["error"]["code"] == -32603
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within("the server to be asked again", came_back).await;
    session.works().await;
    assert_eq!(server.seen_method("initialize").len(), 3);
}

/// A server that was away and is back answers whoever asks, also while the first call that got through takes
/// its time: it can be reached, and that is all that was in doubt.
#[tokio::test]
async fn a_slow_call_keeps_nobody_away_from_a_server_that_is_back() {
    let (server, mut way, gateway) = scene().await;
    // Nothing else gets through than what is asked here.
    server.change(|habits| habits.get = false);
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    way.close().await;
    for id in ["1", "2"] {
        let message = session.call(id, "echo", "{}").await.json().await;
        assert_eq!(message["error"]["code"], -31001, "{message}");
    }
    way.open();
    let through = async {
        loop {
            let mut slow = session.start(json::call("\"slow\"", "slow", "{}"));
            tokio::select! {
                held = server.called("slow") => return (held, slow),
                _refused = &mut slow => {}
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let (held, slow) = within("the server to be asked again", through).await;
    session.works().await;
    held.result("{}");
    assert_eq!(slow.await.unwrap().status, 200);
}

/// An answer is sent for as long as a server is away for a moment: a person has given it, and is not asked twice.
#[tokio::test]
async fn an_answer_reaches_a_server_that_is_back_after_a_moment() {
    let (server, mut way, gateway) = scene().await;
    let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
    let mut listening = session.listen().await;
    let question = json::request("7", "elicitation/create", &json::form("Who?"));
    server.last_get_stream().await.send(&question).await;
    let question = listening.question("elicitation/create").await;
    way.close().await;
    // Until the server is left alone.
    for id in ["1", "2"] {
        let message = session.call(id, "echo", "{}").await.json().await;
        assert_eq!(message["error"]["code"], -31001, "{message}");
    }
    let answering = tokio::spawn({
        let session = session.clone();
        async move { session.answer(&question, r#"{"action":"decline"}"#).await }
    });
    let taken = |line: &serde_json::Value| line["type"] == "question.answered";
    gateway.audited("the answer", taken).await;
    way.open();
    let answer = server.answer_to("7").await;
    assert_eq!(answer, json::result("7", r#"{"action":"decline"}"#));
    assert_eq!(answering.await.unwrap(), 202);
}

/// New sessions are opened where one can be, however many of the addresses are dead.
#[tokio::test]
async fn of_several_addresses_the_one_that_works_is_found() {
    let server = Server::start().await;
    let (mut urls, mut taken) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        // Nobody listens there, and as long as it is taken nobody else will.
        let place = TcpSocket::new_v4().unwrap();
        place.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        urls.push(format!("http://{}/mcp", place.local_addr().unwrap()));
        taken.push(place);
    }
    urls.push(server.url());
    let keys = format!("{{ url: [{}] }}", urls.join(", "));
    let gateway = Setup::new().server_as("alpha", &keys).start().await;
    for _ in 0..urls.len() {
        let session = Client::new(&gateway, "alpha").open(EVERYTHING).await;
        session.works().await;
    }
}
