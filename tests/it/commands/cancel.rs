//! A command that is called off.

use std::time::{Duration, Instant};

use serde_json::json;
use signalbox_protocol::agent::{CommandStatus, Stream};
use uuid::Uuid;

use crate::support::commands::answered;
use crate::support::site::Site;

#[actix_web::test]
async fn a_cancel_reaches_the_agent_and_its_result_everybody_who_waits() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let waiting = site.run("sleep 1000");
    let id = agent.expect_execute().await.command_id;

    let cancelling = site.cancel(id);
    agent.expect_cancel(id).await;
    agent.send_output(id, Stream::Stderr, "terminated\n").await;
    agent.send_result(id, CommandStatus::Cancelled, Some(143)).await;
    let (cancelled, waited) = (answered(cancelling).await, answered(waiting).await);

    assert_eq!((cancelled.status, waited.status), (200, 200), "{cancelled} {waited}");
    let result = cancelled.json();
    assert_eq!((&result["status"], &result["exit_code"]), (&json!("cancelled"), &json!(143)));
    assert_eq!(result["output"], "terminated\n");
    assert_eq!(waited.json(), result);
    agent.expect_result_ack(id).await;
    assert_eq!(site.command(id).await, result);
}

#[actix_web::test]
async fn a_command_that_ended_before_the_cancel_came_keeps_its_result() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;

    let cancelling = site.cancel(id);
    agent.expect_cancel(id).await;
    agent.finish(id).await;

    let result = answered(cancelling).await.json();
    assert_eq!((&result["status"], &result["exit_code"]), (&json!("succeeded"), &json!(0)));
}

#[actix_web::test]
async fn a_command_that_has_ended_stays_as_it_is() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    agent.finish(id).await;
    let before = site.command(id).await;

    let answer = answered(site.cancel(id)).await;

    assert_eq!((answer.status, answer.json()), (200, before.clone()));
    agent.expect_silence(1).await;
    assert_eq!(site.command(id).await, before);
}

#[actix_web::test]
async fn an_unknown_command_cannot_be_cancelled() {
    let site = Site::start().await;

    let answer = answered(site.cancel(Uuid::now_v7())).await;

    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("not_found")));
}

#[actix_web::test]
async fn a_cancel_while_the_agent_is_away_reaches_it_when_it_is_back() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "sleep 1000").await;
    agent.socket.abort();
    site.until_status("offline").await;

    let began = Instant::now();
    let cancelling = site.cancel(id);
    // Its answer comes after 10 s at the latest; the agent is back before that, unless the machine is under load.
    assert_eq!(site.command(id).await["status"], "running");
    let mut agent = site.agent_holding(&[id]).await;
    agent.expect_cancel(id).await;
    agent.send_result(id, CommandStatus::Cancelled, Some(143)).await;
    let took = began.elapsed();

    let answer = answered(cancelling).await;
    let is_late = answer.json()["status"] == "running" && took >= Duration::from_secs(8);
    assert!(answer.status == 200 && (is_late || answer.json()["status"] == "cancelled"), "{answer}");
    site.until_command(id, "cancelled").await;
}

#[actix_web::test]
async fn a_cancel_while_the_agent_is_away_survives_a_restart() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "sleep 1000").await;
    agent.socket.abort();
    site.until_status("offline").await;
    let cancelled = site.post(format!("/commands/{}/{id}/cancel?wait=0", site.server_id)).expect(200).await;
    assert_eq!(cancelled["status"], "running");

    let site = site.restart().await;
    let mut agent = site.agent_holding(&[id]).await;
    agent.expect_cancel(id).await;
    agent.send_result(id, CommandStatus::Cancelled, Some(143)).await;

    agent.expect_result_ack(id).await;
    site.until_command(id, "cancelled").await;
}

#[actix_web::test]
async fn two_cancels_get_the_same_answer() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "sleep 1000").await;

    let both = [site.cancel(id), site.cancel(id)];
    agent.expect_cancel(id).await;
    agent.send_result(id, CommandStatus::Cancelled, None).await;

    for cancelling in both {
        let answer = answered(cancelling).await;
        assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("cancelled")), "{answer}");
    }
}
