//! Commands that wait for the signatures of several people.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::relay::Relay;
use crate::sign::{Scene, assert_ran};
use crate::support::{Agent, Outcome, Running, Site};
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
    let failed = site.run(&[&both[..], &["web-1", "--", "exit 3"]].concat()).await;
    let heading = "── web-1 (failed, exit code 3)\n";
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(3), heading), "{failed:?}");

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

#[tokio::test]
async fn a_signature_that_is_not_needed_any_more_is_not_sent_and_a_lost_answer_is_named() {
    let (scene, _agents) = scene().await;
    scene.keygen.generate("eve", "ed25519", "");
    let (site, ben, eve) = (&scene.site, scene.key("ben"), scene.key("eve"));
    let relay = Relay::start(site.url.trim_start_matches("http://")).await;

    let (_, id) = asked(&scene, &["web-1"], &["true"]).await;
    let signed = site.run(&["approvals", "sign", &id, "--sign", &ben, "--sign", &eve, "--yes"]).await;
    let (_, id) = asked(&scene, &["web-1"], &["true"]).await;
    relay.lose_answer("POST /api/v1/commands/approvals/");
    let mut command = site.command(&["approvals", "sign", &id, "--sign", &ben, "--yes"]);
    command.env("SIGNALBOX_URL", relay.url());
    let lost = Running::start(command).outcome().await;

    assert_eq!(signed.code, Some(0), "{signed:?}");
    assert!(signed.stdout.starts_with("Signed. The command runs as the batch "), "{signed:?}");
    assert!(relay.has_lost_answer());
    lost.refused(1, "it is not known whether the signature was added, and with it the command started");
}

#[tokio::test]
async fn a_second_key_of_one_person_completes_nothing_and_the_command_waits_for_another() {
    let scene = Scene::start().await;
    let keys = ["ada", "ada-again", "ben"].map(|name| scene.keygen.generate(name, "ed25519", ""));
    let signers = [("ada", keys[0].as_str()), ("ada", keys[1].as_str()), ("ben", keys[2].as_str())];
    let _agent = scene.server("web-1", "web-1", &signers, "approvals = 2\n").await;
    let (site, ada, again, ben) = (&scene.site, scene.key("ada"), scene.key("ada-again"), scene.key("ben"));

    let both = ["exec", "--clock-skew", "0s", "--sign", &ada, "--sign", &again, "--await-approval", "--yes"];
    let refused = site.run(&[&both[..], &["web-1", "--", "echo done"]].concat()).await;

    refused.refused(1, "the command waits for 1 more signature, until ");
    assert!(refused.stderr.contains("the agents refused those that there are (not_enough_approvals)"), "{refused:?}");
    let waiting = listed(site).await[0].clone();
    assert_eq!((&waiting["status"], &waiting["needed"]), (&json!("awaiting_approval"), &json!(3)), "{waiting}");
    let id = waiting["id"].as_str().unwrap();
    let signed = site.run(&["approvals", "sign", id, "--sign", &ben, "--yes"]).await;
    assert!(signed.stdout.starts_with("Signed. The command runs as the batch "), "{signed:?}");
    let batch = format!("/commands/batches/{}", listed(site).await[0]["batch_id"].as_str().unwrap());
    let ended = crate::support::eventually("the batch ends", async || {
        Some(site.get(&batch).await).filter(|batch| batch["finished_at"].is_string())
    });
    assert_eq!(ended.await["counts"]["succeeded"], json!(1));
}

/// A service that somebody has taken over: whatever it is asked, it shows this command that waits. Returns its address, and the
/// first line of each request.
async fn offering(payload: &Value) -> (String, Arc<Mutex<Vec<String>>>) {
    let approval = json!({
        "id": Uuid::nil(), "status": "awaiting_approval", "command": "echo done", "username": "ben", "needed": 2,
        "missing": 1, "signatures": [], "expires_at": "2026-11-26T10:10:00Z", "batch_id": null, "stdin": null,
        "payload": BASE64_STANDARD.encode(payload.to_string()),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, asked) = (format!("http://{}", listener.local_addr().unwrap()), Arc::new(Mutex::new(Vec::new())));
    let (log, body) = (Arc::clone(&asked), approval.to_string());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { break };
                request.push(byte);
            }
            let line = String::from_utf8(request).unwrap().lines().next().map(str::to_owned);
            log.lock().extend(line);
            _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    (url, asked)
}

#[tokio::test]
async fn what_a_hostile_service_offers_beside_a_single_command_is_shown_and_not_signed() {
    let scene = Scene::start().await;
    scene.keygen.generate("ada", "ed25519", "");
    let payload = json!({
        "v": 1, "servers": ["web-1"], "kind": "command", "command": "echo done", "timeout_seconds": 60,
        "repeat": {"cron": "* * * * *", "time_zone": "UTC"}, "not_before": "2026-11-26T10:00:00Z",
        "expires_at": "2027-11-26T10:00:00Z", "nonce": "0123456789abcdef0123456789abcdef",
    });
    let (url, asked) = offering(&payload).await;
    let id = Uuid::nil().to_string();
    let run = async |arguments: &[&str]| {
        let mut command = scene.site.command(arguments);
        command.env("SIGNALBOX_URL", &url);
        Running::start(command).outcome().await
    };

    let shown = run(&["approvals", "show", &id]).await;
    let signed = run(&["approvals", "sign", &id, "--sign", &scene.key("ada"), "--yes"]).await;

    assert!(shown.stdout.contains("  recurs     * * * * * (UTC), once each time that it is due\n"), "{shown:?}");
    shown.refused(0, "this cannot be signed: it recurs (* * * * *)");
    signed.refused(2, "this cannot be signed: it recurs (* * * * *)");
    let get = format!("GET /api/v1/commands/approvals/{id} HTTP/1.1");
    assert_eq!(*asked.lock(), [get.clone(), get], "nothing was signed");
}
