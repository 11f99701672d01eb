//! Signals that end the program.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::exec_outages::{endless, newest_command};
use crate::sign::Scene;
use crate::support::{Running, Site, eventually};
use crate::terminal::Terminal;

#[tokio::test]
async fn sigterm_cancels_a_command_and_names_it() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let ended = agent.state.path().join("ended");
    let script = format!("trap 'echo bye >{}; exit 9' TERM; echo begun; sleep 1000 & wait", ended.display());
    let running = Running::start(site.command(&["exec", "web-1", "--timeout", "10m", "--", &script]));
    running.until("begun\n").await;

    running.signal("TERM");
    let outcome = running.outcome().await;

    let id = newest_command(&site, &agent).await;
    outcome.refused(143, &format!("cancelling the command {id}\n"));
    outcome.refused(143, &format!("ended by SIGTERM; the command {id} "));
    eventually("the command itself ends", async || ended.exists().then_some(())).await;
}

#[tokio::test]
async fn sigterm_ends_the_program_although_its_reader_has_paused() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let ended = agent.state.path().join("ended");
    let script = format!("trap 'echo bye >{}; exit 9' TERM; seq 1 200000; sleep 1000 & wait", ended.display());
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = site.command(&["exec", "web-1", "--timeout", "10m", "--", &script]);
    let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    // More than a pipe holds is on its way.
    reader.read_exact(&mut [0]).unwrap();

    let sent = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    let status = eventually("it ends", async || child.try_wait().unwrap()).await;

    assert!(sent.success());
    assert_eq!(status.code(), Some(143));
    eventually("the command itself ends", async || ended.exists().then_some(())).await;
    drop(reader);
}

#[tokio::test]
async fn sigterm_cancels_a_batch_and_names_it() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &["production"], &["--commands", "on"]).await;
    let script = endless(&agent);
    let mut terminal = Terminal::start(&site, &["exec", "--tag", "production", "--timeout", "10m", "--", &script]);
    terminal.until("0 of 1 server done").await;

    terminal.signal("TERM");

    assert_eq!(terminal.ended().await, Some(143));
    let batches = site.get("/commands/batches").await;
    assert_eq!(batches[0]["cancelled"], true, "{batches}");
    terminal.until(&format!("cancelling the batch {}", batches[0]["id"].as_str().unwrap())).await;
    terminal.until("ended by SIGTERM; the batch ").await;
}

#[tokio::test]
async fn a_terminal_that_closes_leaves_a_batch_to_the_service() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &["production"], &["--commands", "on"]).await;
    let script = endless(&agent);
    let exec = site.command(&["exec", "--tag", "production", "--timeout", "10m", "--", &script]);
    // Tests that run under nohup would give it their ignored SIGHUP.
    let mut heeding = Command::new("env");
    heeding.arg("--default-signal=HUP").arg(exec.get_program()).args(exec.get_args());
    heeding.envs(exec.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut terminal = Terminal::of(&heeding);
    terminal.until("0 of 1 server done").await;

    terminal.signal("HUP");

    assert_eq!(terminal.ended().await, Some(129));
    let batches = site.get("/commands/batches").await;
    assert_eq!(batches[0]["cancelled"], false, "{batches}");
    terminal.until("ended by SIGHUP; the batch ").await;
}

#[tokio::test]
async fn sigterm_at_a_hidden_question_restores_the_terminal() {
    let site = Site::start().await;
    let mut terminal = Terminal::start_plain(&site, &["login", &site.url, "--username", "ada"]);
    terminal.until("Password: ").await;
    terminal.raw().await;

    terminal.signal("TERM");

    assert_eq!(terminal.ended().await, Some(143));
}

#[tokio::test]
async fn after_a_hidden_question_signals_still_end_the_program() {
    let scene = Scene::start().await;
    let ada = scene.keygen.generate("ada", "ed25519", "");
    let key = scene.key("ada");
    let encrypt = ["-q", "-p", "-P", "", "-N", "open sesame", "-a", "2", "-f", &key];
    assert!(Command::new("ssh-keygen").args(encrypt).stdout(Stdio::null()).status().unwrap().success());
    let _agent = scene.server("web-1", "web-1", &[("ada", &ada)], "").await;
    let call = ["exec", "--clock-skew", "0s", "--sign", &key, "--tag", "production", "--", "true"];
    let mut terminal = Terminal::start(&scene.site, &call);
    terminal.until("Passphrase of ").await;
    terminal.raw().await;
    terminal.enter("open sesame\r");
    terminal.until("Sign for them? [y/N]").await;

    terminal.signal("INT");

    assert_eq!(terminal.ended().await, Some(130));
}
