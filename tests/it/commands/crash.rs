//! A service that is killed while commands run.

use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::uuid_of;

/// A command that runs, without anybody waiting for it.
async fn running(service: &ServiceProcess, prepared: &Prepared, agent: &mut FakeAgent) -> Uuid {
    let path = format!("/commands/{}?wait=0", prepared.server_id);
    let call = service.client.post(path).bearer(&prepared.token).json(json!({"command": "make"}));
    let id = uuid_of(&call.expect(200).await["command_id"]);
    assert_eq!(agent.expect_execute().await.command_id, id);
    id
}

#[actix_web::test]
async fn an_acknowledged_result_outlives_kill_9_and_the_others_arrive_after_it() {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let mut agent = service.agent(&prepared).await;
    let stored = running(&service, &prepared, &mut agent).await;
    let other = running(&service, &prepared, &mut agent).await;
    agent.send_output_at(stored, 0, "stored\n").await;
    agent.send_output_at(other, 0, "before\n").await;
    agent.finish(stored).await;
    service.kill().await;

    let service = ServiceProcess::start(directory.path()).await;
    let path = |id: Uuid| format!("/commands/{}/{id}", prepared.server_id);
    let first = service.read(&prepared, &path(stored)).await;
    let between = service.read(&prepared, &path(other)).await;
    let mut agent = FakeAgent::holding(service.address, &prepared.key, &[other]).await;
    agent.expect_silence(1).await;
    agent.send_output_at(other, 0, "before\n").await;
    agent.send_output_at(other, 7, "after\n").await;
    agent.finish(other).await;
    let second = service.read(&prepared, &path(other)).await;

    assert_eq!((&first["status"], &first["output"]), (&json!("succeeded"), &json!("stored\n")));
    assert_eq!(between["status"], "running");
    assert_eq!((&second["status"], &second["output"]), (&json!("succeeded"), &json!("before\nafter\n")));
}

#[actix_web::test]
async fn a_batch_continues_after_kill_9() {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let (second_id, second_key) = another_server(&service, &prepared).await;
    let mut first = service.agent(&prepared).await;
    let body = json!({"command": "make", "server_ids": [prepared.server_id, second_id], "concurrency": 1});
    let batch = service.client.post("/commands").bearer(&prepared.token).json(body).expect(201).await;
    let id = first.expect_execute().await.command_id;
    service.kill().await;

    let service = ServiceProcess::start(directory.path()).await;
    let mut second = FakeAgent::online(service.address, &second_key).await;
    let mut first = FakeAgent::holding(service.address, &prepared.key, &[id]).await;
    first.expect_silence(1).await;
    second.expect_silence(1).await;
    first.finish(id).await;
    let next = second.expect_execute().await.command_id;
    second.finish(next).await;

    let path = format!("/commands/batches/{}", batch["id"].as_str().unwrap());
    let batch = crate::support::eventually("the end of the batch", || async {
        let batch = service.read(&prepared, &path).await;
        batch["finished_at"].is_string().then_some(batch)
    })
    .await;
    assert_eq!(batch["counts"]["succeeded"], 2);
}

async fn another_server(service: &ServiceProcess, prepared: &Prepared) -> (Uuid, String) {
    let call = |path, body| service.client.post(path).bearer(&prepared.token).json(body).expect(201);
    let server = call("/servers", json!({"name": "web-2", "host": "192.0.2.11"})).await;
    let id = uuid_of(&server["id"]);
    let key = call("/api-keys", json!({"server_id": id, "name": "agent"})).await;
    (id, crate::support::text_of(&key["key"]))
}
