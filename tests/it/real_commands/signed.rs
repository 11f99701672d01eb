//! Commands that operators sign, from the API to the agent and to the audit log.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;
use uuid::Uuid;

use super::Scene;
use crate::support::command_line::{Outcome, run, signalbox};
use crate::support::commands::answered;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::eventually;
use crate::support::keygen::{self, Keygen};
use crate::support::passkey::Passkey;
use crate::support::rest::Answer;
use crate::support::storage::direct;
use crate::support::terminal::Client;

/// A server that asks for signatures of everything, and its signers.
pub(super) struct Signed {
    pub scene: Scene,
    /// Of Cleo.
    pub passkey: Passkey,
    keygen: Keygen,
    files: TempDir,
}

impl Signed {
    pub async fn start() -> Self {
        let (files, keygen) = (TempDir::new().unwrap(), Keygen::new());
        // The agent is another user, who may read the owner's files.
        fs::set_permissions(&files, Permissions::from_mode(0o755)).unwrap();
        let write = |name: &str, text: String| {
            let path = files.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (ada, passkey) = (keygen.generate("ada", "ed25519", ""), Passkey::es256());
        let lines = format!("ada@example.org {ada}\n{}", passkey.line("cleo@example.org"));
        let signers = write("allowed_signers", lines);
        write("others", format!("eve@example.org {}\n", keygen.generate("eve", "ed25519", "")));
        let policy = format!(
            "commands = \"signed\"\nterminal = \"signed\"\ndocker = \"signed\"\nname = \"web-1\"\nsigners = \"{signers}\"\nallow = [\"echo allowed\"]\n"
        );
        let policy = write("policy.toml", policy);
        let scene = Scene::with_flags(&["--policy", &policy]).await;
        Self { scene, passkey, keygen, files }
    }

    /// A payload for `web-1` that holds for five minutes, with further fields.
    pub fn payload(fields: &Value) -> Vec<u8> {
        let now = Timestamp::now();
        let mut payload = json!({
            "v": 1, "servers": ["web-1"], "timeout_seconds": 60, "nonce": Uuid::now_v7().simple().to_string(),
            "not_before": now, "expires_at": now.plus_millis(300_000),
        });
        for (name, value) in fields.as_object().unwrap() {
            payload[name] = value.clone();
        }
        payload.to_string().into_bytes()
    }

    pub fn signed(&self, key: &str, fields: &Value) -> Value {
        let payload = Self::payload(fields);
        let signature = self.keygen.sign(key, "signalbox-command-v1", &payload);
        json!({
            "payload": keygen::base64(&payload),
            "signatures": [{ "type": "sshsig", "signature": signature }],
        })
    }

    pub async fn run(&self, signed: &Value) -> Answer {
        self.run_as("echo done", signed).await
    }

    pub async fn run_as(&self, command: &str, signed: &Value) -> Answer {
        let body = json!({ "command": command, "signed": signed });
        answered(self.scene.site.run_body("", body)).await
    }

    pub async fn open_terminal(&self, signed: Option<&Value>) -> Dashboard {
        let site = &self.scene.site;
        let signed = signed.map(|signed| format!("?signed={}", BASE64_URL_SAFE_NO_PAD.encode(signed.to_string())));
        let path = format!("/api/v1/ws/terminal/{}{}", site.server_id, signed.unwrap_or_default());
        Dashboard::open(site.service.address, &path, Pass::Subprotocol(&site.owner.token), &[]).await.unwrap()
    }

    /// Asks for the restart of the container `web`.
    pub async fn restart(&self, body: Value) -> Answer {
        let site = &self.scene.site;
        site.post(format!("/docker/{}/containers/web/restart", site.server_id)).json(body).send().await
    }

    pub async fn verify(&self, signers: &str) -> Outcome {
        self.verify_with(signers, &[]).await
    }

    pub async fn verify_strictly(&self, signers: &str) -> Outcome {
        self.verify_with(signers, &["--strict"]).await
    }

    async fn verify_with(&self, signers: &str, flags: &[&str]) -> Outcome {
        let mut command = signalbox(&["audit", "verify", "--signatures"]);
        command.arg(self.files.path().join(signers)).args(flags);
        command.env("SIGNALBOX_DATABASE_URL", direct(&self.scene.site.service.state.config.database_url()));
        run(command).await
    }
}

pub(super) fn echo() -> Value {
    json!({ "kind": "command", "command": "echo done" })
}

#[track_caller]
pub(super) fn assert_refused(answer: &Answer, reason: &str) {
    assert_eq!(answer.status, 400, "{answer}");
    let body: Value = answer.json();
    assert_eq!((&body["code"], &body["reason"]), (&json!("agent_refused"), &json!(reason)), "{body}");
}

#[actix_web::test]
async fn a_signed_command_runs_once_and_the_audit_log_proves_who_ordered_it() {
    let host = Signed::start().await;
    let signed = host.signed("ada", &echo());

    assert_refused(&answered(host.scene.site.run("echo done")).await, "not_signed");
    assert_refused(&host.run(&host.signed("eve", &echo())).await, "unknown_signer");
    let other = host.signed("ada", &json!({ "kind": "command", "command": "echo done", "servers": ["web-2"] }));
    assert_refused(&host.run(&other).await, "wrong_server");
    let done = host.run(&signed).await;
    assert_eq!(done.status, 200, "{done}");
    let done: Value = done.json();
    assert_eq!((&done["output"], &done["status"]), (&json!("done\n"), &json!("succeeded")));
    assert_refused(&host.run(&signed).await, "replayed");

    let log = host.scene.site.read("/audit?limit=500").await;
    let kept = log.as_array().unwrap().iter().filter(|entry| entry["detail"]["signed"] == signed).count();
    assert_eq!(kept, 2, "{log}");
    // A command that was waited for may be answered before its end is written.
    let proof = eventually("all ends are in the log", async || {
        let proof = host.verify("allowed_signers").await;
        (proof.stdout.matches(": refused by the agent (").count() == 4).then_some(proof)
    });
    let proof = proof.await;
    assert_eq!(proof.code, Some(0), "what the agent refused is no forgery: {proof:?}");
    let said: Vec<&str> =
        proof.stdout.lines().filter_map(|line| line.split_once(" on web-1: echo done: ")).map(|it| it.1).collect();
    assert_eq!(
        said,
        [
            "not signed: refused by the agent (not_signed)",
            "no signature is by a known signer: refused by the agent (unknown_signer)",
            "signed by ada@example.org for web-2: refused by the agent (wrong_server)",
            "signed by ada@example.org for web-1",
            "signed by ada@example.org for web-1: refused by the agent (replayed)",
        ],
        "{proof:?}"
    );
    let other = host.verify("others").await;
    assert_eq!((other.code, other.stdout.matches("FORGED").count()), (Some(1), 1), "{other:?}");
    assert!(
        other.stdout.contains("on web-1: echo done: FORGED OR ALTERED: no signature is by a known signer\n"),
        "{other:?}"
    );
}

#[actix_web::test]
async fn a_command_that_the_agent_allows_without_a_signature_is_named_to_the_check() {
    let host = Signed::start().await;

    let done = answered(host.scene.site.run("echo allowed")).await;

    assert_eq!(done.status, 200, "{done}");
    let unnamed = host.verify("allowed_signers").await;
    let named = host.verify_with("allowed_signers", &["--allow", "echo allowed"]).await;
    assert_eq!(unnamed.code, Some(1), "{unnamed:?}");
    assert!(unnamed.stdout.contains("echo allowed: NOT SIGNED, and the server asks for signatures\n"), "{unnamed:?}");
    assert!(named.printed().contains("echo allowed: not signed, as the server allows\n"), "{named:?}");
    host.verify_with("allowed_signers", &["--allow", "*"]).await.assert_refused("allow: `*` would run any program");
}

#[actix_web::test]
async fn a_batch_is_signed_once() {
    let host = Signed::start().await;
    let site = &host.scene.site;
    let body = json!({ "command": "echo done", "server_ids": [site.server_id], "signed": host.signed("ada", &echo()) });

    let batch = site.post("/commands").json(body).expect(201).await;

    let path = format!("/commands/batches/{}", batch["id"].as_str().unwrap());
    let ended = eventually("the batch ends", async || {
        let batch = site.read(&path).await;
        (!batch["finished_at"].is_null()).then_some(batch)
    });
    let ended = ended.await;
    assert_eq!(ended["counts"]["succeeded"], json!(1), "{ended}");
    let proof = host.verify("allowed_signers").await;
    assert_eq!(proof.code, Some(0), "{proof:?}");
    assert!(proof.stdout.contains("echo done: signed by ada@example.org for web-1\n"), "{proof:?}");
}

#[actix_web::test]
async fn a_signed_terminal_is_resumed_without_another_signature_and_ends_in_its_time() {
    let host = Signed::start().await;
    let site = &host.scene.site;
    let (address, token) = (site.service.address, &site.owner.token);
    // Long enough for what is typed, on a machine under load.
    let signed = host.signed("ada", &json!({ "kind": "terminal", "timeout_seconds": 20 }));

    let mut client = Client::open_signed(address, token, site.server_id, Some(&signed)).await;
    client.type_in("echo on''ce\n").await;
    client.until("once\r\n").await;
    let mut client = Client::resume(address, token, client.lose()).await;
    client.type_in("echo tw''ice\n").await;
    client.until("twice\r\n").await;
    let error = client.socket.until("error").await;

    assert_eq!(error, json!({"code": "agent_refused", "detail": "the terminal was signed for this long only"}));
}

#[actix_web::test]
async fn a_terminal_and_a_container_take_signatures_of_their_own() {
    let host = Signed::start().await;
    let terminal = host.signed("ada", &json!({ "kind": "terminal" }));

    let mut browser = host.open_terminal(Some(&terminal)).await;
    browser.send(json!({ "type": "input", "data": { "data": "echo o''k\n" } })).await;
    let mut shown = String::new();
    while !shown.contains("ok") {
        shown.push_str(browser.expect("output").await["data"].as_str().unwrap());
    }
    for (signed, reason) in [(None, "not_signed"), (Some(&terminal), "replayed")] {
        let error = host.open_terminal(signed).await.expect("error").await;
        assert_eq!((&error["code"], &error["reason"]), (&json!("agent_refused"), &json!(reason)), "{error}");
    }

    let restart = json!({ "kind": "container", "action": "restart web", "timeout_seconds": null });
    assert_refused(&host.restart(json!({})).await, "not_signed");
    assert_refused(&host.restart(json!({ "signed": terminal })).await, "not_signed");
    // The agent permits it. That there is no such container is the engine's answer, if there is an engine.
    let permitted = host.restart(json!({ "signed": host.signed("ada", &restart) })).await;
    let body: Value = permitted.json();
    assert_ne!(body["code"], json!("agent_refused"), "{body}");

    let proof = eventually("the refusals are in the log", async || {
        let proof = host.verify("allowed_signers").await;
        (proof.stdout.matches(": refused by the agent (").count() == 4).then_some(proof)
    });
    let proof = proof.await;
    let of = |words: &str| proof.stdout.lines().filter(|line| line.ends_with(words)).count();
    assert_eq!(proof.code, Some(0), "{proof:?}");
    assert_eq!(of(": not signed: refused by the agent (not_signed)"), 2, "{proof:?}");
    assert_eq!(of(": signed by ada@example.org for web-1: refused by the agent (replayed)"), 1, "{proof:?}");
    assert_eq!(of(": another kind of thing was signed: refused by the agent (not_signed)"), 1, "{proof:?}");
    assert_eq!(of(": signed by ada@example.org for web-1"), 2, "{proof:?}");
}

#[actix_web::test]
async fn a_terminal_takes_signatures_of_three_large_keys() {
    let host = Signed::start().await;
    host.keygen.generate("large", "rsa", "4096");
    let payload = Signed::payload(&json!({ "kind": "terminal" }));
    let by =
        |key: &str| json!({ "type": "sshsig", "signature": host.keygen.sign(key, "signalbox-command-v1", &payload) });
    // All keys of this size make signatures of this length. The agent opens the terminal for Ada's.
    let signatures = [by("large"), by("large"), by("large"), by("ada")];
    let signed = json!({ "payload": keygen::base64(&payload), "signatures": signatures });

    let mut browser = host.open_terminal(Some(&signed)).await;
    browser.send(json!({ "type": "input", "data": { "data": "true\n" } })).await;
    browser.expect("output").await;
}

#[actix_web::test]
async fn an_agent_that_checks_no_signatures_gets_nothing_that_is_signed() {
    let host = Signed::start().await;
    let scene = Scene::start().await;
    let signed = host.signed("ada", &echo());

    let answer = answered(scene.site.run_body("", json!({ "command": "echo done", "signed": signed }))).await;

    assert_eq!(answer.status, 400, "{answer}");
    let body: Value = answer.json();
    assert_eq!((&body["code"], &body["reason"]), (&json!("agent_refused"), &Value::Null), "{body}");
    assert!(body["detail"].as_str().unwrap().contains("does not check signatures"), "{body}");
}

#[actix_web::test]
async fn the_shape_of_what_is_signed_is_checked() {
    let host = Signed::start().await;
    let sound = host.signed("ada", &echo());
    let with = |name: &str, value: Value| {
        let mut signed = sound.clone();
        signed[name] = value;
        signed
    };
    let cases = [
        json!("signed"),
        json!({}),
        with("payload", json!("")),
        with("payload", json!("x".repeat(400_001))),
        with("signatures", json!([])),
        with("signatures", json!(vec![sound["signatures"][0].clone(); 17])),
        with("signatures", json!([{ "type": "pgp", "signature": "x" }])),
        with("signatures", json!([{ "type": "webauthn", "signature": "x" }])),
        with("signatures", json!([{ "type": "sshsig" }])),
        with("signatures", json!([{ "type": "sshsig", "signature": "x".repeat(16_385) }])),
    ];

    for signed in cases {
        let answer = host.run(&signed).await;
        assert_eq!(answer.status, 422, "{answer}");
    }
    assert_refused(&host.run(&with("payload", json!("not base64"))).await, "not_signed");
}
