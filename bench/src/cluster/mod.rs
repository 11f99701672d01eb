//! Several instances of the service on loopback, with a PostgreSQL and a NATS server of their own.

mod enrol;
mod nats;
mod postgres;
mod stretch;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;
use tokio::process::Command;

pub use self::nats::{Nats, Traffic};
pub use self::postgres::Postgres;
pub use self::stretch::{Spent, Stretch, watch};
use crate::child::ListeningChild;
use crate::fixture::Enrolled;
use crate::peer::{fresh_folder, write_private};
use crate::process::{Cpu, Memory};
use crate::report::progress;
use crate::rest::Rest;
use crate::service::ServiceOptions;

/// The files that all instances share.
const SECRETS: [&str; 2] = ["signing-key", "encryption-key"];

/// Running instances, in the order in which they were started. Dropping it kills everything and removes all data.
#[derive(Debug)]
pub struct Cluster {
    instances: Vec<ListeningChild>,
    /// The one user, at an instance that may not run any more: see [`Cluster::rest`].
    user: Rest,
    pub fleet: Vec<Enrolled>,
    pub postgres: Postgres,
    pub nats: Nats,
    options: ServiceOptions,
    folder: TempDir,
    /// Instances that were ever started.
    started: usize,
}

impl Cluster {
    /// Starts PostgreSQL and NATS, and creates a user and this many servers. No instance runs yet.
    pub async fn start(options: &ServiceOptions, servers: usize) -> anyhow::Result<Self> {
        fs::create_dir_all(&options.work_dir).with_context(|| format!("cannot make {}", options.work_dir.display()))?;
        // PostgreSQL needs absolute paths, because it runs elsewhere.
        let work_dir = options.work_dir.canonicalize()?;
        let options = ServiceOptions { work_dir: work_dir.clone(), ..options.clone() };
        progress("starting PostgreSQL and NATS");
        let postgres = Postgres::start(&work_dir).await?;
        let nats = Nats::start(&work_dir).await?;
        let folder = fresh_folder(&work_dir, "instances")?;
        for name in SECRETS {
            let secret: String = (0..64).map(|_| fastrand::alphanumeric()).collect();
            write_private(&folder.path().join(name), &secret).context("cannot write a secret")?;
        }
        let mut first = serve(&options, folder.path(), &postgres, &nats, 0).await?;
        let user = Rest::register(first.address).await?;
        end(&mut first).await?;
        progress(format_args!("making {servers} servers"));
        let fleet = enrol::enrol(&postgres, servers).await?;
        Ok(Self { instances: Vec::new(), user, fleet, postgres, nats, options, folder, started: 1 })
    }

    /// Starts instances, or stops the last ones, until this many run.
    pub async fn resize(&mut self, count: usize) -> anyhow::Result<()> {
        while self.instances.len() > count {
            if let Some(mut last) = self.instances.pop() {
                end(&mut last).await?;
            }
        }
        while self.instances.len() < count {
            let Self { options, folder, postgres, nats, started, .. } = self;
            self.instances.push(serve(options, folder.path(), postgres, nats, *started).await?);
            self.started += 1;
        }
        Ok(())
    }

    /// Kills an instance as a power cut would. Later ones move up.
    pub async fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        anyhow::ensure!(number < self.instances.len(), "there is no instance {number}");
        self.instances.remove(number).kill().await
    }

    /// Where the instances are.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.instances.iter().map(|instance| instance.address).collect()
    }

    pub fn address(&self, number: usize) -> anyhow::Result<SocketAddr> {
        let instance = self.instances.get(number).with_context(|| format!("there is no instance {number}"))?;
        Ok(instance.address)
    }

    /// The user at one of the instances.
    pub fn rest(&self, number: usize) -> anyhow::Result<Rest> {
        Ok(self.user.at(self.address(number)?))
    }

    /// Signs in again, so that the token lasts another half of an hour.
    pub async fn renew(&mut self) -> anyhow::Result<()> {
        self.user = self.rest(0)?;
        self.user.renew().await
    }

    pub fn server(&self, number: usize) -> anyhow::Result<&Enrolled> {
        self.fleet.get(number).with_context(|| format!("there is no server {number}"))
    }

    /// CPU time of all instances that run.
    pub fn service_cpu(&self) -> anyhow::Result<Cpu> {
        let mut all = Cpu::default();
        for instance in &self.instances {
            let cpu = Cpu::of(instance.pid())?;
            all = Cpu { user: all.user + cpu.user, system: all.system + cpu.system };
        }
        Ok(all)
    }

    /// RSS of each instance, in bytes.
    pub fn memory(&self) -> anyhow::Result<Vec<u64>> {
        self.instances.iter().map(|instance| Ok(Memory::of(instance.pid())?.rss)).collect()
    }

    /// Where further throw-away folders may be made.
    pub fn work_dir(&self) -> &Path {
        &self.options.work_dir
    }
}

async fn serve(
    options: &ServiceOptions,
    folder: &Path,
    postgres: &Postgres,
    nats: &Nats,
    number: usize,
) -> anyhow::Result<ListeningChild> {
    let mut command = Command::new(&options.service);
    command.args(["serve", "--listen", "127.0.0.1:0", "--drain", "0", "--data-dir"]);
    command.arg(folder.join(format!("data-{number}")));
    for (flag, name) in ["--jwt-secret-file", "--encryption-key-file"].into_iter().zip(SECRETS) {
        command.arg(flag).arg(folder.join(name));
    }
    command
        .args(&options.service_arg)
        .env("SIGNALBOX_DATABASE_URL", postgres.url())
        .env("SIGNALBOX_NATS_URL", nats.url());
    ListeningChild::start(command, &folder.join(format!("service-{number}.log"))).await
}

async fn end(instance: &mut ListeningChild) -> anyhow::Result<()> {
    let status = instance.terminate().await?;
    anyhow::ensure!(status.success(), "an instance ended with {status} at SIGTERM");
    Ok(())
}
