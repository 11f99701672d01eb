//! Runs that fail or are missed: the alerts that they open, and the messages that people get.

use serde_json::{Value, json};
use signalbox::config::Quotas;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::CommandStatus;

use super::{SELDOM, by, due_at, last_minute, path, until_outcome};
use crate::support::agent::FakeAgent;
use crate::support::receiver::{Reaction, Receiver};
use crate::support::site::Site;
use crate::support::{Account, eventually, text_of};

/// A service with one server, a guest who sees it, and a receiver of webhooks.
struct Scene {
    site: Site,
    agent: FakeAgent,
    guest: Account,
    grant: Value,
    receiver: Receiver,
}

impl Scene {
    async fn start() -> Self {
        let receiver = Receiver::always(Reaction::Answer(200)).await;
        let site = Site::start_with(|config| config.notification_networks = vec!["127.0.0.0/8".parse().unwrap()]).await;
        let agent = site.agent().await;
        site.until_status("online").await;
        let guest = site.service.register("guest").await;
        let grant = json!({
            "subject": { "user_id": guest.id }, "scope": { "server_id": site.server_id }, "role": "viewer",
        });
        let grant = site.post("/grants").json(grant).expect(201).await;
        let scene = Self { site, agent, guest, grant, receiver };
        channel(&scene.site, &scene.site.owner, &scene.receiver, "owner").await;
        channel(&scene.site, &scene.guest, &scene.receiver, "guest").await;
        scene
    }

    async fn schedule(&self, severity: &str) -> Value {
        let body = json!({
            "name": "Backup", "server_ids": [self.site.server_id], "command": "backup", "cron": SELDOM,
            "time_zone": "UTC", "severity": severity,
        });
        self.site.post("/schedules").json(body).expect(201).await
    }

    /// Makes it due, and ends its command like this. All runs are put back by `minutes`, more than all before.
    async fn runs(&mut self, schedule: &Value, minutes: i64, status: CommandStatus, exit_code: i32) {
        due_at(&self.site, schedule, last_minute()).await;
        let sent = self.agent.expect_execute().await;
        self.agent.send_result(sent.command_id, status, Some(exit_code)).await;
        self.agent.expect_result_ack(sent.command_id).await;
        eventually("the run has ended", async || {
            let newest = self.site.read(&path(schedule)).await["runs"][0].clone();
            (newest["outcome"] != "running").then_some(())
        })
        .await;
        // So that the next run of the same minute is another one.
        let earlier = format!("UPDATE schedule_runs SET due_at = due_at - {}", minutes * 60_000);
        self.site.service.storage().execute(&[&earlier]).await;
    }

    /// What the receiver got on a channel: each event with its message.
    fn got(&self, channel: &str) -> Vec<String> {
        got(&self.receiver, channel)
    }

    async fn until_got(&self, channel: &str, count: usize) -> Vec<String> {
        until_got(&self.receiver, channel, count).await
    }

    async fn alerts(&self) -> Vec<Value> {
        self.site.read("/alerts?metric_type=schedule").await.as_array().unwrap().clone()
    }
}

/// An account's channel for what is critical, at the receiver.
pub(super) async fn channel(site: &Site, account: &Account, receiver: &Receiver, name: &str) {
    let channel = json!({
        "name": name, "type": "webhook", "settings": { "url": receiver.url(&format!("/{name}")) },
        "severities": ["critical"],
    });
    by(site, account, "POST", "/notifications/channels").json(channel).expect(201).await;
}

fn got(receiver: &Receiver, channel: &str) -> Vec<String> {
    let requests = receiver.taken();
    let bodies = requests.iter().filter(|request| request.path == format!("/{channel}")).map(|it| it.json());
    let items: Vec<Value> = bodies.flat_map(|body| body["alerts"].as_array().unwrap().clone()).collect();
    items.iter().map(|item| format!("{} {}", text_of(&item["event"]), text_of(&item["alert"]["message"]))).collect()
}

/// At least so many messages on a channel.
pub(super) async fn until_got(receiver: &Receiver, channel: &str, count: usize) -> Vec<String> {
    eventually("the messages came", async || Some(got(receiver, channel)).filter(|got| got.len() >= count)).await
}

#[actix_web::test]
async fn a_failure_is_one_message_on_each_channel_and_the_next_success_ends_it() {
    let mut scene = Scene::start().await;
    let made = scene.schedule("critical").await;
    assert_eq!(made["severity"], "critical");

    scene.runs(&made, 1, CommandStatus::Succeeded, 0).await;
    assert_eq!(scene.alerts().await, Vec::<Value>::new());
    scene.runs(&made, 2, CommandStatus::Failed, 3).await;

    let failed = format!(
        "triggered schedule Backup on {} failed with exit code 3",
        scene.site.server().await["name"].as_str().unwrap()
    );
    for channel in ["owner", "guest"] {
        assert_eq!(scene.until_got(channel, 1).await, std::slice::from_ref(&failed), "{channel}");
    }
    let [alert] = &scene.alerts().await[..] else { panic!("not one alert") };
    assert_eq!((&alert["threshold_id"], &alert["target"]), (&made["id"], &json!("Backup")));
    assert_eq!((&alert["status"], &alert["severity"]), (&json!("active"), &json!("critical")));

    // Another failure is the same alert, and the guest whose grant has ended hears nothing of its end.
    scene.runs(&made, 4, CommandStatus::TimedOut, 124).await;
    assert_eq!(scene.alerts().await[0]["peak_value"], 2.0);
    scene.call_delete(&format!("/grants/{}", text_of(&scene.grant["id"]))).await;
    scene.runs(&made, 8, CommandStatus::Succeeded, 0).await;

    let got = scene.until_got("owner", 2).await;
    assert_eq!((got.len(), got[1].split(' ').next()), (2, Some("resolved")), "{got:?}");
    assert_eq!(scene.got("guest"), std::slice::from_ref(&failed));
    let [alert] = &scene.alerts().await[..] else { panic!("not one alert") };
    assert_eq!((&alert["status"], &alert["resolved_by"]), (&json!("resolved"), &json!("recovery")));
    let detail = scene.site.read(&format!("/alerts/{}", text_of(&alert["id"]))).await;
    let kinds: Vec<String> =
        detail["timeline"].as_array().unwrap().iter().map(|event| text_of(&event["kind"])).collect();
    assert_eq!(kinds, ["triggered", "resolved"]);

    scene.runs(&made, 16, CommandStatus::Failed, 1).await;
    assert_eq!(scene.until_got("owner", 3).await.len(), 3, "it is sent again after a success");
    // What had been sent to the guest would have come before.
    assert_eq!(scene.got("guest"), [failed]);
}

impl Scene {
    async fn call_delete(&self, path: &str) {
        by(&self.site, &self.site.owner, "DELETE", path).expect(200).await;
    }
}

#[actix_web::test]
async fn a_run_that_fails_on_one_of_its_servers_leaves_one_event_one_alert_and_one_message() {
    let mut scene = Scene::start().await;
    let (other_id, key) = scene.site.other_server().await;
    let mut other = FakeAgent::online(scene.site.service.address, &key).await;
    let server = format!("/servers/{other_id}");
    eventually("the other server is online", async || {
        (scene.site.read(&server).await["status"] == "online").then_some(())
    })
    .await;
    let body = json!({
        "name": "Backup", "server_ids": [scene.site.server_id, other_id], "command": "backup", "cron": SELDOM,
        "time_zone": "UTC", "severity": "critical", "concurrency": 2,
    });
    let made = scene.site.post("/schedules").json(body).expect(201).await;

    due_at(&scene.site, &made, last_minute()).await;
    let sent = other.expect_execute().await;
    other.finish(sent.command_id).await;
    let sent = scene.agent.expect_execute().await;
    scene.agent.send_result(sent.command_id, CommandStatus::Failed, Some(1)).await;

    let run = until_outcome(&scene.site, &made, "failed").await;
    let events = scene.site.read("/events?kind=schedule_failed").await;
    assert_eq!(events.as_array().unwrap().len(), 1, "{events}");
    assert_eq!(events[0]["server_id"], json!(scene.site.server_id));
    assert_eq!(events[0]["detail"]["batch_id"], run["batch_id"]);
    let [alert] = &scene.alerts().await[..] else { panic!("not one alert") };
    assert_eq!((&alert["server_id"], &alert["status"]), (&json!(scene.site.server_id), &json!("active")));
    for channel in ["owner", "guest"] {
        assert_eq!(scene.until_got(channel, 1).await.len(), 1, "{channel}");
    }
}

#[actix_web::test]
async fn silences_and_the_severities_of_channels_apply() {
    let mut scene = Scene::start().await;
    let mild = scene.schedule("info").await;
    scene.runs(&mild, 1, CommandStatus::Failed, 1).await;
    scene.call_delete(&path(&mild)).await;
    let ends_at = Timestamp::now().plus_millis(3_600_000);
    let silence = json!({ "server_id": scene.site.server_id, "ends_at": ends_at });
    let silence = scene.site.post("/alerts/silences").json(silence).expect(201).await;
    let made = scene.schedule("critical").await;

    scene.runs(&made, 2, CommandStatus::Failed, 1).await;

    let alerts = scene.alerts().await;
    assert_eq!((&alerts[0]["silenced"], &alerts[1]["severity"]), (&json!(true), &json!("info")), "{alerts:?}");
    assert_eq!(scene.got("owner"), Vec::<String>::new());
    // A schedule that is deleted ends its alert.
    eventually("the deleted schedule's alert ends", async || {
        Some(scene.alerts().await).filter(|alerts| alerts[1]["resolved_by"] == "threshold_deleted")
    })
    .await;
    scene.call_delete(&format!("/alerts/silences/{}", text_of(&silence["id"]))).await;
    let got = scene.until_got("owner", 1).await;
    assert!(got.len() == 1 && got[0].starts_with("triggered schedule Backup "), "its end releases it alone: {got:?}");
}

#[actix_web::test]
async fn an_alert_ends_where_a_schedule_does_not_run_any_more() {
    let mut scene = Scene::start().await;
    let made = scene.schedule("critical").await;
    scene.runs(&made, 1, CommandStatus::Failed, 1).await;
    assert_eq!(scene.alerts().await[0]["status"], "active");
    let server = format!("/servers/{}", scene.site.server_id);
    let put = |path: String, body: Value| by(&scene.site, &scene.site.owner, "PUT", path).json(body).expect(200);
    put(server.clone(), json!({ "tags": ["db"] })).await;
    put(path(&made), json!({ "server_ids": null, "tag": "db" })).await;
    put(server, json!({ "tags": ["web"] })).await;

    due_at(&scene.site, &made, last_minute()).await;

    until_outcome(&scene.site, &made, "no_server").await;
    let alerts = scene.alerts().await;
    assert_eq!((alerts.len(), &alerts[0]["resolved_by"]), (1, &json!("threshold_deleted")), "{alerts:?}");
}

#[actix_web::test]
async fn whose_right_ended_alerts_nobody_and_ends_the_alert_that_was_open() {
    let mut scene = Scene::start().await;
    let grant = json!({
        "subject": { "user_id": scene.guest.id }, "scope": { "server_id": scene.site.server_id }, "role": "operator",
    });
    scene.call_delete(&format!("/grants/{}", text_of(&scene.grant["id"]))).await;
    let grant = scene.site.post("/grants").json(grant).expect(201).await;
    let body = json!({
        "name": "Of a guest", "server_ids": [scene.site.server_id], "command": "backup", "cron": SELDOM,
        "time_zone": "UTC", "severity": "critical",
    });
    let made = by(&scene.site, &scene.guest, "POST", "/schedules").json(body).expect(201).await;
    due_at(&scene.site, &made, last_minute()).await;
    let sent = scene.agent.expect_execute().await;
    scene.agent.send_result(sent.command_id, CommandStatus::Failed, Some(1)).await;
    assert_eq!(scene.until_got("owner", 1).await.len(), 1);
    scene.call_delete(&format!("/grants/{}", text_of(&grant["id"]))).await;

    for runs in [2, 3] {
        let earlier = format!("UPDATE schedule_runs SET due_at = due_at - {}", runs * 60_000);
        scene.site.service.storage().execute(&[&earlier]).await;
        due_at(&scene.site, &made, last_minute()).await;
        eventually("the run without a right has ended", async || {
            let told = by(&scene.site, &scene.guest, "GET", path(&made)).expect(200).await;
            let told = told["runs"].as_array().unwrap().clone();
            (told.len() == runs && told.iter().all(|run| run["outcome"] == "failed")).then_some(())
        })
        .await;
        let alerts = scene.alerts().await;
        assert_eq!((alerts.len(), &alerts[0]["resolved_by"]), (1, &json!("threshold_deleted")), "{alerts:?}");
    }
    let got = scene.until_got("owner", 2).await;
    assert!(got.len() == 2 && got[1].starts_with("resolved "), "{got:?}");
}

#[actix_web::test]
async fn missed_runs_and_agents_that_are_away_reach_people_and_a_resolved_alert_fires_again() {
    let scene = Scene::start().await;
    let made = scene.schedule("critical").await;
    due_at(&scene.site, &made, last_minute().plus_millis(-120 * 60_000)).await;

    let got = scene.until_got("owner", 1).await;

    assert!(got[0].contains(" did not run: it was due at ") && got.len() == 1, "{got:?}");
    let alert = scene.alerts().await[0].clone();
    let resolve = format!("/alerts/{}/resolve", text_of(&alert["id"]));
    by(&scene.site, &scene.site.owner, "POST", resolve).expect(200).await;
    let Scene { site, agent, receiver, guest, grant } = scene;
    drop(agent);
    site.until_status("offline").await;
    due_at(&site, &made, last_minute()).await;
    until_outcome(&site, &made, "failed").await;
    let agent = site.agent().await;
    let scene = Scene { site, agent, receiver, guest, grant };
    let got = scene.until_got("owner", 3).await;
    assert!(got[1].starts_with("resolved ") && got[2].contains("its agent was not connected"), "{got:?}");
    let event = format!("/servers/{}/events?kind=schedule_failed", scene.site.server_id);
    let event = by(&scene.site, &scene.guest, "GET", event).expect(200).await;
    assert_eq!(event[0]["detail"]["schedule_owner_id"], json!(scene.site.owner.id), "who sees it knows whose it is");
    by(&scene.site, &scene.guest, "GET", path(&made)).expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn an_alert_says_which_quota_prevented_a_run() {
    let quotas = Quotas { command_bytes: 200, ..Quotas::default() };
    let site = Site::start_with(|config| config.quotas = quotas).await;
    let body = json!({
        "name": "Backup", "server_ids": [site.server_id], "command": "backup", "cron": SELDOM, "time_zone": "UTC",
    });
    let made = site.post("/schedules").json(body).expect(201).await;
    due_at(&site, &made, last_minute()).await;

    until_outcome(&site, &made, "quota_exceeded").await;

    let alerts = site.read("/alerts?metric_type=schedule").await;
    let message = text_of(&alerts[0]["message"]);
    let why = "did not run: the account's quota of command_bytes is reached: 200";
    assert!(message.contains(why), "{message}");
}
