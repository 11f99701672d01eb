//! The command of packaging/cloud-init, as cloud-init runs it: once, with a file that it has written before.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use super::{Scene, host_name};
use crate::install::{KEY_FILE, Machine, own_program, shell};
use crate::support::agent::FakeAgent;
use crate::support::command_line::{Outcome, run};

/// A machine that starts for the first time.
struct FirstStart {
    machine: Machine,
    run_directory: TempDir,
    command: String,
}

impl FirstStart {
    /// With the token in its file.
    async fn of(scene: &Scene) -> Self {
        let (machine, run_directory) = (Machine::new(), TempDir::new().unwrap());
        let directory = run_directory.path().join("signalbox");
        let data = include_str!("../../../../packaging/cloud-init/user-data.yaml");
        let data = data
            .replace("/run/signalbox", directory.to_str().unwrap())
            .replace("https://signalbox.example.com", &scene.shop.url());
        let (files, command) = data.split_once("runcmd:\n  - |\n").unwrap();
        let file = files.lines().find_map(|line| line.trim().strip_prefix("- path: ")).unwrap();
        assert!(files.contains("permissions: \"0600\"") && files.contains("content: sbe_..."), "{files}");
        fs::create_dir(&directory).unwrap();
        crate::support::write_private(file.as_ref(), &scene.token(json!({})).await);
        Self { machine, run_directory, command: command.to_owned() }
    }

    fn directory(&self) -> PathBuf {
        self.run_directory.path().join("signalbox")
    }

    /// Runs the command after a line of the test's own, which gets these arguments.
    async fn run(&self, before: &str, arguments: &[&str]) -> Outcome {
        let mut command = shell(&format!("{before}\n{}", self.command));
        command.env("SIGNALBOX_ROOT", self.machine.root.path()).args(arguments);
        run(command).await
    }

    async fn assert_enrolled(&self, scene: &Scene) {
        assert_eq!(scene.servers().await, [host_name()]);
        assert!(!self.directory().exists(), "the token stays on the machine");
        FakeAgent::online(scene.shop.service.address, self.machine.read(KEY_FILE).trim()).await;
    }
}

#[actix_web::test]
async fn the_example_enrols_a_machine() {
    let scene = Scene::open().await;
    let start = FirstStart::of(&scene).await;

    let outcome = start.run("", &[]).await;

    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    start.assert_enrolled(&scene).await;
}

/// Both of its programs fail at first. Its pauses take no time: `sleep` notes them, and then repairs one of the programs.
#[actix_web::test]
async fn the_example_tries_until_the_machine_is_a_server() {
    let scene = Scene::open().await;
    let start = FirstStart::of(&scene).await;
    let program = scene.shop.programs.path().join(own_program());
    let (away, pauses) = (start.run_directory.path().join("away"), start.run_directory.path().join("pauses"));
    fs::rename(&program, &away).unwrap();
    fs::write(&pauses, "").unwrap();
    // Words of the shell alone: the script's own curl and sleep are not these.
    let before = r#"
        away=$1 program=$2 pauses=$3 token=$4
        tries() { wc -l <"$pauses"; }
        curl() { [ "$(tries)" -ge 2 ] && command curl "$@"; }
        sleep() {
          [ -s "$token" ] || exit 9
          echo "$1" >>"$pauses"
          if [ "$(tries)" = 7 ]; then mv "$away" "$program"; fi
          [ "$(tries)" -le 7 ] || exit 9
        }
    "#;
    let token = start.directory().join("token");
    let paths = [&away, &program, &pauses, &token].map(|path| path.to_str().unwrap());

    let outcome = start.run(before, &paths).await;

    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stderr.matches("the service has no agent").count(), 5, "{outcome:?}");
    assert_eq!(fs::read_to_string(&pauses).unwrap(), "5\n10\n20\n40\n80\n160\n160\n");
    start.assert_enrolled(&scene).await;
}
