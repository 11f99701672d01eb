//! A graceful restart of the service while commands run.

use serde_json::{Value, json};
use signalbox_protocol::agent::CommandStatus;

use crate::support::agent::FakeAgent;
use crate::support::commands::answered;
use crate::support::eventually;
use crate::support::site::Site;

#[actix_web::test]
async fn the_result_of_a_command_arrives_after_a_restart() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "make").await;
    agent.send_output_at(id, 0, "one\n").await;
    agent.settle(1).await;

    let site = site.restart().await;
    let between = site.command(id).await;
    let mut agent = site.agent_holding(&[id]).await;
    agent.expect_silence(1).await;
    agent.send_output_at(id, 0, "one\n").await;
    agent.send_output_at(id, 4, "two\n").await;
    agent.finish(id).await;

    assert_eq!((&between["status"], &between["exit_code"]), (&json!("running"), &Value::Null));
    let result = site.command(id).await;
    assert_eq!((&result["status"], &result["output"]), (&json!("succeeded"), &json!("one\ntwo\n")));
    assert_eq!(result["started_at"], between["started_at"]);
}

#[actix_web::test]
async fn a_result_that_was_not_acknowledged_is_taken_after_a_restart() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    drop(agent);

    let site = site.restart().await;
    // This agent does not say what it holds, like one that is a version older.
    let mut agent = FakeAgent::online(site.service.address, &site.key).await;
    agent.finish(id).await;
    agent.finish(id).await;

    assert_eq!(site.command(id).await["status"], "succeeded");
    assert_eq!(site.commands().await.len(), 1);
}

#[actix_web::test]
async fn a_command_that_its_agent_does_not_hold_after_a_restart_is_lost() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;

    let site = site.restart().await;
    let mut agent = site.agent_holding(&[]).await;

    site.until_command(id, "lost").await;
    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn a_command_can_be_cancelled_after_a_restart() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "sleep 1000").await;

    let site = site.restart().await;
    let mut agent = site.agent_holding(&[id]).await;
    let cancelling = site.cancel(id);
    agent.expect_cancel(id).await;
    agent.send_result(id, CommandStatus::Cancelled, Some(143)).await;

    let answer = answered(cancelling).await;
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("cancelled")), "{answer}");
}

#[actix_web::test]
async fn a_cancel_after_a_restart_reaches_an_agent_that_comes_later() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "sleep 1000").await;
    drop(agent);

    let site = site.restart().await;
    let cancelling = site.cancel(id);
    let jobs = &site.service.state.jobs;
    eventually("the cancel is taken in", async || {
        jobs.find(site.server_id, id).filter(|job| job.is_cancel_requested())
    })
    .await;
    let mut agent = site.agent_holding(&[id]).await;
    agent.expect_cancel(id).await;
    agent.send_result(id, CommandStatus::Cancelled, Some(143)).await;

    assert_eq!(answered(cancelling).await.status, 200);
    site.until_command(id, "cancelled").await;
}

#[actix_web::test]
async fn commands_that_run_through_a_restart_count_as_running() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut ids = Vec::new();
    for _ in 0..256 {
        ids.push(site.running(&mut agent, "true").await);
    }

    let site = site.restart().await;
    let mut agent = site.agent_holding(&ids).await;
    agent.settle(1).await;

    let one_more = site.post(site.commands_path()).json(json!({"command": "one more"}));
    one_more.expect_error(503, "busy").await;
    agent.finish(ids[0]).await;
    site.running(&mut agent, "now").await;
}
