//! What all modes use: the server, the folder of a run, the issuer, and the ways to the server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Fallible;
use crate::client::{Era, Person};
use crate::gateway::Gateway;
use crate::nginx::Nginx;
use crate::options::Options;
use crate::process::{Cores, Process};
use crate::server;
use crate::token::Issuer;

/// Everything but the processes that are measured.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) cores: Cores,
    pub(crate) server: SocketAddr,
    /// How many people call at once.
    pub(crate) clients: usize,
    under: Vec<String>,
    issuer: Issuer,
    keys: PathBuf,
    folder: TempDir,
}

/// A way to the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    /// What stands in the way.
    pub(crate) process: Option<Process>,
}

impl World {
    pub(crate) fn new(cores: Cores, options: &Options) -> Fallible<Self> {
        let folder = tempfile::tempdir()?;
        let issuer = Issuer::new()?;
        let keys = issuer.publish(folder.path())?;
        Ok(Self {
            cores,
            server: server::start()?,
            clients: options.clients,
            under: options.under.clone(),
            issuer,
            keys,
            folder,
        })
    }

    /// Starts a gateway; each has a name of its own.
    pub(crate) async fn gateway(&self, name: &str) -> Fallible<Gateway> {
        let folder = self.folder(name);
        let command = (&self.cores, self.under.as_slice());
        Gateway::start(command, self.server, &folder, &self.keys).await
    }

    /// Starts an nginx, where it is installed.
    pub(crate) async fn nginx(&self, name: &str) -> Fallible<Option<Nginx>> {
        let folder = self.folder(name);
        Nginx::start(&self.cores, self.server, &folder).await
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(Path::new(name))
    }

    /// So many people at this address, each with a token, who have not arrived.
    pub(crate) fn people(
        &self,
        address: SocketAddr,
        count: usize,
        (era, server): (Era, Era),
    ) -> Fallible<Vec<Person>> {
        (0..count)
            .map(|number| self.person(&format!("person-{number}"), address, (era, server)))
            .collect()
    }

    /// One of them.
    pub(crate) fn person(
        &self,
        name: &str,
        address: SocketAddr,
        eras: (Era, Era),
    ) -> Fallible<Person> {
        self.window((name, name), address, eras)
    }

    /// One of several windows in which the person `subject` works, under a name of its own.
    pub(crate) fn window(
        &self,
        (name, subject): (&str, &str),
        address: SocketAddr,
        (era, server): (Era, Era),
    ) -> Fallible<Person> {
        let token = self.issuer.token(subject)?;
        Person::new((name.to_owned(), &token), era, address, server)
    }

    /// As many as call at once, all of them arrived.
    pub(crate) async fn callers(
        &self,
        address: SocketAddr,
        eras: (Era, Era),
    ) -> Fallible<Vec<Person>> {
        let mut people = self.people(address, self.clients, eras)?;
        for person in &mut people {
            person.arrive().await?;
        }
        Ok(people)
    }
}

impl Way {
    pub(crate) fn direct(world: &World) -> Self {
        Self {
            name: "direct",
            address: world.server,
            process: None,
        }
    }

    pub(crate) fn nginx(nginx: &Nginx) -> Self {
        Self {
            name: "nginx",
            address: nginx.address,
            process: Some(nginx.process),
        }
    }

    pub(crate) fn gateway(gateway: &Gateway) -> Self {
        Self {
            name: "gateway",
            address: gateway.address,
            process: Some(gateway.process),
        }
    }
}
