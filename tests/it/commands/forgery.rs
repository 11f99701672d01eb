//! Results that an agent makes up: they change nothing, and it may forget them.

use serde_json::json;
use signalbox_protocol::agent::{CommandStatus, ServiceMessage, Stream};
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::commands::answered;
use crate::support::site::Site;

#[actix_web::test]
async fn a_result_of_no_command_is_acknowledged_and_nothing_else() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    for id in [Uuid::now_v7(), Uuid::nil(), site.server_id] {
        agent.send_output(id, Stream::Stdout, "stray").await;
        agent.finish(id).await;
    }

    assert!(site.commands().await.is_empty());
    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn another_servers_agent_cannot_speak_for_a_command() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let (_, strange_key) = site.service.server_with_key(&stranger, "web-3").await;
    let (_, other_key) = site.other_server().await;
    let mut agent = site.agent().await;
    let pending = site.run("whoami");
    let id = agent.expect_execute().await.command_id;

    for key in [strange_key, other_key] {
        let mut forger = FakeAgent::holding(site.service.address, &key, &[id]).await;
        forger.send_output(id, Stream::Stdout, "forged").await;
        forger.send_output_at(id, 0, "forged").await;
        forger.send_result(id, CommandStatus::Succeeded, Some(0)).await;
        let said = forger.settle(1).await;
        assert!(said.iter().all(|message| *message == ServiceMessage::ResultAck { command_id: id }), "{said:?}");
    }
    let running = site.command(id).await;
    agent.send_output(id, Stream::Stdout, "root").await;
    agent.send_result(id, CommandStatus::Failed, Some(1)).await;

    assert_eq!((&running["status"], &running["output"]), (&json!("running"), &json!("")));
    let result = answered(pending).await.json();
    assert_eq!((&result["status"], &result["output"]), (&json!("failed"), &json!("root")));
}

#[actix_web::test]
async fn another_servers_agent_cannot_speak_for_a_command_whose_agent_is_away() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    agent.socket.abort();
    let site = site.restart().await;

    let mut forger = FakeAgent::holding(site.service.address, &other_key, &[id]).await;
    forger.send_output_at(id, 0, "forged").await;
    forger.send_result(id, CommandStatus::Succeeded, Some(0)).await;
    forger.settle(1).await;

    let running = site.command(id).await;
    assert_eq!((&running["status"], &running["output"]), (&json!("running"), &json!("")));
    let mut agent = site.agent_holding(&[id]).await;
    agent.finish(id).await;
    assert_eq!(site.command(id).await["status"], "succeeded");
}

#[actix_web::test]
async fn a_second_result_changes_nothing() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    agent.send_output(id, Stream::Stdout, "true").await;
    agent.finish(id).await;
    let first = site.command(id).await;

    agent.send_output(id, Stream::Stdout, "false").await;
    agent.send_result(id, CommandStatus::Failed, Some(1)).await;
    agent.expect_result_ack(id).await;

    assert_eq!(site.command(id).await, first);
    assert_eq!(site.commands().await.len(), 1);
}

#[actix_web::test]
async fn a_result_after_the_command_was_given_up_for_lost_does_not_turn_it_round() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    agent.socket.abort();
    let mut agent = site.agent_holding(&[]).await;
    site.until_command(id, "lost").await;

    agent.finish(id).await;

    let status = site.command(id).await["status"].clone();
    assert!(status == "lost" || status == "succeeded", "{status}");
    assert_eq!(site.commands().await[0]["status"], status, "the list tells the same");
}
