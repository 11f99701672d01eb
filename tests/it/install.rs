//! `/install` and `/install.sh`: an agent's installation from one's own service.

mod enrol;
mod line;
mod packaged;
mod platform;
mod programs;
mod refusals;
mod runs;
mod script;
mod signers;
mod signers_refused;
mod slow;
mod sources;
mod unit;
mod updates;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::real_agent::agent_program;
use crate::support::TestService;
use crate::support::command_line::{Outcome, run};

/// A key of the right shape, which opens nothing.
const KEY: &str = "sbk_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const OTHER_KEY: &str = "sbk_fedcba9876543210_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";

const AGENT: &str = "usr/local/bin/signalbox-agent";
const POLICY: &str = "etc/signalbox-agent/policy.toml";
const ENVIRONMENT: &str = "etc/signalbox-agent/agent.env";
const KEY_FILE: &str = "etc/signalbox-agent/key";
const UNIT: &str = "etc/systemd/system/signalbox-agent.service";

/// The smallest program that installs: it runs, and that is all that the script asks of it.
const TRIVIAL: &str = "#!/bin/sh\nexit 0\n";

/// A service that hands out the programs of a directory.
struct Shop {
    service: TestService,
    programs: TempDir,
}

impl Shop {
    /// With [`TRIVIAL`] for this machine.
    async fn open() -> Self {
        let shop = Self::empty().await;
        shop.stock(&own_program(), TRIVIAL);
        shop
    }

    /// With the real agent for this machine.
    async fn with_agent() -> Self {
        Self::of(real_programs()).await
    }

    async fn empty() -> Self {
        Self::of(TempDir::new().unwrap()).await
    }

    async fn of(programs: TempDir) -> Self {
        let directory = programs.path().to_owned();
        let service = TestService::start_with(|config| config.install_dir = Some(directory)).await;
        Self { service, programs }
    }

    /// Puts a program there, as a whole.
    fn stock(&self, name: &str, content: &str) {
        fs::write(self.programs.path().join("new"), content).unwrap();
        fs::rename(self.programs.path().join("new"), self.programs.path().join(name)).unwrap();
    }

    fn url(&self) -> String {
        format!("http://{}", self.service.address)
    }
}

/// A directory with the real agent for this machine.
fn real_programs() -> TempDir {
    let programs = TempDir::new().unwrap();
    fs::copy(agent_program(), programs.path().join(own_program())).unwrap();
    programs
}

/// The program for this machine.
fn own_program() -> String {
    format!("signalbox-agent-linux-{}", std::env::consts::ARCH)
}

/// A directory that the script takes for `/`.
struct Machine {
    root: TempDir,
}

impl Machine {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    /// The command that a user pastes, with dash as the shell.
    fn pasted(&self, url: &str, arguments: &[&str]) -> Command {
        let mut command = shell(r#"curl -fsSL "$1/install.sh" | { shift; dash -s -- "$@"; }"#);
        command.env("SIGNALBOX_ROOT", self.root.path()).arg(url).args(arguments);
        command
    }

    async fn install(&self, url: &str, arguments: &[&str]) -> Outcome {
        run(self.pasted(url, arguments)).await
    }

    /// An installation that works.
    #[track_caller]
    fn installed(&self, url: &str, arguments: &[&str]) -> impl Future<Output = ()> {
        let command = self.pasted(url, arguments);
        async move {
            let outcome = run(command).await;
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            assert_eq!(outcome.stderr, "", "{outcome:?}");
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.path().join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    fn mode(&self, file: &str) -> u32 {
        fs::metadata(self.path(file)).unwrap().permissions().mode() & 0o7777
    }

    /// Every file, by its path, with its content.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        collect(self.root.path(), &mut files);
        files.sort();
        files
    }
}

fn collect(directory: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let content = fs::read(&path).unwrap();
            files.push((path, content));
        }
    }
}

/// A shell command with its arguments, and nothing of this process's environment that could matter.
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("no_proxy", "*");
    shell.args(["-c", command, "sh"]);
    shell
}

/// Asserts that a failure left one line that names why.
#[track_caller]
fn assert_refused(outcome: &Outcome, named: &str) {
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    assert!(outcome.stderr.starts_with("install.sh: "), "{outcome:?}");
    assert!(outcome.stderr.contains(named), "{outcome:?} does not name {named}");
}
