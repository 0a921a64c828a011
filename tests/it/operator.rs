//! What whoever runs the gateway reads in its log: which server is in trouble and why, and who was
//! turned away for a reason that only they can mend.

use crate::support::client::initialize;
use crate::support::modern::Modern;
use crate::support::{Client, Gateway, NOTHING, Reply, Server, Setup, json, pair};

/// A server that can't be had is told with its name, what it did, and the whole chain of causes.
#[tokio::test]
async fn every_trouble_of_a_server() {
    troubles(async |gateway, name| {
        let client = Client::new(gateway, name);
        client.post(initialize("2025-11-25", NOTHING)).await
    })
    .await;
}

/// The same where a modern client asks.
#[tokio::test]
async fn every_trouble_that_a_modern_client_meets() {
    troubles(async |gateway, name| {
        let client = Modern::new(gateway, name);
        client.request("1", "tools/list", "{}").send().await
    })
    .await;
}

async fn troubles(ask: impl AsyncFn(&Gateway, &str) -> Reply) {
    let page = async |status: u16, media: &'static str, body: &'static str| {
        Server::with(|habits| habits.always = Some((status, media, body))).await
    };
    // Nobody listens there, and as long as it is taken nobody else will.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = taken.local_addr().unwrap();
    let closed = format!("http://{closed}/mcp?key=hidden-query");
    let mut setup = Setup::new().server_at("closed", &closed, "{}").server_at(
        "nowhere",
        "http://nowhere.invalid/mcp",
        "{}",
    );
    let table = [
        (
            "lost",
            404,
            "text/html",
            "is the path in servers.lost.url right?",
        ),
        (
            "page",
            200,
            "text/html",
            "is the path in servers.page.url right?",
        ),
        (
            "words",
            200,
            "application/json",
            "is the path in servers.words.url right?",
        ),
        ("shut", 401, "text/plain", "see servers.shut.headers"),
        (
            "busy",
            429,
            "text/plain",
            "the server limits the gateway: HTTP 429",
        ),
        (
            "moved",
            302,
            "text/plain",
            "write the final address into servers.moved.url",
        ),
        (
            "ill",
            503,
            "text/plain",
            "the server is in trouble: HTTP 503",
        ),
    ];
    let mut servers = Vec::new();
    for (name, status, media, _) in table {
        let server = page(status, media, "hidden-body").await;
        setup = setup.server(name, &server);
        servers.push(server);
    }
    let gateway = setup.start().await;
    for name in ["closed", "nowhere"]
        .into_iter()
        .chain(table.map(|row| row.0))
    {
        let mut reply = ask(&gateway, name).await;
        assert!(reply.json().await["error"].is_object(), "{name}");
    }
    let line = async |name: &str| {
        let place = format!("server={name} at=");
        gateway.says(&place).await;
        let output = gateway.output();
        let line = output.lines().find(|line| line.contains(&place)).unwrap();
        assert!(line.contains("WARN"), "{line}");
        line.to_owned()
    };
    let refused = line("closed").await;
    assert!(
        refused.contains("unreachable: could not connect: ")
            && refused.contains("refused (os error"),
        "{refused}"
    );
    assert!(
        line("nowhere").await.contains("dns error: "),
        "the cause of DNS"
    );
    for (name, _, _, expected) in table {
        let said = line(name).await;
        assert!(said.contains(expected), "{name}: {said}");
    }
    assert!(!gateway.output().contains("hidden"), "{}", gateway.output());
}

/// Modern servers are servers, too.
#[tokio::test]
async fn the_trouble_of_a_modern_server() {
    let server = Server::with(|habits| habits.modern = true).await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let call = Modern::new(&gateway, "alpha")
        .call("1", "fail", "{}")
        .start();
    server
        .called("fail")
        .await
        .respond(401, "text/plain", "hidden-body");
    call.await.unwrap().next().await;
    gateway
        .says("HTTP 401 Unauthorized, text/plain; see servers.alpha.headers server=alpha")
        .await;
    let server = Server::with(|habits| habits.modern = true).await;
    let gateway = Setup::new().server("beta", &server).start().await;
    let call = Modern::new(&gateway, "beta").call("1", "cut", "{}").start();
    drop(server.called("cut").await.stream());
    call.await.unwrap().next().await;
    gateway
        .says("no answer from the server: its stream ended before the answer server=beta")
        .await;
    assert!(!gateway.output().contains("hidden"));
}

/// However often a server fails, its lines are few, and they count those left out.
#[tokio::test]
async fn troubles_do_not_fill_the_log() {
    let server = Server::start().await;
    let gateway = Setup::new().server("alpha", &server).start().await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let fail = async || {
        let call = session.start(json::call("1", "fail", "{}"));
        server.called("fail").await.respond(500, "text/html", "no");
        call.await.unwrap().next().await;
    };
    let lines = || {
        let output = gateway.output();
        let lines = output.lines().filter(|line| line.contains("in trouble"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut failures = 0;
    while !lines().iter().any(|line| line.contains("left_out=")) {
        fail().await;
        failures += 1;
        assert!(failures < 100_000);
    }
    assert!(lines().len() < failures, "{failures}: {:?}", lines());
}

/// A garbled message in a stream names its server.
#[tokio::test]
async fn garbage_names_its_server() {
    let (server, gateway) = pair().await;
    let session = Client::new(&gateway, "alpha").open(NOTHING).await;
    let call = session.start(json::call("1", "ask", "{}"));
    let stream = server.called("ask").await.stream();
    stream.bytes("data: hidden-garbage\n\n").await;
    stream.result("{}").await;
    call.await.unwrap().next().await;
    gateway
        .says("the server sent something that is no MCP message server=alpha")
        .await;
    assert!(!gateway.output().contains("hidden"));
}

/// Behind a proxy that changes Host nobody gets in: the log says what to do. So for web pages.
#[tokio::test]
async fn refused_hosts_and_origins() {
    let (_server, gateway) = pair().await;
    let client = Client::new(&gateway, "alpha");
    client.with("host", "gw.example.test").post("{}").await;
    gateway
        .says(
            "refused host=gw.example.test; add it to allowed_hosts, or let the proxy pass the Host \
             header on",
        )
        .await;
    let (_server, gateway) = pair().await;
    let client = Client::new(&gateway, "alpha");
    client.with("origin", "https://a.test").post("{}").await;
    gateway
        .says("refused origin=https://a.test; add it to allowed_origins")
        .await;
}

/// A refused credential is told with the reason that the audit log has.
#[tokio::test]
async fn refused_credentials() {
    let server = Server::start().await;
    let key = crate::support::token::sha256("k");
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml(&format!(
            "auth: {{ api_keys: [ {{ name: ci, sha256: \"{key}\" }} ] }}"
        ))
        .start()
        .await;
    let reply = Client::new(&gateway, "alpha")
        .bearer("wrong-key")
        .post("{}")
        .await;
    assert_eq!(reply.status, 401);
    gateway
        .says("credentials refused server=alpha reason=\"unknown_api_key\" status=401")
        .await;
    assert!(!gateway.output().contains("wrong-key"));
}

/// A server that never answers `initialize` holds a session's place no longer than a call may take.
#[tokio::test]
async fn a_hung_initialize() {
    let server = Server::with(|habits| habits.hold_initialize = true).await;
    let gateway = Setup::new()
        .server("alpha", &server)
        .yaml("timeouts: { call: 300ms }\nlimits: { per_principal: { sessions: 1 } }")
        .start()
        .await;
    for _ in 0..2 {
        let mut reply = Client::new(&gateway, "alpha")
            .post(initialize("2025-11-25", NOTHING))
            .await;
        assert_eq!(reply.json().await["error"]["code"], -31002);
    }
    gateway
        .says("no answer from the server within 300ms server=alpha")
        .await;
}
