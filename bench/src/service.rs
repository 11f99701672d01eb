//! The service under test: a child process on loopback with a database of its own.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use tempfile::TempDir;
use tokio::process::Command;

use crate::child::ListeningChild;
use crate::process::{Cpu, Memory, peak_rss};

/// The paths of the service's program and data.
#[derive(Debug, Clone, Args)]
pub struct ServiceOptions {
    /// The service to measure; a release build.
    #[arg(long, global = true, default_value = "target/release/signalbox")]
    pub service: PathBuf,
    /// Where throw-away data folders are made. Should be a real disk: commits to a RAM disk cost nothing.
    #[arg(long, global = true, default_value = "target/bench")]
    pub work_dir: PathBuf,
    /// A further argument for the service; may be given more than once, as in `--service-arg=--log=warn`.
    #[arg(long, global = true)]
    pub service_arg: Vec<String>,
    /// Additional environment variables of the service.
    #[arg(skip)]
    pub variables: Vec<(&'static str, OsString)>,
}

impl ServiceOptions {
    /// The same for a service that may call webhooks on this machine.
    pub fn with_webhooks(&self) -> Self {
        let mut options = self.clone();
        options.service_arg.push("--notification-networks=127.0.0.0/8".to_owned());
        options
    }
}

/// A running service. Dropping it kills the process and removes its data.
#[derive(Debug)]
pub struct Service {
    options: ServiceOptions,
    process: ListeningChild,
    folder: TempDir,
}

impl Service {
    /// Starts a fresh service on a free port.
    pub async fn start(options: &ServiceOptions) -> anyhow::Result<Self> {
        fs::create_dir_all(&options.work_dir).with_context(|| format!("cannot make {}", options.work_dir.display()))?;
        let folder = tempfile::Builder::new().prefix("service-").tempdir_in(&options.work_dir)?;
        let process = serve(options, folder.path(), SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        Ok(Self { options: options.clone(), process, folder })
    }

    pub fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// Kills the service as a power cut would.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill().await
    }

    /// Stops the service gracefully, and answers how long that took.
    pub async fn terminate(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let status = self.process.terminate().await?;
        anyhow::ensure!(status.success(), "the service ended with {status} at SIGTERM");
        Ok(start.elapsed())
    }

    /// Starts an ended service again: same port, same data.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.process = serve(&self.options, self.folder.path(), self.process.address).await?;
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn cpu(&self) -> anyhow::Result<Cpu> {
        Cpu::of(self.process.pid())
    }

    pub fn memory(&self) -> anyhow::Result<Memory> {
        Memory::of(self.process.pid())
    }

    /// The highest RSS so far, in bytes.
    pub fn peak_rss(&self) -> anyhow::Result<u64> {
        peak_rss(self.process.pid())
    }

    /// Bytes on disk below the data folder.
    pub fn data_bytes(&self) -> u64 {
        folder_bytes(&self.data_folder())
    }

    /// Where further throw-away folders may be made.
    pub fn work_dir(&self) -> &Path {
        &self.options.work_dir
    }

    pub fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes a copy of the database next to it, as an operator would, and returns its size in bytes.
    pub async fn backup(&self) -> anyhow::Result<u64> {
        let file = self.folder.path().join("backup.sqlite");
        let output = Command::new(&self.options.service)
            .arg("backup")
            .arg(&file)
            .arg("--data-dir")
            .arg(self.data_folder())
            .kill_on_drop(true)
            .output()
            .await?;
        anyhow::ensure!(output.status.success(), "backup: {}", String::from_utf8_lossy(&output.stderr));
        let bytes = fs::metadata(&file)?.len();
        fs::remove_file(&file)?;
        Ok(bytes)
    }
}

async fn serve(options: &ServiceOptions, folder: &Path, listen: SocketAddr) -> anyhow::Result<ListeningChild> {
    let mut command = Command::new(&options.service);
    command
        .args(["serve", "--listen", &listen.to_string(), "--data-dir"])
        .arg(folder.join("data"))
        .args(&options.service_arg)
        .envs(options.variables.iter().map(|(name, value)| (name, value)));
    ListeningChild::start(command, &folder.join("service.log")).await
}

/// Bytes of every file below a folder.
pub fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
