//! Approvals with the real agent.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LONG, path};
use crate::support::machine::Machine;
use crate::support::signers::Signers;
use crate::support::site::Site;
use crate::support::{eventually, text_of};

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
        // The agent is another user, who may read the owner's files.
        fs::set_permissions(&files, Permissions::from_mode(0o755)).unwrap();
        let path = |name: &str| files.path().join(name);
        fs::write(path("allowed_signers"), &signers.lines).unwrap();
        let policy = format!(
            "commands = \"signed\"\nname = \"web-1\"\napprovals = 2\nsigners = \"{}\"\n",
            path("allowed_signers").display()
        );
        fs::write(path("policy.toml"), policy).unwrap();
        let flags = ["--policy", &path("policy.toml").display().to_string()].map(str::to_owned);
        let agent = machine.agent(site.service.address, &site.key, &flags.each_ref().map(String::as_str));
        site.until_status("online").await;
        Self { site, signers, _machine: (machine, files, agent) }
    }

    async fn ask(&self, payload: &[u8], name: &str) -> Value {
        let body = json!({
            "server_ids": [self.site.server_id], "command": "echo done", "signed": self.signers.signed(&[name], payload),
        });
        self.site.post("/commands/approvals").json(body).expect(201).await
    }

    async fn result(&self, approval: &Value) -> Value {
        let path = format!("/commands/batches/{}", text_of(&approval["id"]));
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
    let sign = async |approval: &Value, name: &str, payload: &[u8]| {
        let signature = real.signers.signature(name, payload);
        real.site.post(format!("{}/signatures", path(approval))).json(signature).expect(200).await
    };
    assert_eq!(sign(&waiting, "ben", &payload).await["status"], "approved");
    let done = real.result(&waiting).await;
    assert_eq!((&done["status"], &done["preview"]), (&json!("succeeded"), &json!("done\n")), "{done}");

    // The service counts a stranger's signature; the agent does not.
    let payload = real.signers.payload("echo done", LONG, &json!({}));
    let waiting = real.ask(&payload, "ada").await;
    assert_eq!(sign(&waiting, "eve", &payload).await["status"], "approved");
    let refused = real.result(&waiting).await;
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!("failed"), &json!("agent_refused")),
        "{refused}"
    );
    // The refusal used nothing up: the same payload can be asked for again.
    let again = real.ask(&payload, "ada").await;
    assert_eq!(sign(&again, "cleo", &payload).await["status"], "approved");
    assert_eq!(real.result(&again).await["status"], "succeeded");
    // What has run does not run again, however many sign it.
    let replayed = real.ask(&payload, "ada").await;
    sign(&replayed, "ben", &payload).await;
    let refused = real.result(&replayed).await;
    assert_eq!((&refused["status"], &refused["preview"]), (&json!("failed"), &json!("")), "{refused}");
}
