//! A service with some of everything, before and after.

use std::sync::Arc;

use serde_json::{Value, json};
use signalbox::config::Config;
use signalbox::store::Store;
use signalbox::store::history::{Block, BlockInfo, BlockKey, Outcome, Sealing, Span, Tier};
use signalbox_history::block;
use signalbox_history::frame::{Frame, Granularity, Row};
use signalbox_history::shape::Shape;
use signalbox_protocol::agent::Stream;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use super::{import, number};
use crate::support::agent::{FakeAgent, sample_aged, sample_at};
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::command_line::{run, signalbox};
use crate::support::receiver::{Reaction, Receiver};
use crate::support::site::Site;
use crate::support::storage::direct;
use crate::support::{Account, Storage, TestService, eventually, in_time, text_of};

const DAY_MS: i64 = 24 * 3_600_000;
const SECONDS_OF_A_DAY: i64 = 24 * 3_600;

/// Each with a sample a second of one day: a million samples together.
const SERVERS_WITH_A_DAY: usize = 12;

/// Notifications may go to this machine, and the history stays as it is.
fn adjusted(config: &mut Config) {
    config.notification_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.timing.archive.every = std::time::Duration::from_secs(24 * 3_600);
}

fn sample(at: i64) -> Sample {
    let second = at / 1_000;
    Sample {
        cpu_percent: (second % 10_000) as f64 / 100.0,
        process_count: 90 + second.unsigned_abs() % 37,
        ..sample_at(Timestamp::from_millis(at))
    }
}

/// A sample a second of the day that begins then.
fn day(start: i64) -> Block {
    let shape = Arc::new(Shape::of(&sample(start)));
    let times = (0..SECONDS_OF_A_DAY).map(|second| start + 1_000 * second);
    let rows: Vec<Row> = times.map(|at| Row::of(&sample(at), shape.clone())).collect();
    let parts = block::write(Frame::from_rows(Granularity::Raw, &rows)).unwrap();
    let key = BlockKey { tier: Tier::Raw, span: Span::Day, start: start / 3_600_000 };
    let info = BlockInfo { key, rows: SECONDS_OF_A_DAY, first_at: start, last_at: start + DAY_MS - 1_000 };
    Block { info, parts: parts.into_iter().enumerate().collect() }
}

/// Writes the history of a day for some servers.
async fn plant(store: &Store, servers: &[Uuid], start: i64) {
    let block = day(start);
    for server_id in servers {
        let sealing = Sealing { blocks: vec![block.clone()], ..Sealing::of(*server_id) };
        assert_eq!(store.seal(&[sealing]).await.unwrap(), Outcome::Written);
    }
}

/// Makes alerts, one of them acknowledged, silences, and a channel that has sent something.
async fn alarm(site: &Site, probe: &mut Probe, receiver: &Receiver) {
    let alarms = Alarms::at(site);
    let warning = alarms.add(Threshold::cpu(90.0)).await;
    let tagged = alarms.add(Threshold::cpu(95.0).tagged("eu").severity("critical")).await;
    let over = alarms.add(Threshold::on("memory", "gt", 80.0)).await;
    probe.now(|sample| (sample.cpu_percent, sample.memory_percent) = (97.0, 85.0)).await;
    alarms.acknowledge(&alarms.until(warning, "active").await).await;
    probe.now(|sample| (sample.cpu_percent, sample.memory_percent) = (96.0, 20.0)).await;
    alarms.until(over, "resolved").await;
    alarms.expect_none(tagged).await;
    let ends_at = Timestamp::now().plus_millis(DAY_MS).to_string();
    alarms.post("/alerts/silences", json!({"tag": "eu", "reason": "New disks: ß, 日本", "ends_at": ends_at})).await;
    let weekly = json!({"weekdays": [1, 7], "start": "22:30", "duration_minutes": 90, "time_zone": "Europe/Berlin"});
    alarms.post("/alerts/silences", json!({"all": true, "reason": "Backups", "schedule": weekly})).await;
    let definition = json!({"version": 1, "series": ["cpu_percent", "disk_percent:*"], "by": "tag"});
    let view = alarms.post("/views", json!({"name": "CPU: ß, 日本", "definition": definition})).await;
    let layout = json!({"version": 1, "panels": [{"view_id": view["id"]}]});
    alarms.post("/dashboards", json!({"name": "Morning", "layout": layout})).await;
    let url = format!("http://{}/hook", receiver.address);
    let body = json!({"name": "ops", "type": "webhook", "severities": ["info"], "settings": {"url": url}});
    let channel = text_of(&alarms.post("/notifications/channels", body).await["id"]);
    test_channel(site, &channel).await;
}

/// Sends a test message, which needs the key that the settings are encrypted with.
async fn test_channel(site: &Site, channel: &str) {
    let path = format!("/notifications/deliveries?channel_id={channel}&status=sent");
    let before = site.read(&path).await.as_array().unwrap().len();
    site.post(format!("/notifications/channels/{channel}/test")).expect(200).await;
    eventually("the test message is delivered", async || {
        (site.read(&path).await.as_array().unwrap().len() > before).then_some(())
    })
    .await;
}

/// Runs a command with output, and a batch. Returns the id of the command.
async fn command(site: &Site, agent: &mut FakeAgent) -> Uuid {
    let id = site.running(agent, "echo 'naïve'").await;
    agent.send_output(id, Stream::Stdout, "naïve\n\u{0}\u{1F980}").await;
    agent.finish(id).await;
    site.until_command(id, "succeeded").await;
    let body = json!({"command": "true", "server_ids": [site.server_id]});
    let batch = site.post("/commands").json(body).expect(201).await;
    let part = agent.expect_execute().await.command_id;
    agent.finish(part).await;
    let path = format!("/commands/batches/{}", text_of(&batch["id"]));
    eventually("the end of the batch", async || site.read(&path).await["finished_at"].is_string().then_some(())).await;
    id
}

/// What was made before the move.
struct Before {
    site: Site,
    receiver: Receiver,
    /// Servers with the history of a day, which began then.
    planted: Vec<Uuid>,
    start: i64,
    command_id: Uuid,
}

impl Before {
    /// A running service on SQLite.
    async fn set() -> Self {
        let receiver = Receiver::always(Reaction::Answer(200)).await;
        let service = TestService::start_on(Storage::embedded().await, adjusted).await;
        let owner = service.register("owner").await;
        service.register("bob").await;
        let (server_id, key) = service.server_with_key(&owner, "web-1").await;
        let site = Site { service, owner, server_id, key };
        let alarms = Alarms::at(&site);
        let mut planted = Vec::new();
        for number in 0..SERVERS_WITH_A_DAY {
            planted.push(alarms.server(&format!("db-{number}"), &["db", "eu"]).await.0);
        }
        let mut probe = Probe::at(&site).await;
        probe.tell((1..60).rev().map(sample_aged).collect()).await;
        alarm(&site, &mut probe, &receiver).await;
        let command_id = command(&site, &mut probe.agent).await;
        drop(probe);
        site.until_status("offline").await;
        let start = (Timestamp::now().as_millis() / DAY_MS - 2) * DAY_MS;
        plant(&site.service.state.store, &planted, start).await;
        Self { site, receiver, planted, start, command_id }
    }

    /// Addresses of all lists, and of some of each kind.
    async fn paths(&self) -> Vec<String> {
        let Self { site, start, command_id, .. } = self;
        let (server, planted) = (site.server_id, self.planted[0]);
        let [from, to] = [start + DAY_MS / 4, start + DAY_MS / 4 + 600_000].map(Timestamp::from_millis);
        let until = Timestamp::now();
        let earlier = until.plus_millis(-3_600_000);
        let mut paths = LISTS.map(str::to_owned).to_vec();
        paths.extend([
            format!("/servers/{server}"),
            format!("/servers/{server}/events?limit=500"),
            format!("/servers/{server}/availability?start={earlier}&end={until}"),
            format!("/commands/{server}?limit=500"),
            format!("/commands/{server}/{command_id}"),
            format!("/metrics/{server}"),
            format!("/metrics/{server}/history?start={earlier}&end={until}&resolution=raw"),
            format!("/metrics/{server}/names?start={earlier}&end={until}"),
            format!("/metrics/{planted}/series?start={from}&end={to}&resolution=1m"),
            format!("/metrics/{planted}/history?start={from}&end={to}&resolution=raw"),
        ]);
        let alerts = site.read("/alerts?limit=500").await;
        paths.extend(alerts.as_array().unwrap().iter().map(|alert| format!("/alerts/{}", text_of(&alert["id"]))));
        paths
    }
}

const LISTS: [&str; 18] = [
    "/auth/me",
    "/auth/quotas",
    "/auth/sessions",
    "/servers?limit=500",
    "/servers?tag=eu",
    "/api-keys/me?limit=500",
    "/alerts?limit=500",
    "/alerts?status=resolved",
    "/alerts/summary",
    "/alerts/thresholds?limit=500",
    "/alerts/silences?limit=500",
    "/views?limit=500",
    "/dashboards?limit=500",
    "/notifications/channels",
    "/notifications/deliveries?limit=500",
    "/commands/batches",
    "/audit?limit=500",
    "/audit?all=true&limit=500",
];

/// What a service says of these addresses: each with the length of the list and the body.
async fn answers(service: &TestService, account: &Account, paths: &[String]) -> Vec<(String, String, Value)> {
    let mut answers = Vec::new();
    for path in paths {
        let call = service.client.get(path).bearer(&account.token);
        let answer = in_time(path, call.expect_answer(200)).await;
        let total = answer.headers.get("X-Total-Count").map(|total| total.to_str().unwrap().to_owned());
        answers.push((path.clone(), total.unwrap_or_default(), answer.json()));
    }
    answers
}

#[actix_web::test]
async fn a_service_with_a_million_samples_answers_the_same_after_the_move() {
    let before = Box::pin(Before::set()).await;
    let paths = before.paths().await;
    // After a restart nothing is known but what is stored.
    let Before { site, receiver, planted, .. } = before;
    let site = Box::pin(site.restart_with(adjusted)).await;
    let said = answers(&site.service, &site.owner, &paths).await;
    let raw = said.iter().find(|(path, ..)| path.starts_with(&format!("/metrics/{}/history", planted[0]))).unwrap();
    assert_eq!(raw.2.as_array().unwrap().len(), 601, "a sample a second");
    let Site { service, owner, server_id, key } = site;
    let (source, target) = (service.stop().await, Storage::empty().await);

    let outcome = run(import(&source, &target)).await;

    let printed = outcome.printed();
    assert!(printed.contains("moved and verified: 47 tables, "), "{printed}");
    assert!(printed.contains("audit log is whole: "), "{printed}");
    let days = "SELECT SUM(rows)::bigint FROM history_blocks WHERE part = 0 AND tier = 0 AND rows = 86400";
    assert_eq!(number(&target, days).await, Some(1_036_800));
    let data_dir = source.path().to_owned();
    let on_target = move |config: &mut Config| {
        adjusted(config);
        // Where the secrets are.
        config.data_dir = data_dir;
    };
    let service = Box::pin(TestService::start_on(target, on_target)).await;
    for (before, after) in said.iter().zip(answers(&service, &owner, &paths).await) {
        assert_eq!(*before, after);
    }
    // The agent, people and channels continue with their keys, passwords and settings.
    let site = Site { service, owner, server_id, key };
    site.service.sign_in(&site.owner).await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(0)]).await;
    site.until_status("online").await;
    let channels = site.read("/notifications/channels").await;
    test_channel(&site, &text_of(&channels[0]["id"])).await;
    assert_eq!(receiver.taken().len(), 2);
    let mut verify = signalbox(&["audit", "verify"]);
    verify.env("SIGNALBOX_DATABASE_URL", direct(&site.service.state.config.database_url()));
    assert!(run(verify).await.printed().contains("audit log is whole"));
}

#[actix_web::test]
async fn a_service_without_anything_is_moved_too() {
    let (source, target) = (Storage::embedded().await, Storage::empty().await);

    let outcome = run(import(&source, &target)).await;

    assert!(outcome.printed().contains("moved and verified: 47 tables, 1 row\n"), "{outcome:?}");
    let service = TestService::start_on(target, |_| {}).await;
    service.register("owner").await;
}
