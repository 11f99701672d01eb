//! What is signed once for all runs of a schedule, with the real agent and a clock that a test sets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;

use super::alerts::{channel, until_got};
use super::{DAY, MINUTE, by, due_at, last_minute, path, scene_pause, until_outcome};
use crate::real_agent::{agent_program, unprivileged};
use crate::support::clock::TestClock;
use crate::support::command_line::Launched;
use crate::support::receiver::{Reaction, Receiver};
use crate::support::signers::{Signers, signing_agent};
use crate::support::site::Site;
use crate::support::text_of;

/// The real agent, which asks for a signature, with a clock of its own, which is a quarter of an hour ahead.
struct Real {
    site: Site,
    signers: Signers,
    clock: TestClock,
    files: TempDir,
    agent: Option<Launched>,
}

impl Real {
    async fn start() -> Self {
        Self::on(Site::start().await).await
    }

    async fn on(site: Site) -> Self {
        let (signers, files) = (Signers::new(), TempDir::new_in("/dev/shm").unwrap());
        signers.write_policy(files.path(), "");
        let state = files.path().join("state");
        fs::create_dir(&state).unwrap();
        fs::set_permissions(&state, Permissions::from_mode(0o777)).unwrap();
        let mut real = Self { site, signers, clock: TestClock::new(), files, agent: None };
        // Before what is due now: the agent's record begins with its start if something runs then, and what may have run before then
        // is refused.
        real.clock.set_ms(-10 * MINUTE);
        real.launch().await;
        let now = Timestamp::now();
        let fields = json!({ "not_before": now.plus_millis(-10 * MINUTE), "expires_at": now.plus_millis(MINUTE) });
        let first = real.signers.signed(&["ada"], &real.signers.payload("echo done", 0, &fields));
        real.expect(&first, "output", "done\n").await;
        real.restart_at(Timestamp::now()).await;
        real
    }

    /// Starts it again, with its clock at this time.
    async fn restart_at(&mut self, at: Timestamp) {
        drop(self.agent.take());
        self.site.until_status("offline").await;
        self.clock.set_ms(at.millis_since(Timestamp::now()));
        self.launch().await;
    }

    async fn launch(&mut self) {
        let mut command = unprivileged(&agent_program());
        let path = |name: &str| self.files.path().join(name);
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command.args(["--url", &format!("http://{}", self.site.service.address), "--key", &self.site.key]);
        command.arg("--state-dir").arg(path("state").join("agent")).args(["--interval", "0.5"]);
        command.arg("--policy").arg(path("policy.toml"));
        self.clock.rule(&mut command);
        self.agent = Some(Launched::start(command));
        self.site.until_status("online").await;
    }

    fn signed(&self, name: &str, repeat: &Value, ends_ms: i64) -> Value {
        self.signed_command(name, "echo done", repeat, ends_ms)
    }

    fn signed_command(&self, name: &str, command: &str, repeat: &Value, ends_ms: i64) -> Value {
        let now = Timestamp::now();
        let fields = json!({
            "repeat": repeat, "not_before": now.plus_millis(-DAY), "expires_at": now.plus_millis(ends_ms),
        });
        self.signers.signed(&[name], &self.signers.payload(command, 0, &fields))
    }

    fn body(&self, signed: &Value) -> Value {
        json!({
            "name": "Signed", "server_ids": [self.site.server_id], "command": "echo done", "cron": "* * * * *",
            "time_zone": "UTC", "signed": signed,
        })
    }

    #[track_caller]
    fn expect<'a>(&'a self, signed: &'a Value, field: &'a str, value: &'a str) -> impl Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let answer = self.run(signed).await;
            assert_eq!(answer[field], value, "{answer} (expected at {caller})");
        }
    }

    async fn run(&self, signed: &Value) -> Value {
        let path = format!("/commands/{}", self.site.server_id);
        let body = json!({ "command": "echo done", "signed": signed });
        self.site.post(&path).json(body).send().await.json()
    }
}

#[actix_web::test]
async fn a_signed_schedule_runs_once_each_time_and_at_no_other() {
    let mut real = Real::start().await;
    let minutely = json!({ "cron": "* * * * *", "time_zone": "UTC" });
    let signed = real.signed("ada", &minutely, 30 * DAY);
    let made = real.site.post("/schedules").json(real.body(&signed)).expect(201).await;
    assert_eq!(made["signed"], true);
    assert!(made["until"].is_string(), "{made}");

    due_at(&real.site, &made, last_minute()).await;
    let ended = until_outcome(&real.site, &made, "succeeded").await;
    let batch = real.site.read(&format!("/commands/batches/{}", text_of(&ended["batch_id"]))).await;
    assert_eq!(batch["results"][0]["preview"], "done\n", "{batch}");
    scene_pause(&real.site, &made).await;

    // What a stolen service tries: the same again, also after a restart of the agent and with its clock set back and forth.
    let hourly = json!({ "cron": "0 * * * *", "time_zone": "UTC" });
    let hour = Timestamp::from_millis(Timestamp::now().as_millis() / (60 * MINUTE) * 60 * MINUTE);
    let signed = real.signed("ada", &hourly, 30 * DAY);
    real.restart_at(hour.plus_millis(60 * MINUTE + 5_000)).await;
    real.expect(&signed, "output", "done\n").await;
    real.expect(&signed, "reason", "replayed").await;
    real.expect(&signed, "reason", "replayed").await;
    real.restart_at(hour.plus_millis(66 * MINUTE)).await;
    real.expect(&signed, "reason", "expired").await; // It is due at the hour only.
    real.restart_at(hour.plus_millis(60 * MINUTE + 10_000)).await;
    real.expect(&signed, "reason", "replayed").await;
    // The next time is another one, and the last before the end is the last.
    real.restart_at(hour.plus_millis(120 * MINUTE - 20_000)).await;
    real.expect(&signed, "output", "done\n").await; // A clock may be some seconds behind.
    real.expect(&signed, "reason", "replayed").await;
    real.restart_at(hour.plus_millis(120 * MINUTE + 5_000)).await;
    real.expect(&signed, "reason", "replayed").await;
    let short = real.signed("ada", &hourly, 90 * MINUTE);
    real.restart_at(hour.plus_millis(180 * MINUTE + 5_000)).await;
    real.expect(&short, "reason", "expired").await;
    // An edited payload is nobody's.
    let mut forged = signed.clone();
    let payload = real.signed("eve", &hourly, 30 * DAY)["payload"].clone();
    forged["payload"] = payload;
    real.expect(&forged, "reason", "unknown_signer").await;
}

/// A cron expression that was due at this full minute, and is due again in a day.
fn daily(at: Timestamp) -> String {
    // 2026-11-26T10:01:00.000Z
    let text = at.to_string();
    format!("{} {} * * *", &text[14..16], &text[11..13])
}

#[actix_web::test]
async fn a_signed_schedule_that_fails_or_is_refused_opens_its_alert_and_the_next_success_ends_it() {
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let site = Site::start_with(|config| config.notification_networks = vec!["127.0.0.0/8".parse().unwrap()]).await;
    channel(&site, &site.owner, &receiver, "owner").await;
    let real = Real::on(site).await;
    // The agent permits what was due in the last five minutes.
    let cron = daily(last_minute());
    let repeat = json!({ "cron": cron, "time_zone": "UTC" });
    let repaired = real.files.path().join("repaired");
    let command = format!("test -e {} || exit 3", repaired.display());
    let signed = |signer: &str| real.signed_command(signer, &command, &repeat, 30 * DAY);
    let schedule = async |name: &str, signer: &str| {
        let body = json!({
            "name": name, "server_ids": [real.site.server_id], "command": command, "cron": cron, "time_zone": "UTC",
            "severity": "critical", "signed": signed(signer),
        });
        real.site.post("/schedules").json(body).expect(201).await
    };
    let by_ada = schedule("Backup", "ada").await;

    due_at(&real.site, &by_ada, last_minute()).await;
    until_outcome(&real.site, &by_ada, "failed").await;
    let server = text_of(&real.site.server().await["name"]);
    let failed = format!("triggered schedule Backup on {server} failed with exit code 3");
    assert_eq!(until_got(&receiver, "owner", 1).await, [failed]);
    let alerts = real.site.read("/alerts?metric_type=schedule").await;
    assert_eq!(
        (alerts.as_array().unwrap().len(), &alerts[0]["threshold_id"], &alerts[0]["status"], &alerts[0]["severity"]),
        (1, &by_ada["id"], &json!("active"), &json!("critical")),
        "{alerts}"
    );
    let events = real.site.read(&format!("/servers/{}/events?kind=schedule_failed", real.site.server_id)).await;
    assert_eq!((events.as_array().unwrap().len(), &events[0]["detail"]["schedule_id"]), (1, &by_ada["id"]), "{events}");

    // A signature that does not count on the server is a failure, too.
    let by_eve = schedule("Of a stranger", "eve").await;
    due_at(&real.site, &by_eve, last_minute()).await;
    until_outcome(&real.site, &by_eve, "failed").await;
    let got = until_got(&receiver, "owner", 2).await;
    let refused = format!("triggered schedule Of a stranger on {server} did not run: the agent refused it");
    assert!(got.len() == 2 && got[1].starts_with(&refused), "{got:?}");

    // Signed again, because the agent has used the only time of the first signature.
    fs::write(&repaired, "").unwrap();
    let again = json!({ "signed": signed("ada") });
    by(&real.site, &real.site.owner, "PUT", path(&by_ada)).json(again).expect(200).await;
    let earlier = format!("UPDATE schedule_runs SET due_at = due_at - {}", 10 * MINUTE);
    real.site.service.storage().execute(&[&earlier]).await;
    due_at(&real.site, &by_ada, last_minute()).await;
    until_outcome(&real.site, &by_ada, "succeeded").await;
    let got = until_got(&receiver, "owner", 3).await;
    assert!(got.len() == 3 && got[2].starts_with(&format!("resolved schedule Backup on {server} ")), "{got:?}");
}

#[actix_web::test]
async fn what_is_signed_for_a_schedule_has_to_say_the_same() {
    let (site, signers) = (Site::start().await, Signers::new());
    let agent = signing_agent(site.service.address, &site.key, "web-1", 2).await;
    site.until_status("online").await;
    let now = Timestamp::now();
    let daily = json!({ "cron": "0 3 * * *", "time_zone": "UTC" });
    let post = |names: &[&str], fields: Value| {
        let mut all = json!({ "repeat": daily, "not_before": now, "expires_at": now.plus_millis(30 * DAY) });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let payload = signers.payload("backup", DAY, &all);
        let body = json!({
            "name": "Signed", "server_ids": [site.server_id], "command": "backup", "cron": "0 3 * * *",
            "time_zone": "UTC", "signed": signers.signed(names, &payload),
        });
        site.post("/schedules").json(body)
    };
    let cases = [
        (json!({ "repeat": null, "expires_at": now.plus_millis(DAY) }), "needs `repeat`"),
        (json!({ "repeat": { "cron": "0 4 * * *", "time_zone": "UTC" } }), "needs `repeat`"),
        (json!({ "repeat": { "cron": "0 3 * * *", "time_zone": "Europe/Berlin" } }), "recurs in UTC"),
        (json!({ "repeat": { "cron": "0 3 * *", "time_zone": "UTC" } }), "five fields"),
        (json!({ "expires_at": now.plus_millis(367 * DAY) }), "366 days"),
        (json!({ "servers": ["web-2"] }), "does not name `web-1`"),
        (json!({ "command": "reboot" }), "another command"),
    ];

    for (fields, words) in cases {
        let refused = post(&["ada", "ben"], fields).expect_error(400, "bad_request").await;
        assert!(text_of(&refused["detail"]).contains(words), "{words}: {refused}");
    }
    let refused = post(&["ada"], json!({})).expect_error(400, "bad_request").await;
    assert!(text_of(&refused["detail"]).contains("asks for 2 signatures"), "{refused}");
    let made = post(&["ada", "ben"], json!({})).expect(201).await;
    let change = json!({ "command": "reboot" });
    by(&site, &site.owner, "PUT", path(&made)).json(change).expect_error(400, "bad_request").await;
    // Its server asks for more signatures now, which keeps nobody from pausing it.
    drop(agent);
    site.until_status("offline").await;
    let _agent = signing_agent(site.service.address, &site.key, "web-1", 3).await;
    site.until_status("online").await;
    let paused = by(&site, &site.owner, "PUT", path(&made)).json(json!({ "enabled": false })).expect(200).await;
    assert_eq!((&paused["signed"], &paused["next_at"]), (&json!(true), &Value::Null));
}
