//! Signed commands that wait until enough people have signed them.

mod real;
mod refused;

use actix_web::rt;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::support::agent::FakeAgent;
use crate::support::signers::{Signers, signing_agent};
use crate::support::site::Site;
use crate::support::{Account, Call, eventually, text_of};

/// An hour.
const LONG: i64 = 3_600_000;

/// Late enough for the signatures and the request before it, on a machine under load.
const SOON: i64 = 10_000;

/// A service whose only server asks for two signatures, and who may sign.
struct Scene {
    site: Site,
    agent: FakeAgent,
    signers: Signers,
}

impl Scene {
    async fn start() -> Self {
        let (site, signers) = (Site::start().await, Signers::new());
        let agent = signing_agent(site.service.address, &site.key, "web-1", 2).await;
        site.until_status("online").await;
        Self { site, agent, signers }
    }

    fn payload(&self) -> Vec<u8> {
        self.signers.payload("uptime", LONG, &json!({}))
    }

    fn body(&self, payload: &[u8], signers: &[&str]) -> Value {
        json!({
            "server_ids": [self.site.server_id], "command": "uptime", "signed": self.signers.signed(signers, payload),
        })
    }

    /// What waits for more signatures.
    async fn ask(&self, payload: &[u8], signers: &[&str]) -> Value {
        self.site.post("/commands/approvals").json(self.body(payload, signers)).expect(201).await
    }

    fn sign(&self, approval: &Value, name: &str, payload: &[u8]) -> Call {
        self.site.post(format!("{}/signatures", path(approval))).json(self.signers.signature(name, payload))
    }

    fn by(&self, account: &Account, method: &str, path: impl AsRef<str>) -> Call {
        self.site.service.client.call(method.parse().unwrap(), path.as_ref()).bearer(&account.token)
    }

    async fn grant(&self, account: &Account, role: &str, rights: Value) -> Value {
        let scope = json!({ "server_id": self.site.server_id });
        let body = json!({ "subject": { "user_id": account.id }, "scope": scope, "role": role, "rights": rights });
        self.site.post("/grants").json(body).expect(201).await
    }

    async fn until(&self, approval: &Value, status: &str) -> Value {
        eventually(status, async || {
            Some(self.site.read(&path(approval)).await).filter(|approval| approval["status"] == status)
        })
        .await
    }

    async fn actions(&self) -> Vec<String> {
        let log = self.site.read("/audit?limit=500").await;
        let entries = log.as_array().unwrap().iter().rev();
        let actions = entries.map(|entry| text_of(&entry["action"]));
        actions.filter(|action| action.starts_with("approval.") || action.starts_with("batch.")).collect()
    }
}

fn path(approval: &Value) -> String {
    format!("/commands/approvals/{}", text_of(&approval["id"]))
}

#[actix_web::test]
async fn a_command_waits_for_its_last_signature_and_runs_once() {
    let mut scene = Scene::start().await;
    let payload = scene.payload();

    let waiting = scene.ask(&payload, &["ada"]).await;

    assert_eq!(
        (&waiting["status"], &waiting["needed"], &waiting["missing"], &waiting["batch_id"]),
        (&json!("awaiting_approval"), &json!(2), &json!(1), &Value::Null)
    );
    assert_eq!(waiting["payload"], BASE64_STANDARD.encode(&payload));
    assert_eq!(waiting["servers"], json!([{ "server_id": scene.site.server_id, "server_name": "web-1" }]));
    assert_eq!(waiting["signatures"][0]["username"], "owner");
    let listed = scene.site.read("/commands/approvals?status=awaiting_approval").await;
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["missing"]), (1, &json!(1)), "{listed}");
    assert_eq!(listed[0]["signatures"], waiting["signatures"]);

    let signed = scene.sign(&waiting, "ben", &payload).expect(200).await;

    assert_eq!((&signed["status"], &signed["missing"]), (&json!("approved"), &json!(0)), "{signed}");
    assert_eq!(signed["batch_id"], waiting["id"]);
    let sent = scene.agent.expect_execute().await;
    let carried = serde_json::to_value(sent.signed.unwrap()).unwrap();
    assert_eq!((sent.command.as_str(), &carried["payload"]), ("uptime", &waiting["payload"]));
    assert_eq!(carried["signatures"].as_array().unwrap().len(), 2);
    scene.agent.finish(sent.command_id).await;
    let batch = format!("/commands/batches/{}", text_of(&waiting["id"]));
    let ended = eventually("the batch ends", async || {
        Some(scene.site.read(&batch).await).filter(|batch| batch["finished_at"].is_string())
    });
    assert_eq!(ended.await["counts"]["succeeded"], 1);
    scene.sign(&waiting, "cleo", &payload).expect_error(400, "bad_request").await;
    scene.agent.expect_silence(1).await;
    assert_eq!(scene.actions().await, ["approval.create", "approval.sign", "approval.run", "batch.start"]);
    assert_eq!(scene.site.read("/commands/approvals?status=awaiting_approval").await, json!([]));
}

#[actix_web::test]
async fn what_has_all_its_signatures_does_not_wait() {
    let mut scene = Scene::start().await;

    let approved = scene.ask(&scene.payload(), &["ada", "ben"]).await;

    assert_eq!((&approved["status"], &approved["missing"]), (&json!("approved"), &json!(0)), "{approved}");
    scene.agent.expect_execute().await;
}

#[actix_web::test]
async fn signatures_that_come_at_the_same_time_start_it_once() {
    let mut scene = Scene::start().await;
    for _ in 0..5 {
        let payload = scene.payload();
        let waiting = scene.ask(&payload, &["ada"]).await;

        let both = ["ben", "cleo"].map(|name| rt::spawn(scene.sign(&waiting, name, &payload).send()));
        let mut statuses = Vec::new();
        for one in both {
            statuses.push(one.await.unwrap().status);
        }

        // The second comes too late if the first has started it.
        assert!(statuses.contains(&200) && statuses.iter().all(|status| [200, 400].contains(status)), "{statuses:?}");
        let sent = scene.agent.expect_execute().await;
        scene.agent.finish(sent.command_id).await;
        scene.until(&waiting, "approved").await;
    }
    scene.agent.expect_silence(1).await;
}

#[actix_web::test]
async fn what_is_no_signature_of_another_person_is_refused() {
    let mut scene = Scene::start().await;
    let payload = scene.payload();
    let waiting = scene.ask(&payload, &["ada"]).await;
    let signatures = format!("{}/signatures", path(&waiting));
    let challenge = |bytes: &[u8]| {
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
        let client = json!({
            "type": "webauthn.get", "challenge": BASE64_URL_SAFE_NO_PAD.encode(hash.as_ref()),
            "origin": "https://signalbox.example.org",
        });
        let authenticator = [[7; 32].as_slice(), &[5], &[0; 4]].concat();
        json!({
            "type": "webauthn", "signature": BASE64_URL_SAFE_NO_PAD.encode([1; 70]),
            "client_data_json": BASE64_URL_SAFE_NO_PAD.encode(client.to_string()),
            "authenticator_data": BASE64_URL_SAFE_NO_PAD.encode(authenticator),
        })
    };
    let others = scene.signers.payload("uptime", LONG, &json!({}));
    let cases = [
        (scene.signers.signature("ada", &payload), "has signed already"),
        (scene.signers.signature("ben", &others), "the signature is wrong"),
        (json!({ "type": "sshsig", "signature": "-----BEGIN SSH SIGNATURE-----" }), "not an SSH signature"),
        (challenge(&others), "not a passkey's signature of this payload"),
    ];

    for (signature, words) in cases {
        let refused = scene.site.post(&signatures).json(signature).expect_error(400, "bad_request").await;
        assert!(text_of(&refused["detail"]).contains(words), "{refused}");
    }
    let twice = scene.body(&payload, &["ada", "ada"]);
    scene.site.post("/commands/approvals").json(twice).expect_error(400, "bad_request").await;
    let still = scene.site.read(&path(&waiting)).await;
    assert_eq!((&still["status"], &still["missing"]), (&json!("awaiting_approval"), &json!(1)), "{still}");
    scene.agent.expect_silence(1).await;
    // A passkey's is counted, and the agent will say what it is worth.
    let counted = scene.site.post(&signatures).json(challenge(&payload)).expect(200).await;
    assert_eq!(counted["status"], "approved", "{counted}");
    assert_eq!(counted["signatures"][1]["signer"], format!("passkey of {}", scene.site.owner.id));
    scene.agent.expect_execute().await;
}

#[actix_web::test]
async fn a_request_that_no_agent_would_run_is_refused_at_once() {
    let scene = Scene::start().await;
    let cases = [
        (json!({ "command": "reboot" }), "another command"),
        (json!({ "timeout_seconds": 61 }), "another timeout_seconds"),
        (json!({ "kind": "terminal", "command": null }), "is for a terminal"),
        (json!({ "servers": ["web-2"] }), "does not name `web-1`"),
        (json!({ "not_before": "2020-01-01T00:00:00Z", "expires_at": "2020-01-01T01:00:00Z" }), "held until"),
        (json!({ "nonce": "short" }), "nonce"),
        (json!({ "repeat": { "cron": "0 3 * * *", "time_zone": "UTC" } }), "with `repeat` is for a schedule"),
    ];

    for (fields, words) in cases {
        let mut payload: Value = serde_json::from_slice(&scene.signers.payload("uptime", LONG, &fields)).unwrap();
        payload.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let body = scene.body(payload.to_string().as_bytes(), &["ada"]);
        let refused = scene.site.post("/commands/approvals").json(body).expect_error(400, "bad_request").await;
        assert!(text_of(&refused["detail"]).contains(words), "{words}: {refused}");
    }
    // Without it nothing waits: the agent decides at once.
    assert_eq!(scene.site.read("/commands/approvals").await, json!([]));
}

#[actix_web::test]
async fn what_nobody_signs_in_time_expires() {
    let mut scene = Scene::start().await;
    let payload = scene.signers.payload("uptime", SOON, &json!({}));
    let waiting = scene.ask(&payload, &["ada"]).await;

    let expired = scene.until(&waiting, "expired").await;

    assert!(expired["ended_at"].is_string(), "{expired}");
    scene.sign(&waiting, "ben", &payload).expect_error(400, "bad_request").await;
    scene.agent.expect_silence(1).await;
    assert_eq!(scene.actions().await, ["approval.create", "approval.expire"]);
}

#[actix_web::test]
async fn what_holds_later_waits_until_then() {
    let mut scene = Scene::start().await;
    let at = signalbox_protocol::Timestamp::now().plus_millis(SOON);
    let payload = scene.signers.payload("uptime", LONG, &json!({ "not_before": at }));

    let waiting = scene.ask(&payload, &["ada", "ben"]).await;

    assert_eq!((&waiting["status"], &waiting["missing"]), (&json!("awaiting_approval"), &json!(0)), "{waiting}");
    scene.agent.expect_execute().await;
    assert!(signalbox_protocol::Timestamp::now() >= at);
}

#[actix_web::test]
async fn it_is_for_those_who_may_run_commands_on_all_its_servers() {
    let mut scene = Scene::start().await;
    let payload = scene.payload();
    let waiting = scene.ask(&payload, &["ada"]).await;
    let [ben, viewer, manager] = [
        scene.site.service.register("ben").await,
        scene.site.service.register("viewer").await,
        scene.site.service.register("manager").await,
    ];
    scene.grant(&ben, "operator", json!(["commands"])).await;
    scene.grant(&viewer, "viewer", json!([])).await;
    scene.grant(&manager, "manager", json!([])).await;

    scene.by(&viewer, "GET", path(&waiting)).expect_error(404, "not_found").await;
    assert_eq!(scene.by(&viewer, "GET", "/commands/approvals").expect(200).await, json!([]));
    scene.by(&ben, "DELETE", path(&waiting)).expect_error(403, "forbidden").await;
    let seen = scene.by(&ben, "GET", "/commands/approvals").expect(200).await;
    assert_eq!(seen[0]["id"], waiting["id"]);
    // Of another server he knows nothing, so he does not see what is for both.
    let (other, key) = scene.site.other_server().await;
    let _other = signing_agent(scene.site.service.address, &key, "web-2", 1).await;
    let both = scene.signers.payload("uptime", LONG, &json!({ "servers": ["web-1", "web-2"] }));
    let mut body = scene.body(&both, &["ada"]);
    body["server_ids"] = json!([scene.site.server_id, other]);
    let of_both = scene.site.post("/commands/approvals").json(body).expect(201).await;
    assert_eq!((&of_both["needed"], of_both["servers"].as_array().unwrap().len()), (&json!(2), 2));
    assert_eq!(scene.by(&ben, "GET", "/commands/approvals").expect(200).await.as_array().unwrap().len(), 1);
    let signature = scene.signers.signature("ben", &both);
    let path_of_both = format!("{}/signatures", path(&of_both));
    scene.by(&ben, "POST", path_of_both).json(signature).expect_error(404, "not_found").await;

    let by_ben = scene.by(&ben, "POST", format!("{}/signatures", path(&waiting)));
    let signed = by_ben.json(scene.signers.signature("ben", &payload)).expect(200).await;
    assert_eq!((&signed["status"], &signed["signatures"][1]["username"]), (&json!("approved"), &json!("ben")));
    scene.agent.expect_execute().await;

    let another = scene.ask(&scene.payload(), &["ada"]).await;
    scene.by(&manager, "DELETE", path(&another)).expect(200).await;
    scene.until(&another, "withdrawn").await;
    scene.by(&scene.site.owner, "DELETE", path(&another)).expect_error(400, "bad_request").await;
    scene.agent.expect_silence(1).await;
}

#[actix_web::test]
async fn the_rights_of_who_asked_are_asked_again_when_it_runs() {
    let mut scene = Scene::start().await;
    let ben = scene.site.service.register("ben").await;
    let grant = scene.grant(&ben, "operator", json!(["commands"])).await;
    let payload = scene.payload();
    let asking = scene.by(&ben, "POST", "/commands/approvals").json(scene.body(&payload, &["ben"]));
    let waiting = asking.expect(201).await;

    let grant = format!("/grants/{}", text_of(&grant["id"]));
    scene.by(&scene.site.owner, "DELETE", grant).expect(200).await;
    let signed = scene.sign(&waiting, "ada", &payload).expect(200).await;

    assert_eq!(signed["status"], "approved", "{signed}");
    let commands = format!("/commands/{}", scene.site.server_id);
    let refused = eventually("the command is refused", async || {
        let commands = scene.site.read(&commands).await;
        Some(commands[0].clone()).filter(|command| command["status"] == "failed")
    });
    assert_eq!(refused.await["error"]["code"], "forbidden");
    scene.agent.expect_silence(1).await;
}

#[actix_web::test]
async fn an_account_has_a_limited_number_that_wait() {
    let scene = Scene::start().await;
    let payload = scene.payload();
    let first = scene.ask(&payload, &["ada"]).await;
    for _ in 1..50 {
        scene.ask(&payload, &["ada"]).await;
    }

    let again = || scene.site.post("/commands/approvals").json(scene.body(&payload, &["ada"]));
    again().expect_error(400, "quota_exceeded").await;
    scene.by(&scene.site.owner, "DELETE", path(&first)).expect(200).await;
    again().expect(201).await;
}

#[actix_web::test]
async fn what_is_complete_runs_after_a_restart_and_what_lost_its_servers_ends() {
    let mut scene = Scene::start().await;
    let payload = scene.payload();
    let waiting = scene.ask(&payload, &["ada"]).await;
    let (other, key) = scene.site.other_server().await;
    let _other = signing_agent(scene.site.service.address, &key, "web-2", 2).await;
    let for_other = scene.signers.payload("uptime", LONG, &json!({ "servers": ["web-2"] }));
    let mut body = scene.body(&for_other, &["ada"]);
    body["server_ids"] = json!([other]);
    let lost = scene.site.post("/commands/approvals").json(body).expect(201).await;

    scene.by(&scene.site.owner, "DELETE", format!("/servers/{other}")).expect(200).await;
    scene.until(&lost, "expired").await;
    // As if the service had ended right after it stored the signature.
    let stored = [format!(
        "UPDATE approvals SET needed = 1 WHERE command = 'uptime' AND status = 'awaiting_approval' AND needed = {}",
        waiting["needed"]
    )];
    scene.site = scene.site.restart_after(&[stored[0].as_str()]).await;
    scene.agent = signing_agent(scene.site.service.address, &scene.site.key, "web-1", 2).await;

    scene.agent.expect_execute().await;
    scene.until(&waiting, "approved").await;
    scene.agent.expect_silence(1).await;
}
