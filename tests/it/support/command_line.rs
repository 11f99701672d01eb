//! The `signalbox` program as a user starts it: arguments, environment, output, end.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use signalbox::config::MIN_PASSWORD_ITERATIONS;
use tempfile::TempDir;

use super::{Client, PATIENCE, eventually};

/// The program with these arguments and no setting from this process's environment except cheap passwords.
pub fn signalbox(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox"));
    command.env_clear().env("SIGNALBOX_PASSWORD_ITERATIONS", MIN_PASSWORD_ITERATIONS.to_string()).args(arguments);
    command
}

/// How a program ended on its own.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Asserts that it ended as a bad setting or a missing resource ends it: at once, with one line that names it.
    #[track_caller]
    pub fn assert_refused(&self, named: &str) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.contains(named), "{self:?} does not name {named}");
    }

    /// The output of a successful run.
    #[track_caller]
    pub fn printed(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        &self.stdout
    }
}

/// Runs a program until it ends on its own.
pub async fn run(command: Command) -> Outcome {
    Launched::start(command).outcome().await
}

/// A program that runs in an empty directory, and ends with the test whatever happens.
pub struct Launched {
    child: Child,
    directory: TempDir,
}

impl Launched {
    pub fn start(mut command: Command) -> Self {
        let directory = TempDir::new().unwrap();
        let child = command
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(File::create(directory.path().join("stdout")).unwrap())
            .stderr(File::create(directory.path().join("stderr")).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, directory }
    }

    pub fn stdout(&self) -> String {
        fs::read_to_string(self.directory.path().join("stdout")).unwrap()
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(self.directory.path().join("stderr")).unwrap()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended on its own.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The directory that it runs in.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The address that it prints when it can serve.
    pub async fn address(&mut self) -> SocketAddr {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some((line, _)) = self.stdout().split_once('\n') {
                let address = line.strip_prefix("listening on http://").and_then(|text| text.parse().ok());
                return address.unwrap_or_else(|| panic!("not where it listens: {line:?}"));
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?}: {}", self.stderr());
            assert!(Instant::now() < deadline, "it does not serve: {}", self.stderr());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Calls relative to `/api/v1` of the service that it is.
    pub async fn client(&mut self) -> Client {
        Client::new(format!("http://{}/api/v1", self.address().await))
    }

    /// Sends a signal by its name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success(), "no signal sent");
    }

    /// Waits until it ends on its own.
    pub async fn outcome(mut self) -> Outcome {
        let child = std::sync::Mutex::new(&mut self.child);
        let status = eventually("the program ends", async || child.lock().unwrap().try_wait().unwrap()).await;
        Outcome { code: status.code(), stdout: self.stdout(), stderr: self.stderr() }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // It has usually ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
