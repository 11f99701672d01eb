//! The lines that sign a command without signalboxctl, as they stand in the guide: with ssh-keygen, jq and curl, the real service and
//! the real agent.

use std::fs;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;

use super::blocks::{blocks_of, read};
use super::running::shell;
use crate::support::command_line::{Launched, run};
use crate::support::machine::Machine;
use crate::support::signers::Signers;
use crate::support::site::Site;
use crate::support::text_of;

const GUIDE: &str = "docs/guides/signed-commands.md";

/// The only block of the guide with this text.
fn block(text: &str) -> String {
    let mut found: Vec<String> =
        blocks_of(GUIDE, &read(GUIDE)).into_iter().map(|block| block.text).filter(|it| it.contains(text)).collect();
    assert_eq!(found.len(), 1, "{GUIDE}: blocks with `{text}`");
    found.remove(0)
}

/// A server that asks for signatures of what the guide restarts, and the person who follows it.
struct Reader {
    site: Site,
    signers: Signers,
    machine: Machine,
    home: TempDir,
    _agent: (Launched, TempDir),
}

impl Reader {
    async fn start(policy: &str) -> Self {
        let (site, signers, machine) = (Site::start().await, Signers::new(), Machine::new());
        let (home, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::create_dir(home.path().join(".ssh")).unwrap();
        fs::copy(signers.key_file("ada"), home.path().join(".ssh/id_ed25519")).unwrap();
        // In place of the machine's own, which restarts what runs there.
        let script = format!("#!/bin/sh\necho \"$@\" >> {}\necho done\n", machine.path("restarted").display());
        machine.program("systemctl", &script);
        let policy = signers.write_policy(files.path(), policy).display().to_string();
        let agent = machine.agent(site.service.address, &site.key, &["--policy", &policy]);
        site.until_status("online").await;
        let reader = Self { site, signers, machine, home, _agent: (agent, files) };
        fs::write(reader.home.path().join("payload.json"), reader.payload()).unwrap();
        reader
    }

    /// The payload of the guide, for now: the agent has just begun its record, so what held a minute ago may have run already.
    fn payload(&self) -> String {
        let mut payload = block("\"nonce\": ");
        for (time, minutes) in [("2026-11-26T10:00:00Z", 0), ("2026-11-26T10:10:00Z", 10)] {
            assert!(payload.contains(time), "{GUIDE}: the payload has another time than {time}");
            payload = payload.replace(time, &Timestamp::now().plus_millis(minutes * 60_000).to_string());
        }
        payload
    }

    /// Runs lines of the guide, and returns what the service answers.
    async fn follow(&self, lines: &str) -> Value {
        let mut command = shell(&format!("set -euo pipefail\ncd\n{lines}"), "");
        command.env("HOME", self.home.path()).env("BASE", format!("http://{}/api/v1", self.site.service.address));
        command.env("TOKEN", &self.site.owner.token).env("SERVER", self.site.server_id.to_string());
        let outcome = run(command).await;
        serde_json::from_str(outcome.printed()).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
    }

    fn restarts(&self) -> Option<String> {
        fs::read_to_string(self.machine.path("restarted")).ok()
    }
}

#[actix_web::test]
async fn a_command_that_ssh_keygen_has_signed_runs_as_the_guide_says() {
    let reader = Reader::start("").await;

    let answer = reader.follow(&block("ssh-keygen -Y sign")).await;

    assert_eq!((&answer["status"], &answer["output"]), (&json!("succeeded"), &json!("done\n")), "{answer}");
    assert_eq!(reader.restarts().as_deref(), Some("restart nginx\n"));
}

#[actix_web::test]
async fn a_command_waits_for_its_second_signature_as_the_guide_says() {
    let reader = Reader::start("approvals = 2\n").await;

    let alone = reader.follow(&block("ssh-keygen -Y sign")).await;
    let waiting = reader.follow(&block("$BASE/commands/approvals")).await;

    assert_eq!(
        (&alone["code"], &alone["reason"]),
        (&json!("agent_refused"), &json!("not_enough_approvals")),
        "{alone}"
    );
    assert_eq!((&waiting["status"], &waiting["missing"]), (&json!("awaiting_approval"), &json!(1)), "{waiting}");
    assert_eq!(reader.restarts(), None);
    // Exactly the bytes of the file, which another person signs.
    let bytes = BASE64_STANDARD.decode(text_of(&waiting["payload"])).unwrap();
    assert_eq!(bytes, fs::read(reader.home.path().join("payload.json")).unwrap());
    let path = format!("/commands/approvals/{}/signatures", text_of(&waiting["id"]));
    let signed = reader.site.post(path).json(reader.signers.signature("ben", &bytes)).expect(200).await;
    assert_eq!(signed["status"], "approved", "{signed}");
    assert_eq!(reader.machine.until_written("restarted").await, "restart nginx\n");
}
