//! Batches that nobody runs continue as intended: those of an earlier run of the service, and lost ones.

use serde_json::json;
use signalbox_protocol::agent::CommandStatus;

use super::batches::{Troop, statuses_of};
use crate::support::agent::FakeAgent;
use crate::support::commands::answered;
use crate::support::text_of;

/// The agents after a restart of the service; the first one holds its command, the others have not received any.
async fn restarted(troop: Troop, held: &[uuid::Uuid]) -> Troop {
    let site = troop.site.restart().await;
    let mut agents = vec![site.agent_holding(held).await];
    for key in &troop.keys[1..] {
        agents.push(FakeAgent::online(site.service.address, key).await);
    }
    Troop { site, agents, ..troop }
}

#[actix_web::test]
async fn a_failure_after_a_restart_stops_what_was_to_stop() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 1, "stop_on_failure": true})).await;
    let first = troop.agents[0].expect_execute().await.command_id;

    let mut troop = restarted(troop, &[first]).await;
    troop.agents[0].send_result(first, CommandStatus::Failed, Some(1)).await;
    troop.agents[0].expect_result_ack(first).await;

    assert_eq!(statuses_of(&troop.finished(&batch).await), ["failed", "skipped", "skipped"]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn what_was_cancelled_while_it_waited_is_no_failure_after_a_restart() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 1, "stop_on_failure": true})).await;
    let first = troop.agents[0].expect_execute().await.command_id;
    let waiting = text_of(&batch["results"][1]["command_id"]);
    let cancelled = troop.site.post(format!("/commands/{}/{waiting}/cancel", troop.ids[1])).expect(200).await;
    assert_eq!(cancelled["status"], "cancelled");

    let mut troop = restarted(troop, &[first]).await;
    troop.agents[0].finish(first).await;
    let third = troop.agents[2].expect_execute().await.command_id;
    troop.agents[2].finish(third).await;

    assert_eq!(statuses_of(&troop.finished(&batch).await), ["succeeded", "cancelled", "succeeded"]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn what_was_cancelled_while_it_ran_is_a_failure_after_a_restart() {
    let mut troop = Troop::of(3).await;
    let batch = troop.start(json!({"concurrency": 2, "stop_on_failure": true})).await;
    let first = troop.agents[0].expect_execute().await.command_id;
    let second = troop.agents[1].expect_execute().await.command_id;
    let cancelling = troop.site.cancel(first);
    troop.agents[0].expect_cancel(first).await;
    troop.agents[0].send_result(first, CommandStatus::Cancelled, Some(143)).await;
    troop.agents[0].expect_result_ack(first).await;
    assert_eq!(answered(cancelling).await.json()["status"], "cancelled");

    // As if the service had stopped before it skipped the third one.
    let waits = "UPDATE commands SET status = 'queued', finished_at = NULL WHERE status = 'skipped'";
    let site = troop.site.restart_after(&[waits]).await;
    let mut agents =
        vec![site.agent().await, FakeAgent::holding(site.service.address, &troop.keys[1], &[second]).await];
    agents.push(FakeAgent::online(site.service.address, &troop.keys[2]).await);
    let mut troop = Troop { site, agents, ..troop };
    troop.agents[1].finish(second).await;

    assert_eq!(statuses_of(&troop.finished(&batch).await), ["cancelled", "succeeded", "skipped"]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn what_its_agent_lost_in_a_restart_makes_room() {
    let mut troop = Troop::of(2).await;
    let batch = troop.start(json!({"concurrency": 1})).await;
    troop.agents[0].expect_execute().await;

    let mut troop = restarted(troop, &[]).await;
    let second = troop.agents[1].expect_execute().await.command_id;
    troop.agents[1].finish(second).await;

    assert_eq!(statuses_of(&troop.finished(&batch).await), ["lost", "succeeded"]);
}

#[actix_web::test]
async fn a_batch_that_was_called_off_is_so_after_a_restart() {
    let mut troop = Troop::of(2).await;
    let batch = troop.start(json!({"concurrency": 1})).await;
    let first = troop.agents[0].expect_execute().await.command_id;
    let cancel = format!("/commands/batches/{}/cancel", text_of(&batch["id"]));
    troop.site.post(cancel).expect(200).await;
    troop.agents[0].expect_cancel(first).await;

    // The agent was about to end it.
    let mut troop = restarted(troop, &[first]).await;
    troop.agents[0].expect_cancel(first).await;
    troop.agents[0].send_result(first, CommandStatus::Cancelled, Some(143)).await;
    troop.agents[0].expect_result_ack(first).await;

    assert_eq!(statuses_of(&troop.finished(&batch).await), ["cancelled", "cancelled"]);
    troop.expect_silence().await;
}

#[actix_web::test]
async fn a_batch_whose_commit_was_not_answered_runs_without_a_restart() {
    let mut troop = Troop::of(2).await;
    let batch = troop.start(json!({})).await;
    for agent in &mut troop.agents {
        let id = agent.expect_execute().await.command_id;
        agent.finish(id).await;
    }
    troop.finished(&batch).await;

    // As it was stored. Its commands come first: a batch that has ended is not looked at.
    let waits = "UPDATE commands SET status = 'queued', started_at = NULL, finished_at = NULL";
    let begins = "UPDATE command_batches SET finished_at = NULL";
    troop.site.service.storage().execute(&[waits, begins]).await;

    for agent in &mut troop.agents {
        let id = agent.expect_execute().await.command_id;
        agent.finish(id).await;
    }
    assert_eq!(statuses_of(&troop.finished(&batch).await), ["succeeded", "succeeded"]);
    troop.expect_silence().await;
}
