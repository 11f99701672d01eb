//! Salt: a master and a minion on loopback, with all of their files in a folder.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use super::venv::Venvs;
use super::worker::Worker;
use crate::group::Group;
use crate::peer::free_address;

const SCRIPT: &str = include_str!("salt.py");
const MINION: &str = "bench";

/// A client of a running master. Dropping it ends all of them.
#[derive(Debug)]
pub struct Salt {
    worker: Worker,
    _minion: Group,
    _master: Group,
    _folder: TempDir,
}

impl Salt {
    /// Starts them and waits until the minion answers.
    pub async fn start(venvs: &Venvs, user: &str) -> anyhow::Result<Self> {
        let python = venvs.program("salt", "python")?;
        // Its sockets need a short path.
        let folder = tempfile::Builder::new().prefix("signalbox-salt-").tempdir()?;
        let (publish, answers) = (free_address()?.port(), free_address()?.port());
        let root = folder.path().display();
        let master = format!(
            "user: {user}\nroot_dir: {root}/master\ninterface: 127.0.0.1\npublish_port: {publish}\nret_port: {answers}\n\
             auto_accept: True\nworker_threads: 3\n"
        );
        let minion = format!(
            "user: {user}\nroot_dir: {root}/minion\nid: {MINION}\nmaster: 127.0.0.1\nmaster_port: {answers}\n\
             publish_port: {publish}\n"
        );
        let master = start(venvs, folder.path(), "master", &master)?;
        let minion = start(venvs, folder.path(), "minion", &minion)?;
        let configuration = folder.path().join("master/master").display().to_string();
        let log = folder.path().join("client.log");
        let worker = Worker::start(&python, SCRIPT, &[configuration, MINION.to_owned()], log).await?;
        Ok(Self { worker, _minion: minion, _master: master, _folder: folder })
    }

    pub async fn run(&mut self) -> anyhow::Result<Duration> {
        self.worker.run().await
    }
}

/// Starts `salt-{role}` on a configuration in a folder of its own.
fn start(venvs: &Venvs, folder: &Path, role: &str, configuration: &str) -> anyhow::Result<Group> {
    let own = folder.join(role);
    fs::create_dir(&own)?;
    fs::write(own.join(role), configuration)?;
    let mut command = Command::new(venvs.program("salt", &format!("salt-{role}"))?);
    command.arg("-c").arg(&own).args(["-l", "warning"]);
    Group::start(command, &folder.join(format!("{role}.log")))
}
