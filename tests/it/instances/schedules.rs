//! Schedules that several instances see.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::CommandStatus;

use super::{A, B, C, Scene};
use crate::schedules::SELDOM;
use crate::support::{eventually, text_of};

const MINUTE: i64 = 60_000;

impl Scene {
    /// Makes a schedule that is due once. Returns its path.
    async fn schedule_that_is_due(&self) -> String {
        let body = json!({
            "name": "Once", "server_ids": [self.server_id()], "command": "uptime", "cron": SELDOM, "time_zone": "UTC",
        });
        let made = self.post(A, "/schedules").json(body).expect(201).await;
        let minute = Timestamp::from_millis(Timestamp::now().as_millis() / MINUTE * MINUTE);
        let update = format!("UPDATE schedules SET next_at = {}", minute.as_millis());
        self.cluster.storage.execute(&[&update]).await;
        format!("/schedules/{}", text_of(&made["id"]))
    }

    /// The run that ended like this, as an instance returns it.
    async fn until_run(&self, reader: usize, path: &str, outcome: &str) -> Value {
        eventually("the run has ended", async || {
            let schedule = self.read(reader, path).await;
            let runs = schedule["runs"].as_array().unwrap().clone();
            runs.into_iter().find(|run| run["outcome"] == outcome)
        })
        .await
    }
}

fn count(of: &Value) -> usize {
    of.as_array().unwrap().len()
}

#[actix_web::test]
async fn exactly_one_instance_starts_a_run() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    scene.until_status(A, "online").await;
    let path = scene.schedule_that_is_due().await;

    let sent = agent.expect_execute().await;
    agent.finish(sent.command_id).await;

    for reader in [A, B, C] {
        let run = scene.until_run(reader, &path, "succeeded").await;
        assert!(run["batch_id"].is_string());
    }
    let put = scene.client(C).put(&path).bearer(&scene.prepared.token).json(json!({"enabled": false}));
    put.expect(200).await;
    let schedule = scene.read(A, &path).await;
    let commands = scene.read(A, &format!("/commands/{}", scene.server_id())).await;
    assert_eq!((count(&schedule["runs"]), count(&commands)), (1, 1), "{schedule}");
}

#[actix_web::test]
async fn a_run_that_fails_leaves_one_event_and_one_alert() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    scene.until_status(A, "online").await;
    let path = scene.schedule_that_is_due().await;

    let sent = agent.expect_execute().await;
    agent.send_result(sent.command_id, CommandStatus::Failed, Some(1)).await;

    for reader in [A, B, C] {
        let run = scene.until_run(reader, &path, "failed").await;
        let events = scene.read(reader, "/events?kind=schedule_failed").await;
        let alerts = scene.read(reader, "/alerts?metric_type=schedule").await;
        assert_eq!((count(&events), count(&alerts)), (1, 1), "{events} {alerts}");
        assert_eq!(events[0]["detail"]["batch_id"], run["batch_id"]);
        assert_eq!(alerts[0]["status"], "active");
    }
}
