//! A program with a given address to listen on and a folder of its own.

use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use reqwest::Client;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::child::{tail, terminate};
use crate::process::{Cpu, peak_rss};

/// A start on a large folder reads much of it.
const START_TIMEOUT: Duration = Duration::from_secs(120);
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
/// The longest answer is the count of everything.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);

/// A running program. Dropping it kills the process and removes its data.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    pid: u32,
    /// How it is started with a folder and an address.
    command: fn(&Path, SocketAddr) -> Command,
    further_arguments: Vec<String>,
    /// Answers 200 once it can be used.
    ready_path: &'static str,
    address: SocketAddr,
    client: Client,
    folder: TempDir,
}

impl Daemon {
    /// Starts it on `folder`, which may hold data already, and waits until it is ready.
    pub async fn start(
        command: fn(&Path, SocketAddr) -> Command,
        further_arguments: Vec<String>,
        ready_path: &'static str,
        folder: TempDir,
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let mut first = command(folder.path(), address);
        first.args(&further_arguments);
        let (child, pid) = spawn(first, folder.path())?;
        let client = Client::builder().timeout(REQUEST_TIMEOUT).build()?;
        let mut daemon = Self { child, pid, command, further_arguments, ready_path, address, client, folder };
        daemon.wait_until_ready().await?;
        Ok(daemon)
    }

    /// Stops it as its operator would.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        terminate(&mut self.child, STOP_TIMEOUT).await?;
        Ok(())
    }

    /// Starts it again after a stop: same address, same folder.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        let mut command = (self.command)(self.folder.path(), self.address);
        command.args(&self.further_arguments);
        (self.child, self.pid) = spawn(command, self.folder.path())?;
        self.wait_until_ready().await
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let answer = self.client.get(self.url(self.ready_path)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            let log = || tail(&log_file(self.folder.path()));
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("it ended with {status} at its start; its log:\n{}", log());
            }
            anyhow::ensure!(start.elapsed() < START_TIMEOUT, "it was not ready in time; its log:\n{}", log());
            sleep(POLL).await;
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn cpu(&self) -> anyhow::Result<Cpu> {
        Cpu::of(self.pid)
    }

    pub fn peak_rss(&self) -> anyhow::Result<u64> {
        peak_rss(self.pid)
    }
}

/// A folder below `work_dir` that is removed with its handle.
pub fn fresh_folder(work_dir: &Path, name: &str) -> anyhow::Result<TempDir> {
    fs::create_dir_all(work_dir).with_context(|| format!("cannot make {}", work_dir.display()))?;
    Ok(tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(work_dir)?)
}

/// Writes a secret, which the programs take from no file that others can read.
pub fn write_private(path: &Path, secret: &str) -> std::io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(secret.as_bytes())
}

/// Another program might take it before it is used; then the start fails and says so.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn spawn(mut command: Command, folder: &Path) -> anyhow::Result<(Child, u32)> {
    let program = command.as_std().get_program().to_owned();
    let log = File::options().create(true).append(true).open(log_file(folder))?;
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let pid = child.id().context("the child has no id")?;
    Ok((child, pid))
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("log")
}
