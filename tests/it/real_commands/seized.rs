//! A real service whose whole database was in an attacker's hands, and an agent whose owner has switched on nothing, or only what
//! is signed.

use std::fs;

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;

use crate::schedules::until_outcome;
use crate::support::command_line::Launched;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::machine::{Machine, has_had_child};
use crate::support::signers::Signers;
use crate::support::site::Site;
use crate::support::tokens::{claims_of, signed_by};
use crate::support::{eventually, text_of};

/// Makes the service believe that the agent may do everything, and that each command still waits or runs.
const EDITS: [&str; 4] = [
    r#"UPDATE servers SET agent = REPLACE(agent, '"metrics"', '"metrics","commands","terminal","docker_control"')"#,
    "UPDATE commands SET status = 'running', finished_at = NULL, error_code = NULL WHERE batch_id IS NULL",
    "UPDATE commands SET status = 'queued', started_at = NULL, finished_at = NULL, error_code = NULL
        WHERE batch_id IS NOT NULL",
    "UPDATE command_batches SET finished_at = NULL, is_cancelled = FALSE",
];

#[actix_web::test]
async fn a_database_that_says_so_runs_nothing() {
    let (site, machine) = (Site::start().await, Machine::new());
    let agent = machine.agent(site.service.address, &site.key, &[]);
    site.until_status("online").await;
    let touch = json!({"command": format!("touch {}", machine.path("ran").display())});
    site.post(site.commands_path()).json(touch.clone()).expect_error(400, "agent_refused").await;
    let mut batch = touch.clone();
    batch["server_ids"] = json!([site.server_id]);
    site.post("/commands").json(batch).expect(201).await;
    until_ended(&site, 2).await;
    assert!(!has_had_child(agent.id()), "it started a program");
    agent.signal("TERM");
    agent.outcome().await;

    let site = site.restart_after(&EDITS).await;
    let agent = machine.agent(site.service.address, &site.key, &[]);
    let commands = until_ended(&site, 2).await;

    // The agent does not hold the one that is said to run, and refuses the one that is said to wait.
    let mut ends: Vec<&str> = commands.iter().map(|command| command["status"].as_str().unwrap()).collect();
    ends.sort_unstable();
    assert_eq!(ends, ["failed", "lost"]);
    site.post(site.commands_path()).json(touch).expect_error(400, "agent_refused").await;
    let stop = format!("/docker/{}/containers/web/stop", site.server_id);
    site.post(stop).expect_error(400, "agent_refused").await;
    let path = format!("/api/v1/ws/terminal/{}", site.server_id);
    let pass = Pass::Header(&site.owner.token);
    let mut terminal = Dashboard::open(site.service.address, &path, pass, &[]).await.unwrap();
    assert_eq!(terminal.expect("error").await["code"], "agent_refused");
    assert!(!has_had_child(agent.id()), "it started a program");
    assert!(!machine.path("ran").exists(), "it ran");
}

/// Anyone who has the secret can sign tokens of all accounts. Here it is used as the service itself uses it, and changed at will.
#[actix_web::test]
async fn the_secret_of_tokens_runs_nothing_that_is_not_signed() {
    let (site, machine, signers) = (Site::start().await, Machine::new(), Signers::new());
    let files = TempDir::new().unwrap();
    let policy = signers.write_policy(files.path(), "terminal = \"signed\"\n").display().to_string();
    let agent = machine.agent(site.service.address, &site.key, &["--policy", &policy]);
    site.until_status("online").await;
    let secret = fs::read(site.service.state.config.data_dir.join("jwt-secret")).unwrap();
    let mut claims = claims_of(&site.owner.token);
    claims["exp"] = json!(claims["exp"].as_i64().unwrap() + 60);
    let forged = signed_by(&secret, Algorithm::HS256, &claims);
    assert_ne!(forged, site.owner.token);
    let as_owner = async |body: Value| {
        site.service
            .client
            .post(site.commands_path())
            .bearer(&forged)
            .json(body)
            .expect_error(400, "agent_refused")
            .await
    };
    let touch = format!("touch {}", machine.path("ran").display());

    let unsigned = as_owner(json!({ "command": touch })).await;
    let payload = signers.payload(&touch, 300_000, &json!({}));
    let of_a_stranger = as_owner(json!({ "command": touch, "signed": signers.signed(&["eve"], &payload) })).await;
    let path = format!("/api/v1/ws/terminal/{}", site.server_id);
    let mut terminal = Dashboard::open(site.service.address, &path, Pass::Header(&forged), &[]).await.unwrap();

    assert_eq!((&unsigned["reason"], &of_a_stranger["reason"]), (&json!("not_signed"), &json!("unknown_signer")));
    assert_eq!(terminal.expect("error").await["code"], "agent_refused");
    assert!(!has_had_child(agent.id()), "it started a program");
    assert!(!machine.path("ran").exists(), "it ran");
}

/// The commands, as soon as there are so many and none of them waits or runs.
async fn until_ended(site: &Site, count: usize) -> Vec<Value> {
    eventually("all commands have ended", async || {
        let commands = site.commands().await;
        let have_ended = commands.iter().all(|command| command["finished_at"].is_string());
        (have_ended && commands.len() == count).then_some(commands)
    })
    .await
}

/// Once a year, so that nothing is due while the test runs.
const YEARLY: &str = "0 3 1 1 *";

/// A server where two people have to sign each command, with a real service and the real agent.
struct Signing {
    site: Site,
    machine: Machine,
    signers: Signers,
    files: TempDir,
}

impl Signing {
    async fn start() -> Self {
        let (site, machine, signers, files) =
            (Site::start().await, Machine::new(), Signers::new(), TempDir::new().unwrap());
        signers.write_policy(files.path(), "approvals = 2\n");
        Self { site, machine, signers, files }
    }

    async fn agent(&self) -> Launched {
        let policy = self.files.path().join("policy.toml").display().to_string();
        let agent = self.machine.agent(self.site.service.address, &self.site.key, &["--policy", &policy]);
        self.site.until_status("online").await;
        agent
    }

    /// A command that leaves a line.
    fn trace(&self, name: &str) -> String {
        format!("echo {name} >> {}", self.machine.path("ran").display())
    }

    /// `signed` of a request for [`Self::trace`], for an hour.
    fn signed(&self, name: &str, by: &[&str]) -> Value {
        self.signers.signed(by, &self.signers.payload(&self.trace(name), 3_600_000, &json!({})))
    }

    async fn edit(&self, statements: &[&str]) {
        self.site.service.storage().execute(statements).await;
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.machine.path("ran")).unwrap_or_default().lines().count()
    }

    /// What another person still has to sign.
    async fn ask(&self, name: &str, by: &str) -> Value {
        let body = json!({
            "server_ids": [self.site.server_id], "command": self.trace(name), "signed": self.signed(name, &[by]),
        });
        let asked = self.site.post("/commands/approvals").json(body).expect(201).await;
        assert_eq!(asked["status"], "awaiting_approval", "{asked}");
        asked
    }

    /// What two people have signed, for once a year.
    async fn schedule(&self, name: &str) -> Value {
        let (command, now) = (self.trace(name), Timestamp::now());
        let repeat = json!({ "cron": YEARLY, "time_zone": "UTC" });
        let fields = json!({ "repeat": repeat, "not_before": now, "expires_at": now.plus_millis(366 * 86_400_000) });
        let signed = self.signers.signed(&["ada", "ben"], &self.signers.payload(&command, 0, &fields));
        let body = json!({
            "name": name, "server_ids": [self.site.server_id], "command": command, "cron": YEARLY, "time_zone": "UTC",
            "signed": signed,
        });
        self.site.post("/schedules").json(body).expect(201).await
    }

    /// Why the agent refused the only command of a batch.
    async fn reason_in(&self, batch_id: &Value) -> String {
        let path = format!("/commands/batches/{}", text_of(batch_id));
        let ended = eventually("the batch ends", async || {
            Some(self.site.read(&path).await).filter(|batch| batch["finished_at"].is_string())
        });
        let result = ended.await["results"][0].clone();
        assert_eq!(result["error"]["code"], "agent_refused", "{result}");
        text_of(&result["error"]["reason"])
    }
}

#[actix_web::test]
async fn a_database_that_says_so_runs_nothing_that_was_not_signed_for_now() {
    let mut host = Signing::start().await;
    let evil = host.machine.path("evil").display().to_string();
    let agent = host.agent().await;
    let once = json!({ "command": host.trace("alone"), "signed": host.signed("alone", &["ada", "ben"]) });
    host.site.post(host.site.commands_path()).json(once.clone()).expect(200).await;
    let batches = ["again", "edited", "bare", "swapped"].map(|name| (name, host.signed(name, &["ada", "ben"])));
    for (name, signed) in &batches {
        let body = json!({ "command": host.trace(name), "server_ids": [host.site.server_id], "signed": signed });
        host.site.post("/commands").json(body).expect(201).await;
    }
    until_ended(&host.site, 5).await;
    assert_eq!(host.runs(), 5);
    // What it holds it would report again, and not take an order for it.
    let held = host.machine.path("state/commands");
    let has_forgotten = async || fs::read_dir(&held).unwrap().next().is_none().then_some(());
    eventually("the agent has forgotten them", has_forgotten).await;
    agent.signal("TERM");
    agent.outcome().await;

    // Commands: said to run or to wait still, with other words, no signatures, or those of another command.
    let mut edits = EDITS[1..].iter().map(|edit| (*edit).to_owned()).collect::<Vec<_>>();
    let set = |name: &str, what: &str| format!("UPDATE commands SET {what} WHERE command LIKE 'echo {name} %'");
    edits.extend(batches.iter().map(|(name, signed)| set(name, &format!("signed = '{signed}'"))));
    edits.push(set("edited", &format!("command = 'touch {evil}'")));
    edits.push(set("bare", "signed = NULL"));
    edits.push(set("swapped", &format!("signed = '{}'", once["signed"])));
    let edits: Vec<&str> = edits.iter().map(String::as_str).collect();
    host.site = host.site.restart_after(&edits).await;
    let _agent = host.agent().await;
    let mut ends: Vec<(String, String)> = until_ended(&host.site, 5).await.iter().map(end_of).collect();
    ends.sort_unstable();
    let expected = [
        ("again", "replayed"),
        ("alone", "lost"),
        ("bare", "not_signed"),
        (evil.as_str(), "not_signed"),
        ("swapped", "not_signed"),
    ];
    let mut expected = expected.map(|(name, end)| (name.to_owned(), end.to_owned()));
    expected.sort_unstable();
    assert_eq!(ends, expected);

    // Approvals: said to need fewer signatures, with those of another payload, for another command, with none.
    let asked = [("fewer", "ada"), ("mixed", "ada"), ("other", "ada"), ("donor", "ben")];
    let mut waiting = Vec::new();
    for (name, by) in asked {
        waiting.push(host.ask(name, by).await);
    }
    let of = |name: &str| format!("(SELECT id FROM approvals WHERE command LIKE 'echo {name} %')");
    let set = |name: &str, what: &str| format!("UPDATE approvals SET {what} WHERE command LIKE 'echo {name} %'");
    let moved =
        format!("UPDATE approval_signatures SET approval_id = {} WHERE approval_id = {}", of("mixed"), of("donor"));
    let other = set("other", &format!("needed = 1, command = 'touch {evil}'"));
    host.edit(&[&moved, &set("donor", "needed = 0"), &set("fewer", "needed = 1"), &other]).await;
    for (approval, expected) in
        waiting.iter().zip(["not_enough_approvals", "not_enough_approvals", "not_signed", "not_signed"])
    {
        let path = format!("/commands/approvals/{}", text_of(&approval["id"]));
        let sent = eventually("it was sent", async || {
            Some(host.site.read(&path).await)
                .filter(|approval| approval["batch_id"].is_string() || approval["refused_reason"].is_string())
        });
        let sent = sent.await;
        // One with too few signatures waits again afterwards.
        let reason = match sent["refused_reason"].as_str() {
            Some(reason) => reason.to_owned(),
            None => host.reason_in(&sent["batch_id"]).await,
        };
        assert_eq!(reason, expected, "{approval}");
    }

    // Schedules: due at another time, and with another command.
    let (early, replaced) = (host.schedule("early").await, host.schedule("replaced").await);
    let due = format!("next_at = {}, cron = '* * * * *'", Timestamp::now().as_millis() / 60_000 * 60_000);
    let set = |name: &str, what: &str| format!("UPDATE schedules SET {what} WHERE name = '{name}'");
    host.edit(&[&set("early", &due), &set("replaced", &format!("{due}, command = 'touch {evil}'"))]).await;
    for (schedule, expected) in [(&early, "expired"), (&replaced, "not_signed")] {
        let run = until_outcome(&host.site, schedule, "failed").await;
        assert_eq!(host.reason_in(&run["batch_id"]).await, expected, "{run}");
    }

    assert_eq!(host.runs(), 5, "what was signed has run once");
    assert!(!fs::exists(evil).unwrap());
    println!("{} tries", expected.len() + waiting.len() + 2);
}

/// The word of a command that names it here, and how it ended.
fn end_of(command: &Value) -> (String, String) {
    let text = text_of(&command["command"]);
    let end = command["error"]["reason"].as_str().or(command["status"].as_str()).unwrap();
    (text.split(' ').nth(1).unwrap().to_owned(), end.to_owned())
}
