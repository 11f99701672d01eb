//! Schedules that several instances see.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::{A, B, C, Scene};
use crate::schedules::SELDOM;
use crate::support::{eventually, text_of};

const MINUTE: i64 = 60_000;

#[actix_web::test]
async fn exactly_one_instance_starts_a_run() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    scene.until_status(A, "online").await;
    let body = json!({
        "name": "Once", "server_ids": [scene.server_id()], "command": "uptime", "cron": SELDOM, "time_zone": "UTC",
    });
    let made = scene.post(A, "/schedules").json(body).expect(201).await;
    let path = format!("/schedules/{}", text_of(&made["id"]));

    let minute = Timestamp::from_millis(Timestamp::now().as_millis() / MINUTE * MINUTE);
    let update = format!("UPDATE schedules SET next_at = {}", minute.as_millis());
    scene.cluster.storage.execute(&[&update]).await;
    let sent = agent.expect_execute().await;
    agent.finish(sent.command_id).await;

    for reader in [A, B, C] {
        let run = eventually("the run has ended", async || {
            let schedule = scene.read(reader, &path).await;
            let runs = schedule["runs"].as_array().unwrap().clone();
            runs.into_iter().find(|run| run["outcome"] == "succeeded")
        });
        assert!(run.await["batch_id"].is_string());
    }
    let put = scene.client(C).put(&path).bearer(&scene.prepared.token).json(json!({"enabled": false}));
    put.expect(200).await;
    let schedule = scene.read(A, &path).await;
    let commands = scene.read(A, &format!("/commands/{}", scene.server_id())).await;
    let count = |of: &Value| of.as_array().unwrap().len();
    assert_eq!((count(&schedule["runs"]), count(&commands)), (1, 1), "{schedule}");
}
