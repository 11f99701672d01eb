//! Answers that nobody waits for, or from an agent that was not asked.

use std::time::Duration;

use serde_json::json;
use signalbox::registry::CallError;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{AgentMessage, Response};
use uuid::Uuid;

use super::{call, call_within, expect_cancel, outcome};
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::site::Site;

fn answer_to(request_id: Uuid, text: &str) -> AgentMessage {
    AgentMessage::Response(Response::new(request_id, Ok(json!(text))))
}

#[actix_web::test]
async fn a_late_answer_is_ignored() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let late = call_within(&site, json!({}), Duration::from_millis(200));
    let late_request = agent.expect_request().await;
    assert!(matches!(outcome(late).await, Err(CallError::Timeout)));
    expect_cancel(&mut agent, late_request.request_id).await;

    let next = call(&site, json!({}));
    let request = agent.expect_request().await;
    agent.answer(&late_request, Ok(json!("late"))).await;
    agent.answer(&request, Ok(json!("in time"))).await;

    assert_eq!(outcome(next).await.unwrap(), json!("in time"));
    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn an_answer_to_an_unknown_request_is_ignored() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let call = call(&site, json!({}));
    let request = agent.expect_request().await;

    for foreign in [Uuid::nil(), Uuid::now_v7(), site.server_id] {
        agent.send(&answer_to(foreign, "forged")).await;
    }
    agent.answer(&request, Ok(json!("true"))).await;

    assert_eq!(outcome(call).await.unwrap(), json!("true"));
}

#[actix_web::test]
async fn only_the_first_of_two_answers_counts() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let call = call(&site, json!({}));
    let request = agent.expect_request().await;

    agent.answer(&request, Ok(json!("first"))).await;
    agent.answer(&request, Ok(json!("second"))).await;

    assert_eq!(outcome(call).await.unwrap(), json!("first"));
    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn another_servers_agent_cannot_answer() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut forger = FakeAgent::online(site.service.address, &other_key).await;
    let mut agent = site.agent().await;
    let call = call(&site, json!({}));
    let request = agent.expect_request().await;

    forger.send(&answer_to(request.request_id, "forged")).await;
    // Once its samples are acknowledged, the forged answer before them has been read.
    forger.store(1, vec![sample_aged(1)]).await;
    agent.answer(&request, Ok(json!("true"))).await;

    assert_eq!(outcome(call).await.unwrap(), json!("true"));
}

#[actix_web::test]
async fn the_session_that_was_replaced_cannot_answer() {
    let site = Site::start().await;
    let mut first = site.agent().await;
    let waiting = call(&site, json!({}));
    let request = first.expect_request().await;
    let mut second = site.agent().await;

    // The service may have closed the first session already.
    let message = crate::support::agent::encode(Encoding::Json, &answer_to(request.request_id, "too late"));
    let _ = first.socket.try_send(message).await;
    let next = call(&site, json!({}));
    let next_request = second.expect_request().await;
    second.answer(&next_request, Ok(json!("second"))).await;

    assert!(matches!(outcome(waiting).await, Err(CallError::Disconnected)));
    assert_eq!(outcome(next).await.unwrap(), json!("second"));
}
