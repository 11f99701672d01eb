//! Commands that recur.

mod alerts;
mod signed;

use serde_json::{Value, json};
use signalbox::store::{Occurrence, ScheduleAlerts};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::CommandStatus;
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::site::Site;
use crate::support::{Account, Call, eventually, text_of, uuid_of};

/// Milliseconds of a minute and of a day.
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// So seldom that only [`due_at`] makes it due: a second run would hide the outcome of the first.
pub(crate) const SELDOM: &str = "0 0 29 2 *";

/// A service with one server.
struct Scene {
    site: Site,
    agent: FakeAgent,
}

impl Scene {
    async fn start() -> Self {
        let site = Site::start().await;
        let agent = site.agent().await;
        site.until_status("online").await;
        Self { site, agent }
    }

    fn body(&self) -> Value {
        json!({
            "name": "Backup", "server_ids": [self.site.server_id], "command": "backup", "cron": SELDOM, "time_zone": "UTC",
        })
    }

    async fn create(&self, body: Value) -> Value {
        self.site.post("/schedules").json(body).expect(201).await
    }

    /// As if the schedule were due at this time.
    async fn due_at(&self, schedule: &Value, at: Timestamp) {
        due_at(&self.site, schedule, at).await;
    }

    fn call(&self, method: &str, path: impl AsRef<str>) -> Call {
        by(&self.site, &self.site.owner, method, path)
    }

    async fn read(&self, schedule: &Value) -> Value {
        self.site.read(&path(schedule)).await
    }

    async fn until_outcome(&self, schedule: &Value, outcome: &str) -> Value {
        until_outcome(&self.site, schedule, outcome).await
    }
}

fn by(site: &Site, account: &Account, method: &str, path: impl AsRef<str>) -> Call {
    site.service.client.call(method.parse().unwrap(), path.as_ref()).bearer(&account.token)
}

fn path(schedule: &Value) -> String {
    format!("/schedules/{}", text_of(&schedule["id"]))
}

/// The run that ended like this.
pub(crate) async fn until_outcome(site: &Site, schedule: &Value, outcome: &str) -> Value {
    eventually(outcome, async || {
        let told = site.read(&path(schedule)).await;
        told["runs"].as_array().unwrap().iter().find(|run| run["outcome"] == outcome).cloned()
    })
    .await
}

async fn due_at(site: &Site, schedule: &Value, at: Timestamp) {
    let name = text_of(&schedule["name"]);
    let update = format!("UPDATE schedules SET next_at = {} WHERE name = '{name}'", at.as_millis());
    site.service.storage().execute(&[&update]).await;
}

/// The last full minute.
fn last_minute() -> Timestamp {
    Timestamp::from_millis(Timestamp::now().as_millis() / MINUTE * MINUTE)
}

#[actix_web::test]
async fn a_schedule_runs_as_a_batch_when_it_is_due_and_tells_its_next_time() {
    let mut scene = Scene::start().await;
    let mut body = scene.body();
    // At least an hour away, so that only the test makes it due.
    let is_morning = Timestamp::now().as_millis() / HOUR % 24 < 12;
    body["cron"] = json!(format!("0 {} * * *", if is_morning { 15 } else { 3 }));
    body["time_zone"] = json!("Europe/Berlin");

    let made = scene.create(body).await;

    let next = Timestamp::parse(made["next_at"].as_str().unwrap()).unwrap();
    let ahead = next.millis_since(Timestamp::now());
    assert!((0..=DAY + 60 * MINUTE).contains(&ahead), "{made}");
    assert_eq!((&made["enabled"], &made["missed"], &made["runs"]), (&json!(true), &json!(0), &json!([])));
    let change = json!({ "cron": SELDOM, "time_zone": "UTC" });
    let changed = scene.call("PUT", path(&made)).json(change).expect(200).await;
    assert_eq!((&changed["cron"], &changed["command"]), (&json!(SELDOM), &json!("backup")));
    scene.due_at(&made, last_minute()).await;

    let sent = scene.agent.expect_execute().await;
    assert_eq!(sent.command, "backup");
    let running = scene.read(&made).await;
    assert_eq!(running["runs"][0]["outcome"], "running");
    let time = |value: &Value| Timestamp::parse(value.as_str().unwrap()).unwrap();
    assert!(time(&running["next_at"]) > time(&running["runs"][0]["due_at"]), "{running}");
    scene.agent.send_output(sent.command_id, signalbox_protocol::agent::Stream::Stdout, "saved\n").await;
    scene.agent.finish(sent.command_id).await;

    let ended = scene.until_outcome(&made, "succeeded").await;
    let batch = scene.site.read(&format!("/commands/batches/{}", text_of(&ended["batch_id"]))).await;
    assert_eq!((&batch["counts"]["succeeded"], &batch["username"]), (&json!(1), &json!("owner")), "{batch}");
    assert_eq!(batch["results"][0]["preview"], "saved\n");
    assert_eq!(scene.site.read("/schedules").await[0]["name"], "Backup");
    let log = scene.site.read("/audit?limit=500").await;
    let actions: Vec<String> = log.as_array().unwrap().iter().map(|entry| text_of(&entry["action"])).collect();
    for action in ["schedule.create", "schedule.update", "schedule.run", "batch.start"] {
        assert!(actions.contains(&action.to_owned()), "{action}: {actions:?}");
    }
}

#[actix_web::test]
async fn a_failed_run_is_an_event_of_the_server() {
    let mut scene = Scene::start().await;
    let made = scene.create(scene.body()).await;
    scene.due_at(&made, last_minute()).await;

    let sent = scene.agent.expect_execute().await;
    scene.agent.send_result(sent.command_id, CommandStatus::Failed, Some(1)).await;

    let ended = scene.until_outcome(&made, "failed").await;
    let events = format!("/servers/{}/events?kind=schedule_failed", scene.site.server_id);
    let events = scene.site.read(&events).await;
    assert_eq!(events.as_array().unwrap().len(), 1, "{events}");
    let detail = &events[0]["detail"];
    assert_eq!((&detail["name"], &detail["status"]), (&json!("Backup"), &json!("failed")), "{events}");
    assert_eq!((&detail["batch_id"], &detail["schedule_id"]), (&ended["batch_id"], &made["id"]));
}

#[actix_web::test]
async fn an_agent_that_is_offline_fails_the_run_and_gets_nothing_later() {
    let scene = Scene::start().await;
    let made = scene.create(scene.body()).await;
    let Scene { site, agent } = scene;
    drop(agent);
    site.until_status("offline").await;
    due_at(&site, &made, last_minute()).await;

    let ended = until_outcome(&site, &made, "failed").await;

    let batch = site.read(&format!("/commands/batches/{}", text_of(&ended["batch_id"]))).await;
    assert_eq!(batch["results"][0]["error"]["code"], "agent_offline", "{batch}");
    scene_pause(&site, &made).await;
    site.agent().await.expect_silence(1).await;
}

async fn scene_pause(site: &Site, schedule: &Value) {
    by(site, &site.owner, "PUT", path(schedule)).json(json!({ "enabled": false })).expect(200).await;
}

#[actix_web::test]
async fn runs_that_were_missed_are_counted_and_not_made_up_for() {
    let mut scene = Scene::start().await;
    let mut body = scene.body();
    // Half a day away, so that no run is due during the test.
    let now_hour = Timestamp::now().as_millis() / HOUR;
    body["cron"] = json!(format!("0 {} * * *", (now_hour + 12) % 24));
    let made = scene.create(body).await;
    let last = Timestamp::from_millis((now_hour - 12) * HOUR);

    scene.due_at(&made, last.plus_millis(-3 * DAY)).await;

    let told = eventually("they are counted", async || {
        Some(scene.read(&made).await).filter(|schedule| schedule["missed"] != 0)
    });
    let told = told.await;
    assert_eq!(told["missed"], 4, "{told}");
    assert_eq!(told["missed_at"], json!(last));
    let log = scene.site.read("/audit?limit=500").await;
    let missed = log.as_array().unwrap().iter().find(|entry| entry["action"] == "schedule.miss").unwrap();
    assert_eq!(missed["detail"]["missed"], told["missed"], "{missed}");
    scene.agent.expect_silence(1).await;
}

#[actix_web::test]
async fn a_paused_schedule_does_not_run_and_continues_with_its_next_time() {
    let mut scene = Scene::start().await;
    let mut body = scene.body();
    body["enabled"] = json!(false);
    let made = scene.create(body).await;
    assert!(made["next_at"].is_null(), "{made}");
    scene.due_at(&made, last_minute().plus_millis(-MINUTE)).await;

    // Another one that is due shows that the service has looked.
    let mut other = scene.body();
    (other["name"], other["command"]) = (json!("Other"), json!("other"));
    let other = scene.create(other).await;
    scene.due_at(&other, last_minute()).await;
    let sent = scene.agent.expect_execute().await;
    assert_eq!(sent.command, "other");
    scene.agent.finish(sent.command_id).await;
    scene.until_outcome(&other, "succeeded").await;
    scene_pause(&scene.site, &other).await;
    let still = scene.read(&made).await;
    assert_eq!((&still["runs"], &still["missed"]), (&json!([]), &json!(0)), "{still}");

    let on = scene.call("PUT", path(&made)).json(json!({ "enabled": true })).expect(200).await;
    assert_eq!(on["missed"], 0, "{on}");
    assert!(Timestamp::parse(on["next_at"].as_str().unwrap()).unwrap() > Timestamp::now().plus_millis(-1_000));
}

#[actix_web::test]
async fn a_run_does_not_start_while_the_one_before_runs() {
    let mut scene = Scene::start().await;
    let made = scene.create(scene.body()).await;
    scene.due_at(&made, last_minute()).await;
    let sent = scene.agent.expect_execute().await;
    // As if it had begun a minute earlier.
    scene.site.service.storage().execute(&["UPDATE schedule_runs SET due_at = due_at - 60000"]).await;

    scene.due_at(&made, last_minute()).await;
    let both = eventually("the second is noted", async || {
        let runs = scene.read(&made).await["runs"].as_array().unwrap().clone();
        Some(runs).filter(|runs| runs.iter().any(|run| run["outcome"] == "still_running"))
    });

    assert_eq!(both.await.last().unwrap()["outcome"], "running");
    scene.agent.finish(sent.command_id).await;
    scene.agent.expect_silence(1).await;
}

#[actix_web::test]
async fn a_run_starts_although_the_end_of_the_one_before_is_not_noted_yet() {
    let mut scene = Scene::start().await;
    let made = scene.create(scene.body()).await;
    scene.due_at(&made, last_minute()).await;
    let sent = scene.agent.expect_execute().await;
    scene.agent.finish(sent.command_id).await;
    scene.until_outcome(&made, "succeeded").await;

    // As if it had ended just before it is due again, a minute later.
    let ended = "UPDATE schedule_runs SET outcome = NULL, due_at = due_at - 60000";
    let due = format!("UPDATE schedules SET next_at = {}", last_minute().as_millis());
    scene.site.service.storage().execute(&[ended, &due]).await;

    let sent = scene.agent.expect_execute().await;
    scene.agent.finish(sent.command_id).await;
    eventually("both have succeeded", async || {
        let runs = scene.read(&made).await["runs"].as_array().unwrap().clone();
        (runs.len() == 2 && runs.iter().all(|run| run["outcome"] == "succeeded")).then_some(())
    })
    .await;
}

#[actix_web::test]
async fn a_schedule_one_of_whose_servers_is_gone_can_be_paused_and_named() {
    let scene = Scene::start().await;
    let (gone, _) = scene.site.other_server().await;
    let mut body = scene.body();
    body["server_ids"] = json!([scene.site.server_id, gone]);
    let made = scene.create(body).await;
    scene.call("DELETE", format!("/servers/{gone}")).expect(200).await;
    let change = |fields: Value| scene.call("PUT", path(&made)).json(fields);

    let named = change(json!({ "name": "Nightly", "severity": "critical" })).expect(200).await;
    assert_eq!((&named["name"], &named["enabled"]), (&json!("Nightly"), &json!(true)), "{named}");
    change(json!({ "enabled": false, "command": "other" })).expect_error(404, "not_found").await;
    let paused = change(json!({ "enabled": false })).expect(200).await;
    assert_eq!((&paused["enabled"], &paused["next_at"]), (&json!(false), &Value::Null), "{paused}");
    change(json!({ "enabled": true })).expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn a_change_of_other_things_than_when_it_runs_keeps_the_next_time() {
    let scene = Scene::start().await;
    let made = scene.create(scene.body()).await;
    // Not a time of its expression, so that it shows whether the next time was computed again.
    let next = last_minute().plus_millis(HOUR);
    scene.due_at(&made, next).await;
    let change = async |fields: Value| {
        let changed = scene.call("PUT", path(&made)).json(fields).expect(200).await;
        changed["next_at"].clone()
    };

    assert_eq!(change(json!({ "name": "Nightly" })).await, json!(next));
    assert_eq!(change(json!({ "command": "other", "cron": SELDOM, "timeout_seconds": 5 })).await, json!(next));
    assert_eq!(change(json!({ "enabled": false })).await, Value::Null);
    assert_eq!(change(json!({ "enabled": true })).await, made["next_at"]);
}

#[actix_web::test]
async fn what_was_read_before_a_change_does_not_run_after_it() {
    let scene = Scene::start().await;
    let made = scene.create(scene.body()).await;
    let store = &scene.site.service.state.store;
    let read = store.find_schedule(scene.site.owner.id, uuid_of(&made["id"])).await.unwrap().unwrap();
    let (schedule_id, updated_at, now) = (read.id, Timestamp::from(read.updated_at), Timestamp::now());
    let due_at = Timestamp::from(read.next_at.unwrap());
    let run = Occurrence {
        schedule_id,
        updated_at,
        expected: due_at,
        due_at,
        next_at: None,
        missed: 0,
        missed_at: None,
        now,
    };
    let (failed, recovered, unchanged) = Default::default();
    let alerts = ScheduleAlerts { schedule_id, at: now, failed, recovered, unchanged };

    scene.call("PUT", path(&made)).json(json!({ "command": "other" })).expect(200).await;
    store.pass_schedule(run, Some("no_server"), Vec::new(), alerts).await.unwrap();

    let told = scene.read(&made).await;
    assert_eq!((&told["runs"], &told["next_at"]), (&json!([]), &made["next_at"]), "{told}");
}

#[actix_web::test]
async fn the_servers_of_a_tag_are_those_of_the_moment_and_the_owners_rights_are_asked_each_time() {
    let mut scene = Scene::start().await;
    let guest = scene.site.service.register("guest").await;
    let server = format!("/servers/{}", scene.site.server_id);
    scene.call("PUT", &server).json(json!({ "tags": ["db"] })).expect(200).await;
    let scope = json!({ "server_id": scene.site.server_id });
    let grant = json!({
        "subject": { "user_id": guest.id }, "scope": scope, "role": "operator", "rights": ["commands"],
    });
    let grant = scene.site.post("/grants").json(grant).expect(201).await;
    let of_tag = json!({ "name": "Tag", "tag": "db", "command": "tag", "cron": SELDOM, "time_zone": "UTC" });
    let of_tag = scene.create(of_tag).await;
    let mut of_guest = scene.body();
    of_guest["name"] = json!("Guest");
    let of_guest = by(&scene.site, &guest, "POST", "/schedules").json(of_guest).expect(201).await;
    scene.site.read(&path(&of_tag)).await;
    scene.call("GET", path(&of_guest)).expect_error(404, "not_found").await;

    scene.call("PUT", &server).json(json!({ "tags": ["web"] })).expect(200).await;
    scene.call("DELETE", format!("/grants/{}", text_of(&grant["id"]))).expect(200).await;
    scene.due_at(&of_tag, last_minute()).await;
    scene.due_at(&of_guest, last_minute()).await;

    scene.until_outcome(&of_tag, "no_server").await;
    let refused = eventually("the guest's run fails", async || {
        let schedule = by(&scene.site, &guest, "GET", path(&of_guest)).expect(200).await;
        Some(schedule).filter(|schedule| schedule["runs"][0]["outcome"] == "failed")
    });
    refused.await;
    let commands = scene.site.read(&format!("/commands/{}", scene.site.server_id)).await;
    assert_eq!(commands[0]["error"]["code"], "forbidden", "{commands}");
    scene.agent.expect_silence(1).await;
    // Nobody could make them now, and they can be paused.
    scene_pause(&scene.site, &of_tag).await;
    by(&scene.site, &guest, "PUT", path(&of_guest)).json(json!({ "enabled": false })).expect(200).await;
}

#[actix_web::test]
async fn what_cannot_be_a_schedule_is_refused() {
    let scene = Scene::start().await;
    let with = |field: &str, value: Value| {
        let mut body = scene.body();
        body[field] = value;
        scene.site.post("/schedules").json(body)
    };
    for cron in ["* * * * * *", "61 * * * *", "@daily xx yy zz", "0 0 30 2 *"] {
        with("cron", json!(cron)).expect_some_faults(422, &[("body.cron", "value_error.cron")]).await;
    }
    with("time_zone", json!("Mars/Olympus"))
        .expect_some_faults(422, &[("body.time_zone", "value_error.time_zone")])
        .await;
    with("until", json!("2020-01-01T00:00:00Z")).expect_error(400, "bad_request").await;
    with("server_ids", Value::Null).expect_error(400, "bad_request").await;
    with("server_ids", json!([Uuid::now_v7()])).expect_error(404, "not_found").await;
    let made = scene.create(scene.body()).await;
    let stranger = scene.site.service.register("stranger").await;
    for method in ["GET", "DELETE"] {
        by(&scene.site, &stranger, method, path(&made)).expect_error(404, "not_found").await;
    }
    scene.call("PUT", path(&made)).json(json!({ "cron": "x" })).expect(422).await;
    scene.call("DELETE", path(&made)).expect(200).await;
    scene.call("GET", path(&made)).expect_error(404, "not_found").await;
}
