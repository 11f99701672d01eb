//! Instances that do not agree on the time: they go by the database's clock, which is the same for all.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::{A, B, C, Scene};
use crate::support::agent::{FakeAgent, sample_at};
use crate::support::alerts::{Probe, Threshold};
use crate::support::cluster::Cluster;
use crate::support::commands::answered;
use crate::support::machine::Machine;
use crate::support::process::ServiceProcess;
use crate::support::receiver::{Reaction, Receiver};
use crate::support::{Client, PASSWORD, eventually, text_of};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const YEAR_MS: i64 = 365 * DAY_MS;

pub(super) async fn counted(service: &ServiceProcess, name: &str) -> f64 {
    let told = Client::new(format!("http://{}", service.address)).get("/metrics").send().await.text;
    let line = told.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    line.and_then(|line| line.split_whitespace().last()?.parse().ok()).unwrap_or_default()
}

/// How old something is by the right clock.
fn age_ms(of: &Value) -> i64 {
    Timestamp::now().millis_since(Timestamp::parse(&text_of(of)).unwrap())
}

impl Scene {
    async fn until_live(&self, instance: usize, what: &str) {
        let path = format!("/metrics/{}", self.server_id());
        eventually(&format!("{what}: live samples at {instance}"), async || {
            let answer = self.get(instance, &path).send().await;
            (answer.status == 200 && (-2_000..5_000).contains(&age_ms(&answer.json()["timestamp"]))).then_some(())
        })
        .await;
    }

    /// Everything that shows the time says that the agent's clock is right.
    async fn expect_right_clock(&self, what: &str) {
        for instance in [A, B, C] {
            self.until_live(instance, what).await;
            let server = self.read(instance, &format!("/servers/{}", self.server_id())).await;
            let offset_ms = server["agent"]["clock_offset_ms"].as_i64().unwrap();
            assert!(offset_ms.abs() < 5_000, "{what}: {offset_ms} at {instance}");
            assert_eq!(server["status"], "online", "{what}: {instance}");
        }
        let events = self.read(A, &format!("/servers/{}/events?kind=clock", self.server_id())).await;
        assert_eq!(events, json!([]), "{what}");
    }
}

/// The agent, its dashboards and its messages are at an instance whose clock is wrong.
async fn one_is_wrong(ahead_ms: i64) {
    let scene = Scene::on(Cluster::ahead_by(&[0, ahead_ms, 0]).await).await;
    let receiver = Receiver::always(Reaction::Answer(200)).await;
    let channel = json!({"name": "hook", "type": "webhook", "settings": {"url": receiver.url("/hook")}});
    scene.post(B, "/notifications/channels").json(channel).expect(201).await;
    let offline = scene.alarms(A).add(Threshold::offline(20.0)).await;
    let began = Timestamp::now();
    let machine = Machine::new();
    let _agent = machine.agent(scene.cluster.address(B), &scene.prepared.key, &["--commands", "on"]);
    scene.expect_right_clock("wrong").await;
    eventually("it doubts its clock", async || {
        (counted(scene.cluster.at(B), "signalbox_clock_doubted").await == 1.0).then_some(())
    })
    .await;

    let form = [("username", "owner"), ("password", PASSWORD)];
    let tokens = scene.client(B).post("/auth/login").form(&form).expect(200).await;
    for instance in [A, B, C] {
        let path = format!("/servers/{}", scene.server_id());
        scene.client(instance).get(&path).bearer(&text_of(&tokens["access_token"])).expect(200).await;
        let answer = answered(scene.run(instance, "echo done")).await;
        assert_eq!((answer.status, &answer.json()["output"]), (200, &json!("done\n")), "{instance}: {answer}");
        assert!(age_ms(&answer.json()["started_at"]).abs() < 60_000, "{instance}: {answer}");
    }
    let memory = scene.alarms(C).add(Threshold::on("memory", "gt", 0.0)).await;
    let alert = scene.alarms(A).until_only(memory, "active").await;
    assert!(age_ms(&alert["triggered_at"]).abs() < 60_000, "{alert}");
    let until_messages = async |count: usize| {
        let what = format!("{count} messages are at the receiver");
        eventually(&what, async || (receiver.taken().len() >= count).then_some(())).await;
    };
    until_messages(1).await;

    let ends_at = Timestamp::now().plus_millis(HOUR_MS).to_string();
    let silence = scene.alarms(A).post("/alerts/silences", json!({"all": true, "ends_at": ends_at})).await;
    let quiet = scene.alarms(C).add(Threshold::on("memory", "gt", 0.1)).await;
    assert_eq!(scene.alarms(A).until_only(quiet, "active").await["silenced"], true);
    scene.alarms(B).delete(&format!("/alerts/silences/{}", text_of(&silence["id"]))).await;
    until_messages(2).await;
    let resolved = scene.alarms(B).resolve(&alert).await;
    assert!(age_ms(&resolved["resolved_at"]).abs() < 60_000, "{resolved}");
    until_messages(3).await;
    scene.cluster.clock(B).set_ms(0);

    scene.expect_right_clock("put right").await;
    scene.cluster.clock(B).set_ms(-ahead_ms);
    scene.expect_right_clock("wrong the other way").await;
    assert_eq!(receiver.taken().len(), 3, "one message for each beginning and end");
    assert_eq!(scene.alarms(A).only(memory).await["id"], alert["id"]);
    scene.alarms(A).expect_none(offline).await;
    let moments = scene.moments(A, scene.server_id()).await;
    let times: Vec<Timestamp> = moments.iter().map(|text| Timestamp::parse(text).unwrap()).collect();
    let longest = times.windows(2).map(|two| two[1].millis_since(two[0])).max().unwrap();
    assert!(longest < 15_000 && times[0].millis_since(began) < 60_000, "{longest} ms are missing");
    // The machine that runs all this may have skipped half of them.
    let expected = usize::try_from(times[times.len() - 1].millis_since(times[0]) / 500).unwrap();
    assert!(times.len() + expected / 2 >= expected, "{} of {expected}", times.len());
}

#[actix_web::test]
async fn one_that_is_two_hours_ahead_takes_part_as_any_other() {
    one_is_wrong(2 * HOUR_MS).await;
}

#[actix_web::test]
async fn one_that_is_two_days_behind_takes_part_as_any_other() {
    one_is_wrong(-2 * DAY_MS).await;
}

#[actix_web::test]
async fn what_expires_and_what_is_too_old_goes_by_the_databases_clock() {
    let mut scene = Scene::on(Cluster::ahead_by(&[0]).await).await;
    let start = Timestamp::now().plus_millis(-3 * DAY_MS);
    let samples: Vec<_> = (0..20).map(|number| sample_at(start.plus_millis(number * 10 * 60_000))).collect();
    let mut agent = scene.agent(A).await;
    agent.store(1, samples.clone()).await;
    drop(agent);
    let body = json!({"server_id": scene.server_id(), "name": "short",
                      "expires_at": Timestamp::now().plus_millis(HOUR_MS)});
    let key = text_of(&scene.post(A, "/api-keys").json(body).expect(201).await["key"]);

    for ahead_ms in [2 * DAY_MS, YEAR_MS, -2 * DAY_MS] {
        scene.cluster.terminate(A).await;
        scene.cluster.clock(A).set_ms(ahead_ms);
        scene.cluster.begin(A).await;
        // The first pass drops what is too old, and has ended when there is a second one.
        eventually("a pass over the history has ended", async || {
            (counted(scene.cluster.at(A), "signalbox_history_step_seconds_count").await >= 2.0).then_some(())
        })
        .await;

        let until = start.plus_millis(DAY_MS);
        let range = format!("resolution=raw&max_points=20000&start={start}&end={until}");
        let kept = scene.read(A, &format!("/metrics/{}/history?{range}", scene.server_id())).await;
        assert_eq!(kept.as_array().unwrap().len(), samples.len(), "{ahead_ms}");
        let mut probe = Probe::new(FakeAgent::online(scene.cluster.address(A), &key).await);
        probe.cpu(10.0).await;
        scene.until_live(A, "a key that has not expired").await;
    }
}
