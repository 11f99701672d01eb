//! Batches that nobody runs continue as intended: those of an earlier run of the service, and lost ones.

use serde_json::json;
use signalbox_protocol::agent::CommandStatus;

use super::batches::{Troop, statuses_of};
use crate::support::agent::FakeAgent;
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
