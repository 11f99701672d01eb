//! Batches over servers whose agents are at different instances.

use actix_web::rt;
use serde_json::{Value, json};
use signalbox_protocol::agent::CommandStatus;
use uuid::Uuid;

use super::{A, B, C, Scene};
use crate::support::agent::FakeAgent;
use crate::support::commands::answered;
use crate::support::{eventually, text_of};

/// A server at each instance.
struct Troop {
    scene: Scene,
    ids: Vec<Uuid>,
    keys: Vec<String>,
    agents: Vec<FakeAgent>,
}

impl Troop {
    async fn start() -> Self {
        let scene = Scene::start().await;
        let (mut ids, mut keys, mut agents) = (Vec::new(), Vec::new(), Vec::new());
        for instance in [A, B, C] {
            let (id, key) = scene.another(&format!("of-{instance}")).await;
            agents.push(FakeAgent::online(scene.cluster.address(instance), &key).await);
            ids.push(id);
            keys.push(key);
        }
        Self { scene, ids, keys, agents }
    }

    /// A batch on all servers, begun at an instance.
    async fn begin(&self, instance: usize, concurrency: u32) -> Value {
        let body = json!({"command": "true", "server_ids": self.ids, "concurrency": concurrency});
        self.scene.post(instance, "/commands").json(body).expect(201).await
    }

    async fn finished(&self, instance: usize, batch: &Value) -> Value {
        let path = path_of(batch);
        eventually("the end of the batch", async || {
            Some(self.scene.read(instance, &path).await).filter(|batch| batch["finished_at"].is_string())
        })
        .await
    }
}

fn path_of(batch: &Value) -> String {
    format!("/commands/batches/{}", text_of(&batch["id"]))
}

fn statuses_of(batch: &Value) -> Vec<String> {
    batch["results"].as_array().unwrap().iter().map(|result| text_of(&result["status"])).collect()
}

#[actix_web::test]
async fn a_batch_runs_wherever_the_agents_are_one_after_the_other() {
    let mut troop = Troop::start().await;

    for instance in [A, C] {
        let batch = troop.begin(instance, 1).await;
        for number in [A, B, C] {
            let id = troop.agents[number].expect_execute().await.command_id;
            troop.agents[number].finish(id).await;
        }
        for reader in [A, B, C] {
            let ended = troop.finished(reader, &batch).await;
            assert_eq!(ended["counts"]["succeeded"], 3, "{instance} {reader}: {ended}");
        }
    }
    for agent in &mut troop.agents {
        agent.expect_silence(1).await;
    }
}

#[actix_web::test]
async fn a_cancel_at_another_instance_ends_what_runs_and_what_waits() {
    let mut troop = Troop::start().await;
    let batch = troop.begin(A, 2).await;
    let first = troop.agents[A].expect_execute().await.command_id;
    let second = troop.agents[B].expect_execute().await.command_id;

    let cancelling = rt::spawn(troop.scene.post(C, path_of(&batch) + "/cancel").send());
    for (number, id) in [(A, first), (B, second)] {
        troop.agents[number].expect_cancel(id).await;
        troop.agents[number].send_result(id, CommandStatus::Cancelled, Some(143)).await;
        troop.agents[number].expect_result_ack(id).await;
    }
    let answer = answered(cancelling).await;
    let ended = troop.finished(B, &batch).await;

    assert_eq!((answer.status, &answer.json()["cancelled"]), (200, &json!(true)), "{answer}");
    assert_eq!(statuses_of(&ended)[..2], ["cancelled", "cancelled"]);
    assert_eq!((&ended["counts"]["queued"], &ended["counts"]["succeeded"]), (&json!(0), &json!(0)));
    for agent in &mut troop.agents {
        agent.expect_silence(1).await;
    }
}

#[actix_web::test]
async fn a_batch_continues_when_the_instance_that_began_it_is_killed() {
    let mut troop = Troop::start().await;
    let batch = troop.begin(A, 1).await;
    let first = troop.agents[A].expect_execute().await.command_id;

    troop.scene.cluster.kill(A).await;
    let address = troop.scene.cluster.address(C);
    let mut moved = FakeAgent::holding(address, &troop.keys[A], &[first]).await;
    moved.finish(first).await;
    for number in [B, C] {
        let id = troop.agents[number].expect_execute().await.command_id;
        troop.agents[number].finish(id).await;
    }

    assert_eq!(troop.finished(C, &batch).await["counts"]["succeeded"], 3);
    for number in [B, C] {
        troop.agents[number].expect_silence(1).await;
    }
    moved.expect_silence(1).await;
}

#[actix_web::test]
async fn a_batch_that_its_instance_has_lost_continues_there() {
    let mut troop = Troop::start().await;
    let batch = troop.begin(A, 3).await;
    for agent in &mut troop.agents {
        let id = agent.expect_execute().await.command_id;
        agent.finish(id).await;
    }
    troop.finished(A, &batch).await;
    let lost = json!({"id": Uuid::now_v7()});

    // Stored by an instance that is alive and that the answer did not reach.
    let anew = |table: &str, of: &str, changes: Value| {
        let row = format!("(jsonb_populate_record(old, '{changes}'::jsonb || jsonb_build_object('id', {of}))).*");
        format!("INSERT INTO {table} SELECT {row} FROM {table} AS old")
    };
    let of_batch = anew("command_batches", &format!("'{}'", text_of(&lost["id"])), json!({"finished_at": null}));
    let waits = json!({"batch_id": lost["id"], "status": "queued", "started_at": null, "finished_at": null});
    let of_commands = anew("commands", "gen_random_uuid()", waits);
    troop.scene.cluster.storage.execute(&[&format!("{of_batch}; {of_commands}")]).await;

    for agent in &mut troop.agents {
        let id = agent.expect_execute().await.command_id;
        agent.finish(id).await;
    }
    assert_eq!(troop.finished(A, &lost).await["counts"]["succeeded"], 3);
    for agent in &mut troop.agents {
        agent.expect_silence(1).await;
    }
}
