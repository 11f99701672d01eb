//! PostgreSQL as an operator has it: on a disk, and a commit is durable.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::geteuid;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::child::tail;
use crate::peer::{free_address, fresh_folder};
use crate::process::Cpu;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// Where Debian puts each version's programs.
const VERSIONS: &str = "/usr/lib/postgresql";
/// It refuses to run as root.
const USER: &str = "postgres";
/// Every setting that affects a figure, even where it is the default. Memory and write-ahead log are those of a small server.
const SETTINGS: [&str; 7] = [
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "shared_buffers=512MB",
    "max_wal_size=4GB",
    "max_connections=200",
    // Its path may be longer than a socket's may be.
    "unix_socket_directories=",
];

/// A running server with one database. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct Postgres {
    _child: Child,
    pid: u32,
    address: SocketAddr,
    programs: PathBuf,
    folder: TempDir,
}

impl Postgres {
    /// Makes a fresh one below `work_dir`.
    pub async fn start(work_dir: &Path) -> anyhow::Result<Self> {
        let programs = programs()?;
        let folder = fresh_folder(work_dir, "postgres")?;
        if geteuid().is_root() {
            let (user, group) = account()?;
            chown(folder.path(), Some(user), Some(group)).context("cannot hand over the folder")?;
        }
        let data = folder.path().join("data");
        let mut init = as_owner(&programs.join("initdb"), folder.path());
        init.arg("-D").arg(&data).args(["-U", USER, "--auth=trust", "--no-instructions", "-E", "UTF8"]);
        let output = init.arg("--locale=C.UTF-8").kill_on_drop(true).output().await.context("cannot run initdb")?;
        anyhow::ensure!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr).trim());
        let address = free_address()?;
        let mut command = as_owner(&programs.join("postgres"), folder.path());
        command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &address.port().to_string()]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let log = File::create(log_file(folder.path()))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn()?;
        let pid = child.id().context("PostgreSQL has no id")?;
        let mut postgres = Self { _child: child, pid, address, programs, folder };
        postgres.wait_until_ready().await?;
        Ok(postgres)
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.rows("SELECT 1").await.is_err() {
            let log = || tail(&log_file(self.folder.path()));
            if let Some(status) = self._child.try_wait()? {
                anyhow::bail!("PostgreSQL ended with {status}; its log:\n{}", log());
            }
            anyhow::ensure!(start.elapsed() < START_TIMEOUT, "PostgreSQL did not start in time; its log:\n{}", log());
            sleep(POLL).await;
        }
        Ok(())
    }

    pub fn url(&self) -> String {
        format!("postgres://{USER}@{}/postgres", self.address)
    }

    /// Of all its processes.
    pub fn cpu(&self) -> anyhow::Result<Cpu> {
        Cpu::with_living_children(self.pid)
    }

    /// Bytes of write-ahead log so far.
    pub async fn wal(&self) -> anyhow::Result<u64> {
        self.number("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").await
    }

    /// The one number that a query answers; 0 where it answers NULL.
    pub async fn number(&self, sql: &str) -> anyhow::Result<u64> {
        let rows = self.rows(sql).await?;
        let text = rows.first().and_then(|row| row.first()).with_context(|| format!("no answer to {sql}"))?;
        if text.is_empty() { Ok(0) } else { text.parse().with_context(|| format!("{sql} answered {text}")) }
    }

    /// The rows of the statements, each a list of columns as text.
    pub async fn rows(&self, sql: &str) -> anyhow::Result<Vec<Vec<String>>> {
        let mut child = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-f", "-", "-d", &self.url()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot run psql")?;
        let mut stdin = child.stdin.take().context("psql has no standard input")?;
        // It says itself why it would not read.
        stdin.write_all(sql.as_bytes()).await.ok();
        drop(stdin);
        let output = child.wait_with_output().await?;
        anyhow::ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr).trim());
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Nobody will read these files again. It must have ended before they are removed, and frees its memory.
        let mut stop = as_owner(&self.programs.join("pg_ctl"), self.folder.path());
        stop.arg("-D").arg(self.folder.path().join("data")).args(["-s", "-w", "-m", "immediate", "stop"]);
        stop.as_std_mut().stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
    }
}

/// The newest version's.
fn programs() -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(VERSIONS).context("PostgreSQL is not there; it is in the package `postgresql`")?;
    let versions = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let newest = versions.max().with_context(|| format!("there is no version in {VERSIONS}"))?;
    Ok(Path::new(VERSIONS).join(newest.to_string()).join("bin"))
}

/// The user's and its group's numbers.
fn account() -> anyhow::Result<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd")?;
    let fields = users.lines().find_map(|line| line.strip_prefix(USER)?.strip_prefix(':'));
    let mut numbers = fields.into_iter().flat_map(|fields| fields.split(':').skip(1)).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(user)), Some(Ok(group))) => Ok((user, group)),
        _ => anyhow::bail!("there is no user {USER}"),
    }
}

/// A program that the owner of PostgreSQL's files may run.
fn as_owner(program: &Path, folder: &Path) -> Command {
    let mut command = if geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--init-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    // Its user may not enter the caller's.
    command.current_dir(folder);
    command
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("log")
}
