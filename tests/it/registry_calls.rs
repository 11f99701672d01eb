//! Calls to an agent through the registry: each answer finds its caller, and no caller waits without end.

mod slots;
mod strangers;

use std::time::{Duration, Instant};

use actix_web::rt::{self, task::JoinHandle};
use serde_json::{Value, json};
use signalbox::registry::{CallError, Question};
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{Request, RequestError, ServiceMessage};
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::site::Site;
use crate::support::{PATIENCE, in_time};

type Outcome = Result<Value, CallError>;

/// Calls in the background, with all the time that a slow machine may need.
fn call(site: &Site, params: Value) -> JoinHandle<Outcome> {
    call_within(site, params, PATIENCE)
}

fn call_within(site: &Site, params: Value, deadline: Duration) -> JoinHandle<Outcome> {
    let (state, server_id) = (site.service.state.clone(), site.server_id);
    rt::spawn(async move {
        state.registry.call(server_id, Question { method: "docker.list", params, deadline, by: None }).await
    })
}

async fn outcome(call: JoinHandle<Outcome>) -> Outcome {
    in_time("the outcome of a call", call).await.unwrap()
}

/// The next message, which must take this request back.
async fn expect_cancel(agent: &mut FakeAgent, request_id: Uuid) {
    assert_eq!(agent.next().await, ServiceMessage::RequestCancel { request_id });
}

#[actix_web::test]
async fn an_answer_reaches_its_caller() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = site.agent_in(encoding).await;
        let params = json!({"all": true, "nested": [1, {"deep": null}]});

        let call = call(&site, params.clone());
        let request = agent.expect_request().await;
        agent.answer(&request, Ok(json!([{"id": "4f5c"}]))).await;

        let Request { request_id: _, method, params: received, timeout_ms, .. } = request;
        assert_eq!((method.as_str(), received), ("docker.list", params));
        assert!(timeout_ms.is_none_or(|millis| millis <= PATIENCE.as_millis() as u64), "{timeout_ms:?}");
        assert_eq!(outcome(call).await.unwrap(), json!([{"id": "4f5c"}]));
    }
}

#[actix_web::test]
async fn an_error_of_the_agent_reaches_its_caller() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let refusal = RequestError::new("agent_refused", "docker is switched off on this machine");

    let call = call(&site, json!({}));
    let request = agent.expect_request().await;
    agent.answer(&request, Err(refusal.clone())).await;

    let outcome = outcome(call).await;
    assert!(matches!(&outcome, Err(CallError::Agent(error)) if *error == refusal), "{outcome:?}");
}

#[actix_web::test]
async fn a_call_without_an_answer_times_out() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let began = Instant::now();

    let call = call_within(&site, json!({}), Duration::from_millis(300));
    let request = agent.expect_request().await;
    let outcome = outcome(call).await;

    assert!(matches!(outcome, Err(CallError::Timeout)), "{outcome:?}");
    assert!(began.elapsed() >= Duration::from_millis(300));
    expect_cancel(&mut agent, request.request_id).await;
}

#[actix_web::test]
async fn a_call_to_nobody_is_offline_at_once() {
    let site = Site::start().await;
    let began = Instant::now();

    let never = outcome(call(&site, json!({}))).await;
    let agent = site.agent().await;
    agent.socket.close().await;
    site.until_status("offline").await;
    let gone = outcome(call(&site, json!({}))).await;

    assert!(matches!(never, Err(CallError::Offline)), "{never:?}");
    assert!(matches!(gone, Err(CallError::Offline)), "{gone:?}");
    assert!(began.elapsed() < PATIENCE / 2);
}

#[actix_web::test]
async fn a_disconnect_ends_the_calls_that_wait() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let calls = [call(&site, json!(1)), call(&site, json!(2))];
    agent.expect_request().await;
    agent.expect_request().await;

    agent.socket.abort();

    for call in calls {
        let outcome = outcome(call).await;
        assert!(matches!(outcome, Err(CallError::Disconnected)), "{outcome:?}");
    }
}

#[actix_web::test]
async fn a_replaced_session_ends_the_calls_that_wait_on_it() {
    let site = Site::start().await;
    let mut first = site.agent().await;
    let waiting = call(&site, json!({}));
    first.expect_request().await;

    let mut second = site.agent().await;
    let outcome_of_first = outcome(waiting).await;
    let next = call(&site, json!({}));
    let request = second.expect_request().await;
    second.answer(&request, Ok(json!("second"))).await;

    assert!(matches!(outcome_of_first, Err(CallError::Disconnected)), "{outcome_of_first:?}");
    assert_eq!(outcome(next).await.unwrap(), json!("second"));
}

#[actix_web::test]
async fn answers_in_reverse_order_find_their_callers() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;

    let calls: Vec<_> = (0..20).map(|number| call(&site, json!({"number": number}))).collect();
    let mut requests = Vec::new();
    for _ in &calls {
        requests.push(agent.expect_request().await);
    }
    for request in requests.iter().rev() {
        agent.answer(request, Ok(json!({"echo": request.params["number"]}))).await;
    }

    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(outcome(call).await.unwrap(), json!({"echo": number}));
    }
}
