//! Commands that wait for the signatures of several people.

use serde_json::{Value, json};

use crate::sign::{Scene, assert_ran};
use crate::support::{Agent, Outcome, Site};
use crate::terminal::Terminal;

/// Two servers that ask for two signatures, by Ada and Ben.
async fn scene() -> (Scene, Vec<Agent>) {
    let scene = Scene::start().await;
    let (ada, ben) = (scene.keygen.generate("ada", "ed25519", ""), scene.keygen.generate("ben", "ed25519", ""));
    let signers = [("ada", ada.as_str()), ("ben", ben.as_str())];
    let mut agents = Vec::new();
    for name in ["web-1", "web-2"] {
        // Their policies call them something else, which the agents report.
        agents.push(scene.server(name, &format!("{name}.example.com"), &signers, "approvals = 2\n").await);
    }
    (scene, agents)
}

/// Asks for the signature of another person. Returns how the output names the command.
async fn asked(scene: &Scene, options: &[&str], command: &[&str]) -> (Outcome, String) {
    let key = scene.key("ada");
    let sign = ["--clock-skew", "0s", "--sign", &key, "--await-approval", "--yes"];
    let outcome = scene.site.run(&[&["exec"], &sign[..], options, &["--"], command].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let (_, line) = outcome.stdout.split_once("signalboxctl approvals sign ").unwrap_or_else(|| panic!("{outcome:?}"));
    let id = line.split(' ').next().unwrap().to_owned();
    (outcome, id)
}

async fn listed(site: &Site) -> Vec<Value> {
    let listed = site.run(&["approvals", "ls", "--all", "-o", "json"]).await.json();
    listed.as_array().unwrap().clone()
}

#[tokio::test]
async fn the_last_signature_runs_a_command_that_waits() {
    let (scene, _agents) = scene().await;
    let (site, ben) = (&scene.site, scene.key("ben"));

    let (asked, id) = asked(&scene, &["--tag", "production"], &["echo", "done"]).await;
    assert!(asked.stdout.starts_with("The command waits for 1 more signature, until "), "{asked:?}");
    assert!(asked.stderr.contains("  servers    web-1.example.com, web-2.example.com\n"), "{asked:?}");
    let list = site.run(&["approvals"]).await;
    assert!(list.done().contains("echo done  ada       awaiting approval  1 of 2"), "{list:?}");
    let shown = site.run(&["approvals", "show", &id]).await;
    let words = "  servers    web-1.example.com, web-2.example.com\n  command    echo done\n  timeout    60 s\n";
    assert!(shown.done().contains(words), "{shown:?}");
    assert!(shown.stdout.contains("  signed     by SHA256:"), "{shown:?}");

    let sign = ["approvals", "sign", &id, "--sign", &ben];
    site.run(&sign).await.refused(2, "confirm with --yes");
    let mut terminal = Terminal::start(site, &sign);
    terminal.until("ada asks for signatures, says the service.").await;
    terminal.until("  command    echo done").await;
    terminal.until("Sign this? [y/N]").await;
    terminal.enter("y\r");
    terminal.until("Signed. The command runs as the batch ").await;
    assert_eq!(terminal.ended().await, Some(0));

    let batch = format!("/commands/batches/{}", listed(site).await[0]["batch_id"].as_str().unwrap());
    let ended = crate::support::eventually("the batch ends", async || {
        Some(site.get(&batch).await).filter(|batch| batch["counts"]["running"] == 0 && batch["counts"]["queued"] == 0)
    });
    let ended = ended.await;
    assert_eq!(ended["counts"]["succeeded"], json!(2), "{ended}");
    site.run(&sign).await.refused(1, "runs as the batch");
    assert_eq!(site.run(&["approvals"]).await.done(), "");
}

#[tokio::test]
async fn enough_signatures_run_at_once_and_a_request_can_be_withdrawn() {
    let (scene, _agents) = scene().await;
    let (site, ada, ben) = (&scene.site, scene.key("ada"), scene.key("ben"));

    let both = ["exec", "--clock-skew", "0s", "--sign", &ada, "--sign", &ben, "--await-approval", "--yes"];
    let at_once = site.run(&[&both[..], &["web-1", "--", "echo done"]].concat()).await;
    assert_ran(&at_once, "── web-1\ndone\n");

    let (_, id) = asked(&scene, &["web-1"], &["true"]).await;
    let again = site.run(&["approvals", "sign", &id, "--sign", &ada, "--yes"]).await;
    assert_eq!(again.code, Some(1), "one key is one person: {again:?}");
    site.run(&["approvals", "withdraw", &id]).await.refused(2, "confirm with --yes");
    assert_eq!(site.run(&["approvals", "withdraw", &id, "--yes"]).await.done(), "Withdrawn.\n");
    site.run(&["approvals", "sign", &id, "--sign", &ben, "--yes"]).await.refused(1, "it is withdrawn");
    site.run(&["approvals", "show", "77777777"]).await.refused(1, "no command for signatures has an id");

    let refused = site.run(&["exec", "--clock-skew", "0s", "--sign", &ada, "--yes", "web-1", "--", "true"]).await;
    refused.refused(1, "--await-approval");
    site.run(&["exec", "--await-approval", "web-1", "--", "true"]).await.refused(2, "--sign");
}
