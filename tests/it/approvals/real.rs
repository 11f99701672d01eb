//! Approvals with the real agent, and with the real service at a false time.

use entity::approval;
use sea_orm::{ColumnTrait, Database, EntityTrait, PaginatorTrait, QueryFilter};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LONG, path};
use crate::support::clock::TestClock;
use crate::support::command_line::signalbox;
use crate::support::machine::Machine;
use crate::support::process::ServiceProcess;
use crate::support::signers::{Signers, signing_agent};
use crate::support::site::Site;
use crate::support::storage::direct;
use crate::support::{PASSWORD, eventually, text_of};

/// A service, and the real agent on its server, which asks for two signatures.
struct Real {
    site: Site,
    signers: Signers,
    _machine: (Machine, TempDir, crate::support::command_line::Launched),
}

impl Real {
    async fn start() -> Self {
        let (site, signers, machine, files) =
            (Site::start().await, Signers::new(), Machine::new(), TempDir::new().unwrap());
        let policy = signers.write_policy(files.path(), "approvals = 2\n").display().to_string();
        let agent = machine.agent(site.service.address, &site.key, &["--policy", &policy]);
        site.until_status("online").await;
        Self { site, signers, _machine: (machine, files, agent) }
    }

    async fn ask(&self, payload: &[u8], name: &str) -> Value {
        let body = json!({
            "server_ids": [self.site.server_id], "command": "echo done", "signed": self.signers.signed(&[name], payload),
        });
        self.site.post("/commands/approvals").json(body).expect(201).await
    }

    async fn sign(&self, approval: &Value, name: &str, payload: &[u8]) {
        let signature = self.signers.signature(name, payload);
        self.site.post(format!("{}/signatures", path(approval))).json(signature).expect(200).await;
    }

    /// Waits until it has become a batch. Returns which.
    async fn batch(&self, approval: &Value) -> Value {
        eventually("it is a batch", async || {
            Some(self.site.read(&path(approval)).await["batch_id"].take()).filter(Value::is_string)
        })
        .await
    }

    /// Waits until the agent has refused its signatures, and it waits again.
    async fn until_refused(&self, approval: &Value) -> Value {
        eventually("it waits again", async || {
            let now = self.site.read(&path(approval)).await;
            (now["status"] == "awaiting_approval" && now["refused_reason"].is_string()).then_some(now)
        })
        .await
    }

    /// How many approvals in the database have standard input.
    async fn stored_inputs(&self) -> u64 {
        let url = direct(&self.site.service.state.config.database_url());
        let database = Database::connect(url).await.unwrap();
        let have_input = approval::Entity::find().filter(approval::Column::Stdin.is_not_null());
        have_input.count(&database).await.unwrap()
    }

    async fn result(&self, batch_id: &Value) -> Value {
        let path = format!("/commands/batches/{}", text_of(batch_id));
        let ended = eventually("the batch ends", async || {
            Some(self.site.read(&path).await).filter(|batch| batch["finished_at"].is_string())
        });
        ended.await["results"][0].clone()
    }
}

#[actix_web::test]
async fn the_real_agent_says_what_it_asks_for_and_decides_itself() {
    let real = Real::start().await;
    let server = real.site.server().await;
    let signing = &server["agent"]["signing"];
    assert_eq!((&signing["name"], &signing["approvals"]), (&json!("web-1"), &json!(2)), "{signing}");
    let names: Vec<&Value> = signing["signers"].as_array().unwrap().iter().map(|signer| &signer["name"]).collect();
    assert_eq!(names, ["ada@example.org", "ben@example.org", "cleo@example.org"]);
    for signer in signing["signers"].as_array().unwrap() {
        assert_eq!(signer["kind"], "ssh-ed25519");
        assert!(text_of(&signer["fingerprint"]).starts_with("SHA256:"), "{signer}");
    }
    let payload = real.signers.payload("echo done", LONG, &json!({}));
    let unsigned = json!({ "command": "echo done", "signed": real.signers.signed(&["ada"], &payload) });
    let refused = real.site.post(format!("/commands/{}", real.site.server_id)).json(unsigned);
    let refused = refused.expect_error(400, "agent_refused").await;
    assert_eq!(refused["reason"], "not_enough_approvals");

    let waiting = real.ask(&payload, "ada").await;
    real.sign(&waiting, "ben", &payload).await;
    let done = real.result(&waiting["id"]).await;
    assert_eq!((&done["status"], &done["preview"]), (&json!("succeeded"), &json!("done\n")), "{done}");
    // What has run does not run again, however many sign it, and waits for nobody.
    let replayed = real.ask(&payload, "ada").await;
    real.sign(&replayed, "cleo", &payload).await;
    let refused = real.result(&replayed["id"]).await;
    assert_eq!((&refused["status"], &refused["preview"]), (&json!("failed"), &json!("")), "{refused}");
    assert_eq!(refused["error"]["reason"], "replayed");
    let replayed = real.site.read(&path(&replayed)).await;
    assert_eq!((&replayed["status"], &replayed["refused_reason"]), (&json!("approved"), &Value::Null), "{replayed}");
}

#[actix_web::test]
async fn signatures_that_the_agent_does_not_count_let_a_command_wait_for_the_right_one() {
    let real = Real::start().await;
    let payload = real.signers.payload("echo done", LONG, &json!({}));

    // Nobody whom the agent knows: a stranger, and her other key.
    let waiting = real.ask(&payload, "eve").await;
    real.sign(&waiting, "eve-again", &payload).await;
    let refused = real.until_refused(&waiting).await;
    let first = &waiting["id"];
    assert_eq!(
        (&refused["refused_reason"], &refused["needed"], &refused["missing"], &refused["batch_id"]),
        (&json!("unknown_signer"), &json!(3), &json!(1), &Value::Null)
    );
    assert_eq!(refused["ended_at"], Value::Null, "{refused}");
    assert_eq!(refused["signatures"].as_array().unwrap().len(), 2, "{refused}");
    assert_eq!(real.result(first).await["error"]["reason"], "unknown_signer");

    // One of two.
    real.sign(&waiting, "ada", &payload).await;
    let second = eventually("the agent has refused again", async || {
        let now = real.site.read(&path(&waiting)).await;
        (now["refused_reason"] == "not_enough_approvals").then_some(now)
    });
    let second = second.await;
    assert_eq!((&second["status"], &second["needed"]), (&json!("awaiting_approval"), &json!(4)), "{second}");

    // And two of two: the agent leaves the others out.
    real.sign(&waiting, "ben", &payload).await;
    let third = real.batch(&waiting).await;
    let done = real.result(&third).await;
    assert_eq!((&done["status"], &done["preview"]), (&json!("succeeded"), &json!("done\n")), "{done}");
    let approved = real.site.read(&path(&waiting)).await;
    assert_eq!((&approved["status"], &approved["refused_reason"]), (&json!("approved"), &Value::Null), "{approved}");
    assert!(third != *first, "each batch stays as it is");
    let log = real.site.read("/audit?limit=500&action=approval.").await;
    let told: Vec<String> = log.as_array().unwrap().iter().rev().map(|entry| text_of(&entry["action"])).collect();
    let verbs: Vec<&str> = told.iter().map(|action| action.trim_start_matches("approval.")).collect();
    assert_eq!(verbs, ["create", "sign", "run", "reopen", "sign", "run", "reopen", "sign", "run"]);
}

#[actix_web::test]
async fn a_command_that_waits_again_has_its_input_and_can_be_withdrawn() {
    let real = Real::start().await;
    let hash = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    let payload = real.signers.payload("tr a b", LONG, &json!({ "stdin_sha256": hash }));
    let ask = async || {
        let body = json!({
            "server_ids": [real.site.server_id], "command": "tr a b", "stdin": "a",
            "signed": real.signers.signed(&["ada"], &payload),
        });
        real.site.post("/commands/approvals").json(body).expect(201).await
    };

    let waiting = ask().await;
    real.sign(&waiting, "eve", &payload).await;
    let refused = real.until_refused(&waiting).await;
    assert_eq!(refused["stdin"], "a", "{refused}");
    real.site.service.client.delete(path(&waiting)).bearer(&real.site.owner.token).expect(200).await;
    assert_eq!(real.site.read(&path(&waiting)).await["stdin"], Value::Null);
    assert_eq!(real.stored_inputs().await, 0, "it may be a secret");

    let waiting = ask().await;
    real.sign(&waiting, "eve", &payload).await;
    real.until_refused(&waiting).await;
    real.sign(&waiting, "ben", &payload).await;
    let done = real.result(&real.batch(&waiting).await).await;
    assert_eq!((&done["status"], &done["preview"]), (&json!("succeeded"), &json!("b")), "{done}");
    assert_eq!(real.site.read(&path(&waiting)).await["stdin"], Value::Null);
    assert_eq!(real.stored_inputs().await, 0, "it may be a secret");
}

#[actix_web::test]
async fn a_false_time_at_a_start_ends_nothing_that_waits() {
    let (site, signers) = (Site::start().await, Signers::new());
    let agent = signing_agent(site.service.address, &site.key, "web-1", 2).await;
    site.until_status("online").await;
    let ask = async |command: &str, holds_ms: i64| {
        let payload = signers.payload(command, holds_ms, &json!({}));
        let signed = signers.signed(&["ada"], &payload);
        let body = json!({ "server_ids": [site.server_id], "command": command, "signed": signed });
        site.post("/commands/approvals").json(body).expect(201).await
    };
    let (waiting, lost) = (ask("uptime", LONG).await, ask("lost", 2 * LONG).await);
    drop(agent);
    let storage = site.stop().await;
    let of_lost = "approval_id IN (SELECT id FROM approvals WHERE command = 'lost')";
    storage.execute(&[&format!("DELETE FROM approval_servers WHERE {of_lost}")]).await;

    let clock = TestClock::new();
    clock.set_ms(48 * LONG);
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(storage.path());
    storage.named_to(&mut command);
    clock.rule(&mut command);
    let service = ServiceProcess::launched(command).await;
    let form = [("username", "owner"), ("password", PASSWORD)];
    let tokens = service.client.post("/auth/login").form(&form).expect(200).await;
    let token = text_of(&tokens["access_token"]);
    let status = async |approval: &Value| {
        let told = service.client.get(path(approval)).bearer(&token).expect(200).await;
        text_of(&told["status"])
    };

    // What lost its servers ends whatever the time is, and shows that the service has looked: at what ends sooner before.
    eventually("it has looked", async || (status(&lost).await == "expired").then_some(())).await;
    assert_eq!(status(&waiting).await, "awaiting_approval");
}
