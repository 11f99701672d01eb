//! At most 64 calls wait for one agent, and a caller that stops waiting makes room.

use std::time::{Duration, Instant};

use actix_web::rt::task::JoinHandle;
use serde_json::json;
use signalbox::registry::CallError;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{Request, ServiceMessage};
use uuid::Uuid;

use super::{Outcome, call, call_within, expect_cancel, outcome};
use crate::support::PATIENCE;
use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::site::Site;

/// How many calls may wait for one agent.
const SLOTS: usize = 64;

/// An agent with as many calls as may wait for it.
async fn full_agent(site: &Site) -> (FakeAgent, Vec<JoinHandle<Outcome>>, Vec<Request>) {
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let calls: Vec<_> = (0..SLOTS).map(|number| call(site, json!(number))).collect();
    let mut requests = Vec::new();
    for _ in 0..SLOTS {
        requests.push(agent.expect_request().await);
    }
    (agent, calls, requests)
}

#[actix_web::test]
async fn one_call_more_than_64_is_busy_at_once() {
    let site = Site::start().await;
    let (mut agent, calls, requests) = full_agent(&site).await;
    let began = Instant::now();

    let refused = outcome(call(&site, json!("one more"))).await;

    assert!(matches!(refused, Err(CallError::Busy)), "{refused:?}");
    assert!(began.elapsed() < PATIENCE / 2);
    for request in &requests {
        agent.answer(request, Ok(request.params.clone())).await;
    }
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(outcome(call).await.unwrap(), json!(number));
    }
}

#[actix_web::test]
async fn a_busy_agent_delays_no_other() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let (mut agent, _calls, _requests) = full_agent(&site).await;

    other.store(1, vec![sample_aged(1)]).await;
    agent.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn an_answer_makes_room() {
    let site = Site::start().await;
    let (mut agent, mut calls, requests) = full_agent(&site).await;
    agent.answer(&requests[0], Ok(json!("done"))).await;
    let first = requests[0].params.as_u64().unwrap() as usize;
    assert_eq!(outcome(calls.swap_remove(first)).await.unwrap(), json!("done"));

    let next = call(&site, json!("next"));
    let request = agent.expect_request().await;
    agent.answer(&request, Ok(json!("next done"))).await;

    assert_eq!(outcome(next).await.unwrap(), json!("next done"));
}

#[actix_web::test]
async fn a_caller_that_gives_up_takes_its_request_back_and_makes_room() {
    let site = Site::start().await;
    let (mut agent, calls, requests) = full_agent(&site).await;

    calls[5].abort();
    let given_up = requests.iter().find(|request| request.params == 5).unwrap();
    expect_cancel(&mut agent, given_up.request_id).await;

    let next = call(&site, json!("next"));
    let request = agent.expect_request().await;
    agent.answer(&request, Ok(json!("next done"))).await;
    assert_eq!(outcome(next).await.unwrap(), json!("next done"));
}

#[actix_web::test]
async fn a_timeout_makes_room() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let calls: Vec<_> = (0..SLOTS).map(|_| call_within(&site, json!({}), Duration::from_millis(500))).collect();
    for call in calls {
        let outcome = outcome(call).await;
        assert!(matches!(outcome, Err(CallError::Timeout)), "{outcome:?}");
    }
    let cancelled = requests_and_cancels(&mut agent).await;
    assert_eq!(cancelled.len(), SLOTS);

    let next = call(&site, json!("next"));
    let request = agent.expect_request().await;
    agent.answer(&request, Ok(json!("next done"))).await;

    assert_eq!(outcome(next).await.unwrap(), json!("next done"));
}

/// Reads until every request is cancelled. Returns their ids.
async fn requests_and_cancels(agent: &mut FakeAgent) -> Vec<Uuid> {
    let (mut asked, mut cancelled) = (Vec::new(), Vec::new());
    while cancelled.len() < SLOTS {
        match agent.next().await {
            ServiceMessage::Request(request) => asked.push(request.request_id),
            ServiceMessage::RequestCancel { request_id } if asked.contains(&request_id) => cancelled.push(request_id),
            other => panic!("expected requests and cancels, got {other:?}"),
        }
    }
    cancelled
}
