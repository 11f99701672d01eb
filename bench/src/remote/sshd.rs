//! An SSH server of its own: configuration, port, keys and user in a folder that is removed with it.
//!
//! The user matters: a shell that reads long start files takes longer than everything else together. So root uses a plain user
//! with `/bin/sh` and no such files, who exists only in a mount namespace of the server; nothing on the machine is changed. Any
//! other user logs in as themselves, whatever their shell does.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::sleep;

use super::program::Program;
use super::venv::Venvs;
use super::worker::Worker;
use crate::child::tail;
use crate::group::Group;
use crate::peer::free_address;

const SSHD: &str = "/usr/sbin/sshd";
const PLAIN_USER: &str = "signalbox-bench";
/// Unused on a Debian machine: above the ids of people, below those of containers.
const PLAIN_UID: u32 = 64_998;
const ASYNCSSH: &str = include_str!("asyncssh.py");
const START_TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

/// A running server and a standing connection to it. Dropping it ends both.
#[derive(Debug)]
pub struct Sshd {
    port: u16,
    user: String,
    _master: Option<Group>,
    server: Group,
    folder: TempDir,
}

impl Sshd {
    pub async fn start() -> anyhow::Result<Self> {
        anyhow::ensure!(Path::new(SSHD).exists(), "openssh-server is not installed");
        let folder = tempfile::Builder::new().prefix("signalbox-ssh-").tempdir()?;
        // The user who logs in must be able to read its keys.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let port = free_address()?.port();
        for key in ["host_key", "key"] {
            make_key(&folder.path().join(key)).await?;
        }
        fs::copy(folder.path().join("key.pub"), folder.path().join("authorized_keys"))?;
        fs::write(folder.path().join("sshd_config"), configuration(folder.path(), port))?;
        let (command, user) = if rustix::process::geteuid().is_root() {
            (as_plain_user(folder.path())?, PLAIN_USER.to_owned())
        } else {
            (server(folder.path()), std::env::var("USER").context("USER is not set")?)
        };
        let server = Group::start(command, &log_file(folder.path()))?;
        let mut sshd = Self { port, user, _master: None, server, folder };
        sshd.wait_until_ready().await?;
        sshd.start_master().await?;
        Ok(sshd)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the user who logs in may write.
    pub fn home(&self) -> PathBuf {
        self.folder().join("home")
    }

    pub fn key(&self) -> PathBuf {
        self.folder().join("key")
    }

    pub fn control_path(&self) -> PathBuf {
        self.folder().join("master")
    }

    /// `ssh` with a new connection each time.
    pub fn anew(&self) -> Program {
        self.ssh(&["-o", "ControlMaster=no", "-o", "ControlPath=none"])
    }

    /// `ssh` through the existing connection.
    pub fn through_master(&self) -> Program {
        let path = format!("ControlPath={}", self.control_path().display());
        self.ssh(&["-o", "ControlMaster=no", "-o", &path])
    }

    /// A library that opens a channel on its standing connection.
    pub async fn asyncssh(&self, venvs: &Venvs) -> anyhow::Result<Worker> {
        let python = venvs.program("asyncssh", "python")?;
        let arguments = [self.port.to_string(), self.user.clone(), self.key().display().to_string()];
        Worker::start(&python, ASYNCSSH, &arguments, self.folder().join("asyncssh.log")).await
    }

    fn ssh(&self, options: &[&str]) -> Program {
        let mut arguments = self.client_arguments();
        arguments.extend(options.iter().map(OsString::from));
        arguments.extend(["127.0.0.1", "true"].map(OsString::from));
        Program { program: "ssh".into(), arguments, environment: Vec::new(), log: self.folder().join("ssh.log") }
    }

    fn client_arguments(&self) -> Vec<OsString> {
        let (port, key) = (self.port.to_string(), self.key().display().to_string());
        let arguments = ["-F", "none", "-p", &port, "-l", &self.user, "-i", &key];
        let options =
            ["IdentitiesOnly=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"];
        let options = options.into_iter().flat_map(|option| ["-o", option]);
        arguments.into_iter().chain(options).map(OsString::from).collect()
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        let attempt = self.anew();
        loop {
            let Err(error) = attempt.run().await else { return Ok(()) };
            let log = log_file(self.folder.path());
            self.server.check(&log).context("sshd")?;
            anyhow::ensure!(start.elapsed() < START_TIMEOUT, "{error:#}\nsshd's log:\n{}", tail(&log));
            sleep(POLL).await;
        }
    }

    async fn start_master(&mut self) -> anyhow::Result<()> {
        let mut command = Command::new("ssh");
        let path = format!("ControlPath={}", self.control_path().display());
        command.args(self.client_arguments()).args(["-o", "ControlMaster=yes", "-o", &path, "-N", "127.0.0.1"]);
        let log = self.folder().join("master.log");
        let mut master = Group::start(command, &log)?;
        let start = Instant::now();
        while !self.control_path().exists() {
            master.check(&log).context("ssh ControlMaster")?;
            anyhow::ensure!(start.elapsed() < START_TIMEOUT, "ssh ControlMaster did not come up in time");
            sleep(POLL).await;
        }
        self._master = Some(master);
        Ok(())
    }
}

async fn make_key(path: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path);
    let output = command.output().await.context("cannot run ssh-keygen; it is in openssh-client")?;
    anyhow::ensure!(output.status.success(), "ssh-keygen: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn configuration(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host_key\nPidFile none\n\
         AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nUsePAM no\nUseDNS no\nPrintMotd no\nPrintLastLog no\nLogLevel ERROR\n"
    )
}

fn server(folder: &Path) -> Command {
    let mut command = Command::new(SSHD);
    command.args(["-D", "-e", "-f"]).arg(folder.join("sshd_config"));
    command
}

/// The server in a mount namespace whose list of users has one more.
fn as_plain_user(folder: &Path) -> anyhow::Result<Command> {
    let home = folder.join("home");
    fs::create_dir(&home)?;
    chown(&home, Some(PLAIN_UID), Some(PLAIN_UID))?;
    let users = fs::read_to_string("/etc/passwd")?;
    let home = home.display();
    fs::write(folder.join("passwd"), format!("{users}{PLAIN_USER}:*:{PLAIN_UID}:{PLAIN_UID}::{home}:/bin/sh\n"))?;
    // The directory where its children drop their rights; Debian creates it at boot.
    fs::create_dir_all("/run/sshd")?;
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "/bin/sh",
        "-c",
        r#"mount --bind "$1/passwd" /etc/passwd && exec "$2" -D -e -f "$1/sshd_config""#,
    ]);
    command.args(["sh".as_ref(), folder.as_os_str(), SSHD.as_ref()]);
    Ok(command)
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("sshd.log")
}
