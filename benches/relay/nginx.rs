//! nginx as a plain reverse proxy: the floor. It checks no token, limits nothing and writes no log.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Child;

use crate::Fallible;
use crate::process::{Cores, Process};

/// An nginx with one worker. It ends with this value.
#[derive(Debug)]
pub(crate) struct Nginx {
    pub(crate) address: SocketAddr,
    /// The worker.
    pub(crate) process: Process,
    master: Child,
}

impl Nginx {
    /// Starts one before the server at this address; `None` where nginx is not installed.
    pub(crate) async fn start(
        cores: &Cores,
        server: SocketAddr,
        folder: &Path,
    ) -> Fallible<Option<Self>> {
        let installed = std::process::Command::new("nginx").arg("-v").output();
        if installed.is_err() {
            return Ok(None);
        }
        std::fs::create_dir_all(folder)?;
        // nginx can't say which port the system chose.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration(address, server))?;
        let master = cores
            .measured("nginx")
            .arg("-p")
            .arg(folder)
            .arg("-e")
            .arg(folder.join("error.log"))
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let id = Process(master.id().ok_or("nginx ended")?);
        for _ in 0..200 {
            let worker = id.child();
            let listening = tokio::net::TcpStream::connect(address).await.is_ok();
            if let (Some(process), true) = (worker, listening) {
                return Ok(Some(Self {
                    address,
                    process,
                    master,
                }));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let said = std::fs::read_to_string(folder.join("error.log")).unwrap_or_default();
        Err(format!("nginx does not serve: {said}").into())
    }
}

/// A worker outlives a master that is killed: both are told to end.
impl Drop for Nginx {
    fn drop(&mut self) {
        let ids = [Some(self.process.0), self.master.id()];
        let mut kill = std::process::Command::new("kill");
        kill.args(ids.iter().flatten().map(u32::to_string));
        let _ended = kill.status();
    }
}

fn configuration(address: SocketAddr, server: SocketAddr) -> String {
    let descriptors = rlimit::getrlimit(rlimit::Resource::NOFILE).map_or(1024, |(_, hard)| hard);
    format!(
        "daemon off;
worker_processes 1;
worker_rlimit_nofile {descriptors};
pid nginx.pid;
events {{ worker_connections {descriptors}; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    keepalive_requests 1000000000;
    upstream server {{
        server {server};
        keepalive 512;
        keepalive_requests 1000000000;
    }}
    server {{
        listen {address};
        location /mcp/ {{
            proxy_pass http://server;
            proxy_set_header Host $host;
            proxy_set_header Connection \"\";
            proxy_http_version 1.1;
            proxy_buffering off;
            proxy_read_timeout 1h;
            client_max_body_size 4m;
        }}
    }}
}}
"
    )
}
