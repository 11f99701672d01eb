//! Clocks that go wrong while their agents are connected.

use serde_json::Value;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{AgentMessage, Metrics};

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::eventually;
use crate::support::site::Site;

const HOUR_MS: i64 = 3_600_000;

/// Sends a sample by a clock that is so far ahead, and waits until it is durable.
async fn sends(agent: &mut FakeAgent, seq: u64, ahead_ms: i64) {
    let at = Timestamp::now().plus_millis(ahead_ms);
    let metrics = Metrics { seq, samples: vec![sample_at(at)], sent_at: Some(at) };
    agent.send(&AgentMessage::Metrics(metrics)).await;
    agent.expect_ack(seq).await;
}

/// Two more agents, which agree with the service: one that does not is wrong.
async fn witnesses(site: &Site) -> [FakeAgent; 2] {
    let of = async |name| {
        let (_, key) = site.service.server_with_key(&site.owner, name).await;
        FakeAgent::online(site.service.address, &key).await
    };
    [of("right-1").await, of("right-2").await]
}

/// The events of the server's clock, newest first, when there are this many.
async fn told(site: &Site, count: usize) -> Vec<Value> {
    let told = eventually("the event of the clock", async || {
        Some(site.events("kind=clock").await).filter(|events| events.len() >= count)
    });
    told.await.into_iter().map(|event| event["detail"].clone()).collect()
}

#[actix_web::test]
async fn a_clock_that_goes_wrong_and_comes_back_during_a_session_is_an_event_each_time() {
    let site = Site::start().await;
    let _witnesses = witnesses(&site).await;
    let mut agent = site.agent().await;
    sends(&mut agent, 1, 0).await;

    sends(&mut agent, 2, HOUR_MS).await;
    let wrong = told(&site, 1).await;
    sends(&mut agent, 3, 0).await;
    let right = told(&site, 2).await;

    assert_eq!(wrong[0]["is_off"], true);
    assert!((wrong[0]["offset_ms"].as_i64().unwrap() - HOUR_MS).abs() < 5_000, "{wrong:?}");
    assert_eq!(right[0]["is_off"], false);
    assert!(right[0]["offset_ms"].as_i64().unwrap().abs() < 5_000, "{right:?}");
    // The next session does not repeat the event.
    drop(agent);
    let mut agent = site.agent().await;
    sends(&mut agent, 4, 0).await;
    assert_eq!(told(&site, 2).await.len(), 2);
}

#[actix_web::test]
async fn a_clock_that_drifts_for_long_is_one_event() {
    let site = Site::start().await;
    let _witnesses = witnesses(&site).await;
    let mut agent = site.agent().await;

    // As much as 100 ppm make in a week, but less than the difference between two messages.
    for seq in 0..15 {
        sends(&mut agent, seq + 1, 4_000 * i64::try_from(seq).unwrap()).await;
    }
    sends(&mut agent, 16, 0).await;

    let told = told(&site, 2).await;
    let are_off: Vec<&Value> = told.iter().map(|detail| &detail["is_off"]).collect();
    assert_eq!(are_off, [false, true], "{told:?}");
}
