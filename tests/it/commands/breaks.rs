//! Connections that break while a command runs: it continues, and its result arrives when the agent is back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signalbox_protocol::agent::Stream;

use crate::support::agent::FakeAgent;
use crate::support::commands::answered;
use crate::support::eventually;
use crate::support::site::Site;

#[actix_web::test]
async fn a_waiting_caller_gets_the_result_of_an_agent_that_came_back() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let pending = site.run("make");
    let id = agent.expect_execute().await.command_id;
    agent.send_output_at(id, 0, "one\n").await;
    agent.settle(1).await;

    agent.socket.abort();
    site.until_status("offline").await;
    let mut agent = site.agent_holding(&[id]).await;
    agent.send_output_at(id, 4, "two\n").await;
    agent.finish(id).await;
    let answer = answered(pending).await;

    assert_eq!(answer.status, 200, "{answer}");
    let result = answer.json();
    assert_eq!((&result["status"], &result["output"]), (&json!("succeeded"), &json!("one\ntwo\n")));
}

#[actix_web::test]
async fn a_waiting_caller_learns_that_the_agent_is_gone() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let began = Instant::now();
    // In that time the service notices that the agent is gone.
    let pending = site.run_body("?wait=30", json!({"command": "make"}));
    let id = agent.expect_execute().await.command_id;

    agent.socket.abort();
    let answer = answered(pending).await;

    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("agent_disconnected")), "{answer}");
    assert!(began.elapsed() >= Duration::from_secs(30), "it was waited for");
    assert_eq!(site.command(id).await["status"], "running");
    let mut agent = site.agent_holding(&[id]).await;
    agent.finish(id).await;
    assert_eq!(site.command(id).await["status"], "succeeded");
}

#[actix_web::test]
async fn an_agent_that_is_back_and_still_busy_is_no_disconnection() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    // The agent is back in that time.
    let pending = site.run_body("?wait=30", json!({"command": "make"}));
    let id = agent.expect_execute().await.command_id;

    agent.socket.abort();
    let mut agent = site.agent_holding(&[id]).await;
    let answer = answered(pending).await;

    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("running")), "{answer}");
    agent.finish(id).await;
}

#[actix_web::test]
async fn a_command_is_not_sent_again_to_an_agent_that_came_back() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    agent.socket.abort();

    // One that does not say what it holds, and one that does.
    let mut silent = site.agent().await;
    silent.expect_silence(1).await;
    silent.socket.abort();
    let mut agent = site.agent_holding(&[id]).await;
    agent.expect_silence(2).await;

    agent.finish(id).await;
    assert_eq!(site.command(id).await["status"], "succeeded");
}

#[actix_web::test]
async fn a_command_that_its_agent_does_not_hold_is_lost() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let pending = site.run("true");
    let id = agent.expect_execute().await.command_id;
    agent.settle(1).await;
    agent.socket.abort();

    let mut agent = site.agent_holding(&[]).await;
    let answer = answered(pending).await;

    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("lost")), "{answer}");
    let command = site.command(id).await;
    assert_eq!((&command["status"], &command["exit_code"]), (&json!("lost"), &Value::Null));
    assert!(command["finished_at"].is_string(), "{command}");
    agent.expect_silence(1).await;
    assert_eq!(site.commands().await[0]["status"], "lost");
}

#[actix_web::test]
async fn what_one_agent_does_not_hold_is_another_agents_business() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;

    let mut other = FakeAgent::holding(site.service.address, &other_key, &[]).await;
    other.settle(1).await;

    assert_eq!(site.command(id).await["status"], "running");
    agent.finish(id).await;
    assert_eq!(site.command(id).await["status"], "succeeded");
}

#[actix_web::test]
async fn only_what_is_not_held_is_lost() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let held = site.running(&mut agent, "held").await;
    let lost = site.running(&mut agent, "lost").await;
    agent.socket.abort();

    let mut agent = site.agent_holding(&[held]).await;
    site.until_command(lost, "lost").await;

    assert_eq!(site.command(held).await["status"], "running");
    agent.finish(held).await;
    assert_eq!(site.command(held).await["status"], "succeeded");
}

#[actix_web::test]
async fn a_second_connection_of_the_agent_takes_its_commands_over() {
    let site = Site::start().await;
    let mut first = site.agent().await;
    let pending = site.run("true");
    let id = first.expect_execute().await.command_id;
    first.send_output(id, Stream::Stdout, "first ").await;
    first.settle(1).await;

    let mut second = site.agent_holding(&[id]).await;
    first.expect_close(4409).await;
    second.send_output_at(id, 6, "second").await;
    second.finish(id).await;

    let answer = answered(pending).await;
    assert_eq!((answer.status, &answer.json()["output"]), (200, &json!("first second")), "{answer}");
}

#[actix_web::test]
async fn a_result_is_acknowledged_as_often_as_it_is_sent() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    agent.finish(id).await;
    let before = site.command(id).await;

    agent.finish(id).await;
    agent.socket.abort();
    let mut agent = site.agent_holding(&[id]).await;
    agent.finish(id).await;

    assert_eq!(site.command(id).await, before);
    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn an_agent_that_claims_to_hold_more_than_there_is_does_no_harm() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    agent.socket.abort();
    let claimed: Vec<_> = (0..200).map(|_| uuid::Uuid::now_v7()).chain([id]).collect();

    let mut agent = site.agent_holding(&claimed).await;

    assert_eq!(site.command(id).await["status"], "running");
    agent.finish(id).await;
    assert_eq!(site.command(id).await["status"], "succeeded");
}

#[actix_web::test]
async fn breaks_leave_room_for_other_commands() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    for _ in 0..64 {
        site.running(&mut agent, "true").await;
    }
    agent.socket.abort();
    let mut agent = site.agent_holding(&[]).await;
    eventually("all are lost", || async {
        site.commands().await.iter().all(|command| command["status"] == "lost").then_some(())
    })
    .await;

    let id = site.running(&mut agent, "after").await;

    agent.finish(id).await;
}
