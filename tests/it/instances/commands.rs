//! Commands that are sent to one instance and run by the agent at another.

use std::collections::HashSet;
use std::time::Duration;

use actix_web::rt::{self, time::sleep};
use sea_orm::{ConnectionTrait, Database, TransactionTrait};
use serde_json::{Value, json};
use signalbox_protocol::agent::{CommandStatus, ServiceMessage, Stream};
use uuid::Uuid;

use super::{A, B, C, Scene};
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::commands::{Pending, answered};
use crate::support::dashboard::Dashboard;
use crate::support::{eventually, text_of, uuid_of};

const MEBIBYTE: usize = 1 << 20;

/// How often an instance forgets what nobody needs there.
const FORGETS_EVERY: Duration = Duration::from_secs(1);

impl Scene {
    fn commands_path(&self) -> String {
        format!("/commands/{}", self.server_id())
    }

    /// Runs a command in the background.
    pub fn run(&self, instance: usize, command: &str) -> Pending {
        rt::spawn(self.post(instance, self.commands_path()).json(json!({ "command": command })).send())
    }

    /// A command, sent to an instance, that its agent has just begun.
    pub async fn running(&self, instance: usize, agent: &mut FakeAgent, command: &str) -> Uuid {
        let call = self.post(instance, self.commands_path() + "?wait=0").json(json!({ "command": command }));
        let id = uuid_of(&call.expect(200).await["command_id"]);
        assert_eq!(agent.expect_execute().await.command_id, id);
        id
    }

    pub async fn command(&self, instance: usize, id: Uuid) -> Value {
        self.read(instance, &format!("{}/{id}", self.commands_path())).await
    }

    /// The command as soon as an instance shows this status.
    pub async fn until_command(&self, instance: usize, id: Uuid, status: &str) -> Value {
        eventually(&format!("the command is {status} at {instance}"), async || {
            Some(self.command(instance, id).await).filter(|command| command["status"] == status)
        })
        .await
    }

    async fn reader(&self, instance: usize, id: Uuid) -> Dashboard {
        self.open(instance, &format!("/api/v1/ws/commands/{}/{id}", self.server_id())).await
    }

    pub async fn agent_holding(&self, instance: usize, commands: &[Uuid]) -> FakeAgent {
        FakeAgent::holding(self.cluster.address(instance), &self.prepared.key, commands).await
    }
}

#[actix_web::test]
async fn a_waiting_caller_gets_the_result() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    for instance in [A, B, C] {
        let waiting = scene.run(instance, "make");
        let execute = agent.expect_execute().await;
        assert_eq!(execute.asker.map(|asker| asker.user), Some("owner".to_owned()));
        agent.send_output(execute.command_id, Stream::Stdout, "one\n").await;
        agent.send_output(execute.command_id, Stream::Stderr, "two\n").await;
        agent.send_result(execute.command_id, CommandStatus::Failed, Some(3)).await;
        let answer = answered(waiting).await;
        agent.expect_result_ack(execute.command_id).await;

        assert_eq!(answer.status, 200, "{instance}: {answer}");
        let result = answer.json();
        assert_eq!((&result["status"], &result["exit_code"]), (&json!("failed"), &json!(3)), "{instance}");
        assert_eq!((&result["output"], &result["stderr"]), (&json!("one\ntwo\n"), &json!("two\n")), "{instance}");
        for reader in [A, B, C] {
            assert_eq!(scene.until_command(reader, execute.command_id, "failed").await, result, "{instance} {reader}");
        }
    }
}

#[actix_web::test]
async fn the_result_is_found_later_and_in_the_history_of_every_instance() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let first = scene.running(A, &mut agent, "first").await;
    let second = scene.running(C, &mut agent, "second").await;
    assert_eq!(scene.command(A, first).await["status"], "running");

    agent.finish(first).await;
    agent.finish(second).await;

    for instance in [A, B, C] {
        for id in [first, second] {
            scene.until_command(instance, id, "succeeded").await;
        }
        let history = scene.read(instance, &scene.commands_path()).await;
        let told: Vec<_> = history.as_array().unwrap().iter().map(|row| text_of(&row["command"])).collect();
        assert_eq!(told, ["second", "first"], "{instance}");
        assert_eq!(history[0]["username"], "owner");
    }
}

#[actix_web::test]
async fn readers_at_every_instance_see_it_run() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let id = scene.running(A, &mut agent, "make").await;
    agent.send_output(id, Stream::Stdout, "one\n").await;
    let mut readers = Vec::new();
    for instance in [A, B, C] {
        let mut reader = scene.reader(instance, id).await;
        let one = json!({"stream": "stdout", "data": "one\n", "offset": 0});
        assert_eq!(reader.expect("output").await, one, "{instance}");
        readers.push(reader);
    }

    agent.send_output(id, Stream::Stderr, "two\n").await;
    for reader in &mut readers {
        assert_eq!(reader.expect("output").await, json!({"stream": "stderr", "data": "two\n", "offset": 4}));
    }
    agent.send_result(id, CommandStatus::Failed, Some(3)).await;

    for mut reader in readers {
        let result = reader.expect("result").await;
        assert_eq!((&result["status"], &result["exit_code"]), (&json!("failed"), &json!(3)));
        reader.expect_close(1000).await;
    }
}

#[actix_web::test]
async fn what_came_so_far_is_read_everywhere() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let id = scene.running(A, &mut agent, "make").await;
    agent.send_output(id, Stream::Stdout, "so far\n").await;

    for instance in [A, B, C] {
        eventually(&format!("the output is read at {instance}"), async || {
            (scene.command(instance, id).await["output"] == "so far\n").then_some(())
        })
        .await;
    }

    // By then nobody needed it at an instance that received it, which has forgotten it.
    sleep(3 * FORGETS_EVERY).await;
    for instance in [A, B, C] {
        assert_eq!(scene.command(instance, id).await["output"], "so far\n", "at {instance}");
    }
    agent.send_output(id, Stream::Stdout, "and more\n").await;
    agent.finish(id).await;
    for instance in [A, B, C] {
        assert_eq!(
            scene.until_command(instance, id, "succeeded").await["output"],
            "so far\nand more\n",
            "at {instance}"
        );
    }
}

#[actix_web::test]
async fn a_cancel_at_a_third_instance_reaches_the_agent_and_the_waiting_caller() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let waiting = scene.run(A, "sleep 1000");
    let id = agent.expect_execute().await.command_id;

    let cancelling = rt::spawn(scene.post(C, format!("{}/{id}/cancel", scene.commands_path())).send());
    agent.expect_cancel(id).await;
    agent.send_output(id, Stream::Stderr, "terminated\n").await;
    agent.send_result(id, CommandStatus::Cancelled, Some(143)).await;
    let (cancelled, waited) = (answered(cancelling).await, answered(waiting).await);

    assert_eq!((cancelled.status, waited.status), (200, 200), "{cancelled} {waited}");
    let result = cancelled.json();
    assert_eq!((&result["status"], &result["exit_code"]), (&json!("cancelled"), &json!(143)));
    assert_eq!(result["output"], "terminated\n");
    assert_eq!(waited.json(), result);
}

#[actix_web::test]
async fn a_mebibyte_goes_in_and_a_mebibyte_comes_out() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    // The largest accepted request has a mebibyte.
    let stdin = "y".repeat(MEBIBYTE - 100);
    let body = json!({"command": "cat", "stdin": stdin});
    let waiting = rt::spawn(scene.post(A, scene.commands_path()).json(body).send());
    let execute = agent.expect_execute().await;
    assert!(execute.stdin == Some(stdin));

    let piece = "0123456789abcdef".repeat(4_096);
    for number in 0..MEBIBYTE / piece.len() {
        agent.send_output_at(execute.command_id, (number * piece.len()) as u64, &piece).await;
    }
    agent.finish(execute.command_id).await;
    let result = answered(waiting).await.json();

    let output = text_of(&result["output"]);
    assert_eq!((output.len(), &result["truncated"]), (MEBIBYTE, &json!(false)));
    assert!(output == piece.repeat(MEBIBYTE / piece.len()));
    assert!(scene.until_command(C, execute.command_id, "succeeded").await["output"] == output.as_str());
}

#[actix_web::test]
async fn a_refusal_is_reported() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    let waiting = scene.run(A, "true");
    let id = agent.expect_execute().await.command_id;
    agent.refuse(id, "agent_refused", "commands are off here").await;
    let answer = answered(waiting).await;

    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("agent_refused")), "{answer}");
    assert_eq!(answer.json()["detail"], "commands are off here");
}

#[actix_web::test]
async fn without_an_agent_anywhere_it_is_offline() {
    let scene = Scene::start().await;

    for instance in [A, B, C] {
        let call = scene.post(instance, scene.commands_path()).json(json!({"command": "true"}));
        call.expect_error(400, "agent_offline").await;
    }
}

#[actix_web::test]
async fn a_waiting_caller_gets_the_result_of_an_agent_that_came_back_elsewhere() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let waiting = scene.run(A, "make");
    let id = agent.expect_execute().await.command_id;
    agent.send_output_at(id, 0, "one\n").await;
    agent.settle(1).await;

    agent.socket.abort();
    scene.until_status(A, "offline").await;
    let mut agent = scene.agent_holding(C, &[id]).await;
    agent.send_output_at(id, 0, "one\n").await;
    agent.send_output_at(id, 4, "two\n").await;
    agent.finish(id).await;
    let answer = answered(waiting).await;

    assert_eq!(answer.status, 200, "{answer}");
    let result = answer.json();
    assert_eq!((&result["status"], &result["output"]), (&json!("succeeded"), &json!("one\ntwo\n")));
}

#[actix_web::test]
async fn what_an_agent_lost_on_its_way_to_another_instance_is_lost() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let waiting = scene.run(A, "true");
    agent.expect_execute().await;
    agent.settle(1).await;
    agent.socket.abort();

    let mut agent = scene.agent_holding(C, &[]).await;
    let answer = answered(waiting).await;

    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("lost")), "{answer}");
    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn a_command_is_not_sent_again_to_an_agent_that_moved() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let id = scene.running(A, &mut agent, "true").await;

    for instance in [C, A, B] {
        let mut moved = scene.agent_holding(instance, &[id]).await;
        moved.expect_silence(1).await;
        agent = moved;
    }
    agent.finish(id).await;

    scene.until_command(A, id, "succeeded").await;
}

#[actix_web::test]
async fn invented_results_leave_connections_to_the_database_to_others() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(A).await;
    let (_, key) = scene.another("web-2").await;
    let mut bystander = FakeAgent::online(scene.cluster.address(A), &key).await;
    let connection = Database::connect(scene.cluster.storage.direct_url()).await.unwrap();
    let holder = connection.begin().await.unwrap();
    // Until it is released, each look-up of a command keeps its connection.
    holder.execute_unprepared("LOCK TABLE commands").await.unwrap();
    let invented: Vec<Uuid> = (0..1_000).map(|_| Uuid::now_v7()).collect();

    for id in &invented {
        agent.send_result(*id, CommandStatus::Succeeded, Some(0)).await;
    }
    agent.expect_silence(1).await;
    bystander.store(1, vec![sample_aged(1)]).await;
    holder.rollback().await.unwrap();

    let mut settled = HashSet::new();
    while settled.len() < 256 {
        match agent.next().await {
            ServiceMessage::ResultAck { command_id } => settled.insert(command_id),
            other => panic!("expected a result_ack, got {other:?}"),
        };
    }
    let taken_in: HashSet<Uuid> = invented[..256].iter().copied().collect();
    assert_eq!(settled, taken_in);
    // The others were not.
    agent.finish(invented[999]).await;
}
