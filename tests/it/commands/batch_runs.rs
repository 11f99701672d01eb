//! How a batch runs: how many at a time, the effect of a failure, and breaks in between.

use serde_json::{Value, json};
use signalbox_protocol::agent::{CommandStatus, Stream};

use super::batches::{Troop, statuses_of};
use crate::support::agent::FakeAgent;
use crate::support::commands::answered;
use crate::support::{text_of, uuid_of};

/// The targets of the entries of the audit log with this action.
async fn audited(troop: &Troop, action: &str) -> Vec<String> {
    let entries = troop.site.read(&format!("/audit?action={action}")).await;
    entries.as_array().unwrap().iter().map(|entry| text_of(&entry["target"])).collect()
}

#[actix_web::test]
async fn no_more_run_at_a_time_than_asked_for() {
    let mut troop = Troop::of(5).await;

    let batch = troop.start(json!({"concurrency": 2})).await;
    let first = troop.agents[0].expect_execute().await.command_id;
    let second = troop.agents[1].expect_execute().await.command_id;
    assert!(troop.executed(1).await.is_empty(), "two run, the others wait");
    assert_eq!(statuses_of(&troop.batch(&batch).await), ["running", "running", "queued", "queued", "queued"]);
    troop.agents[1].finish(second).await;
    let third = troop.agents[2].expect_execute().await.command_id;
    assert!(troop.executed(2).await.is_empty(), "one has ended, one was begun");
    troop.agents[0].finish(first).await;
    troop.agents[2].finish(third).await;
    for number in [3, 4] {
        let id = troop.agents[number].expect_execute().await.command_id;
        troop.agents[number].finish(id).await;
    }

    assert_eq!(troop.finished(&batch).await["counts"]["succeeded"], 5);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn a_failure_alone_keeps_no_other_from_running() {
    let mut troop = Troop::of(2).await;

    let batch = troop.start(json!({"concurrency": 1})).await;
    let first = troop.agents[0].expect_execute().await.command_id;
    troop.agents[0].send_result(first, CommandStatus::Failed, Some(1)).await;
    let second = troop.agents[1].expect_execute().await.command_id;
    troop.agents[1].finish(second).await;

    assert_eq!(statuses_of(&troop.finished(&batch).await), ["failed", "succeeded"]);
}

#[actix_web::test]
async fn after_a_failure_the_rest_is_skipped_when_asked_for() {
    for status in [CommandStatus::Failed, CommandStatus::TimedOut, CommandStatus::Lost] {
        let mut troop = Troop::of(4).await;

        let batch = troop.start(json!({"concurrency": 2, "stop_on_failure": true})).await;
        let first = troop.agents[0].expect_execute().await.command_id;
        let second = troop.agents[1].expect_execute().await.command_id;
        troop.agents[0].send_result(first, status, Some(1)).await;
        troop.agents[0].expect_result_ack(first).await;
        assert!(troop.executed(1).await.is_empty(), "no other is begun");
        troop.agents[1].finish(second).await;
        let batch = troop.finished(&batch).await;

        assert_eq!(statuses_of(&batch), [status.name(), "succeeded", "skipped", "skipped"]);
        assert_eq!(batch["counts"]["skipped"], 2);
        assert_eq!(batch["results"][3]["exit_code"], Value::Null);
        troop.expect_silence().await;
    }
}

#[actix_web::test]
async fn a_server_without_its_agent_fails_by_itself() {
    let mut troop = Troop::of(3).await;
    let (offline_id, _) = troop.site.service.server_with_key(&troop.site.owner, "offline").await;

    let batch = troop.start(json!({"server_ids": [troop.ids[0], offline_id, troop.ids[1]], "concurrency": 1})).await;
    for number in [0, 1] {
        let id = troop.agents[number].expect_execute().await.command_id;
        troop.agents[number].finish(id).await;
    }
    let batch = troop.finished(&batch).await;

    assert_eq!(statuses_of(&batch), ["succeeded", "failed", "succeeded"]);
    assert_eq!(batch["results"][1]["error"]["code"], "agent_offline");
    troop.expect_silence().await;
}

#[actix_web::test]
async fn a_batch_of_servers_without_agents_ends() {
    let troop = Troop::of(1).await;
    let mut offline = Vec::new();
    for number in 0..5 {
        offline.push(troop.site.service.server(&troop.site.owner, &format!("offline-{number}")).await);
    }

    let all = troop.start(json!({"server_ids": offline, "concurrency": 2})).await;
    let stopped = troop.start(json!({"server_ids": offline, "concurrency": 1, "stop_on_failure": true})).await;

    assert_eq!(troop.finished(&all).await["counts"]["failed"], 5);
    let statuses = statuses_of(&troop.finished(&stopped).await);
    assert_eq!(statuses, ["failed", "skipped", "skipped", "skipped", "skipped"]);
}

#[actix_web::test]
async fn an_agent_that_refuses_fails_by_itself() {
    let mut troop = Troop::of(2).await;

    let batch = troop.start(json!({"concurrency": 1})).await;
    let id = troop.agents[0].expect_execute().await.command_id;
    troop.agents[0].refuse(id, "agent_refused", "not here").await;
    let id = troop.agents[1].expect_execute().await.command_id;
    troop.agents[1].finish(id).await;
    let batch = troop.finished(&batch).await;

    assert_eq!(statuses_of(&batch), ["failed", "succeeded"]);
    assert_eq!(batch["results"][0]["error"], json!({"code": "agent_refused", "detail": "not here"}));
}

#[actix_web::test]
async fn a_cancel_ends_what_runs_and_what_waits() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 1})).await;
    let id = troop.agents[0].expect_execute().await.command_id;

    let path = format!("/commands/batches/{}/cancel", text_of(&batch["id"]));
    let cancelling = actix_web::rt::spawn(troop.site.post(&path).send());
    troop.agents[0].expect_cancel(id).await;
    troop.agents[0].send_result(id, CommandStatus::Cancelled, Some(143)).await;
    troop.agents[0].expect_result_ack(id).await;
    let answer = answered(cancelling).await;
    let batch = troop.finished(&batch).await;

    assert_eq!((answer.status, &answer.json()["cancelled"]), (200, &json!(true)), "{answer}");
    assert_eq!(batch["cancelled"], true);
    assert_eq!(text_of(&batch["results"][0]["status"]), "cancelled");
    let counts = &batch["counts"];
    assert_eq!((&counts["queued"], &counts["running"], &counts["succeeded"]), (&json!(0), &json!(0), &json!(0)));
    troop.expect_silence().await;
    // A repetition changes nothing.
    assert_eq!(troop.site.post(&path).expect(200).await, batch);
}

#[actix_web::test]
async fn a_batch_that_has_ended_cannot_be_cancelled_any_more() {
    let mut troop = Troop::of(1).await;
    let batch = troop.start(json!({})).await;
    let id = troop.agents[0].expect_execute().await.command_id;
    troop.agents[0].finish(id).await;
    let before = troop.finished(&batch).await;

    let path = format!("/commands/batches/{}/cancel", text_of(&batch["id"]));
    let after = troop.site.post(&path).expect(200).await;

    assert_eq!((&after["results"], &after["counts"]), (&before["results"], &before["counts"]));
    assert_eq!((&after["cancelled"], &after), (&json!(false), &before));
    assert_eq!(troop.site.read("/audit?action=batch.cancel").await, json!([]));
    troop.expect_silence().await;
}

#[actix_web::test]
async fn a_cancel_that_is_repeated_stands_in_the_audit_log_once() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 2})).await;
    let first = troop.agents[0].expect_execute().await.command_id;
    let second = troop.agents[1].expect_execute().await.command_id;

    let path = format!("/commands/batches/{}/cancel", text_of(&batch["id"]));
    for _ in 0..3 {
        assert_eq!(troop.site.post(&path).expect(200).await["cancelled"], true);
    }

    assert_eq!(audited(&troop, "batch.cancel").await, [text_of(&batch["id"])]);
    let mut cancelled = audited(&troop, "command.cancel").await;
    cancelled.sort();
    assert_eq!(cancelled, [first.to_string(), second.to_string()], "their ids are in the order of the servers");
    for (number, id) in [(0, first), (1, second)] {
        troop.agents[number].expect_cancel(id).await;
        troop.agents[number].send_result(id, CommandStatus::Cancelled, Some(143)).await;
        troop.agents[number].expect_result_ack(id).await;
    }
    assert_eq!(statuses_of(&troop.finished(&batch).await), ["cancelled", "cancelled", "cancelled"]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn a_cancel_whose_commit_was_not_answered_is_completed_by_its_repetition() {
    let mut troop = Troop::of(2).await;
    let batch = troop.start(json!({"concurrency": 1})).await;
    let first = troop.agents[0].expect_execute().await.command_id;
    // As the first attempt left it.
    troop.site.service.storage().execute(&["UPDATE command_batches SET is_cancelled = TRUE"]).await;

    let path = format!("/commands/batches/{}/cancel", text_of(&batch["id"]));
    troop.site.post(&path).expect(200).await;

    troop.agents[0].expect_cancel(first).await;
    assert_eq!(audited(&troop, "command.cancel").await, [first.to_string()]);
    troop.agents[0].send_result(first, CommandStatus::Cancelled, Some(143)).await;
    troop.agents[0].expect_result_ack(first).await;
    assert_eq!(statuses_of(&troop.finished(&batch).await), ["cancelled", "cancelled"]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn one_that_waits_can_be_cancelled_by_itself() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 1})).await;
    let first = troop.agents[0].expect_execute().await.command_id;
    let waiting = uuid_of(&batch["results"][1]["command_id"]);

    let path = format!("/commands/{}/{waiting}/cancel", troop.ids[1]);
    let cancelled = troop.site.post(path).expect(200).await;
    troop.agents[0].finish(first).await;
    let third = troop.agents[2].expect_execute().await.command_id;
    troop.agents[2].finish(third).await;

    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(statuses_of(&troop.finished(&batch).await), ["succeeded", "cancelled", "succeeded"]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn after_a_restart_what_waited_runs_once_and_what_ran_is_not_sent_again() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 1})).await;
    let first = troop.agents[0].expect_execute().await.command_id;

    let site = troop.site.restart().await;
    let mut agents = vec![site.agent_holding(&[first]).await];
    for key in &troop.keys[1..] {
        agents.push(FakeAgent::online(site.service.address, key).await);
    }
    let mut troop = Troop { site, agents, ..troop };
    assert!(troop.executed(1).await.is_empty(), "the one that runs has its turn still");
    troop.agents[0].finish(first).await;
    for number in [1, 2] {
        let id = troop.agents[number].expect_execute().await.command_id;
        troop.agents[number].finish(id).await;
    }

    assert_eq!(troop.finished(&batch).await["counts"]["succeeded"], 3);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn after_a_restart_a_batch_waits_for_agents_to_come_back() {
    let mut troop = Troop::of(2).await;
    let batch = troop.start(json!({"concurrency": 1})).await;
    let first = troop.agents[0].expect_execute().await.command_id;

    // Its turn comes while its agent is still reconnecting.
    let site = troop.site.restart().await;
    let mut agent = site.agent_holding(&[first]).await;
    agent.finish(first).await;
    agent.settle(1).await;
    let late = FakeAgent::online(site.service.address, &troop.keys[1]).await;
    let mut troop = Troop { site, agents: vec![agent, late], ..troop };
    let second = troop.agents[1].expect_execute().await.command_id;
    troop.agents[1].finish(second).await;

    assert_eq!(statuses_of(&troop.finished(&batch).await), ["succeeded", "succeeded"]);
}

#[actix_web::test]
async fn a_server_that_is_deleted_during_a_batch_delays_no_other() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 1})).await;
    troop.agents[0].expect_execute().await;

    troop.site.delete_server().await;
    troop
        .site
        .service
        .client
        .delete(format!("/servers/{}", troop.ids[1]))
        .bearer(&troop.site.owner.token)
        .expect(200)
        .await;
    let id = troop.agents[2].expect_execute().await.command_id;
    troop.agents[2].finish(id).await;

    assert_eq!(troop.finished(&batch).await["counts"]["succeeded"], 1);
}

#[actix_web::test]
async fn a_server_that_is_deleted_before_its_turn_is_no_failure() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 1, "stop_on_failure": true})).await;
    let first = troop.agents[0].expect_execute().await.command_id;

    let path = format!("/servers/{}", troop.ids[1]);
    troop.site.service.client.delete(path).bearer(&troop.site.owner.token).expect(200).await;
    troop.agents[0].finish(first).await;
    let third = troop.agents[2].expect_execute().await.command_id;
    troop.agents[2].finish(third).await;

    assert_eq!(statuses_of(&troop.finished(&batch).await), ["succeeded", "succeeded"]);
}

#[actix_web::test]
async fn the_beginning_of_long_output_is_shown() {
    let mut troop = Troop::of(1).await;
    let batch = troop.start(json!({})).await;
    let id = troop.agents[0].expect_execute().await.command_id;
    troop.agents[0].send_output(id, Stream::Stdout, &"漢".repeat(10_000)).await;
    troop.agents[0].finish(id).await;

    let batch = troop.finished(&batch).await;

    let preview = text_of(&batch["results"][0]["preview"]);
    assert!(preview.len() <= 4_096 && preview.len() > 4_000, "{}", preview.len());
    assert!(preview.chars().all(|character| character == '漢'), "no character is cut");
}
