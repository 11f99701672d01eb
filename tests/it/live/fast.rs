//! Live samples: what the service asks agents for while somebody watches, and what it makes of the answer.

use serde_json::json;
use signalbox_protocol::agent::{AgentMessage, ServiceMessage};
use signalbox_protocol::close::MALFORMED;
use signalbox_protocol::{Encoding, Sample};

use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::dashboard::Dashboard;
use crate::support::site::Site;

fn watched(interval_seconds: f64) -> ServiceMessage {
    ServiceMessage::Watched { interval_seconds, for_seconds: 10.0 }
}

async fn live_agent(site: &Site) -> FakeAgent {
    FakeAgent::with_live_samples(site.service.address, &site.key, 0.5).await
}

/// Sends a live sample and returns the next metrics of the dashboard. The service takes two a second, so it repeats it.
async fn shown(agent: &mut FakeAgent, sample: &Sample, dashboard: &mut Dashboard) -> serde_json::Value {
    loop {
        agent.send(&AgentMessage::Live { sample: Box::new(sample.clone()) }).await;
        if let Some(mut message) = dashboard.next_if_any().await
            && message["type"] == "metrics"
        {
            return message["data"].take();
        }
    }
}

/// Stores the sample; requests for live ones may come before the acknowledgement.
async fn store(agent: &mut FakeAgent, seq: u64, sample: Sample) {
    agent.send_metrics(seq, vec![sample]).await;
    while agent.next().await != (ServiceMessage::Ack { seq }) {}
}

#[actix_web::test]
async fn a_watched_agent_is_asked_and_its_live_samples_are_shown_and_not_kept() {
    let site = Site::start().await;
    let mut agent = live_agent(&site).await;
    agent.store(1, vec![sample_aged(5)]).await;
    let kept = site.latest().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.expect("status").await["status"], "online");
    assert_eq!(dashboard.expect("metrics").await, kept);

    assert_eq!(agent.next().await, watched(1.0));
    let live = Sample { cpu_percent: 77.127, ..sample_aged(4) };
    let snapshot = shown(&mut agent, &live, &mut dashboard).await;

    assert_eq!(snapshot["timestamp"], json!(live.timestamp));
    assert_eq!((&snapshot["cpu_percent"], &snapshot["server_id"]), (&json!(77.13), &json!(site.server_id)));
    assert_eq!(site.latest().await, kept);
    assert_eq!(site.raw_timestamps().await, [kept["timestamp"].as_str().unwrap()]);
}

#[actix_web::test]
async fn an_agent_that_connects_while_it_is_watched_is_asked_at_once_and_no_faster_than_its_owner_permits() {
    let site = Site::start().await;
    let mut dashboard = site.dashboard().await;
    assert_eq!(dashboard.expect("status").await["status"], "pending");

    for _ in 0..2 {
        let mut agent = FakeAgent::with_live_samples(site.service.address, &site.key, 2.5).await;
        assert_eq!(agent.next().await, watched(2.5));
        agent.socket.close().await;
        site.until_status("offline").await;
    }
}

#[actix_web::test]
async fn the_request_is_repeated_while_somebody_watches() {
    let site = Site::start().await;
    let mut agent = live_agent(&site).await;
    let _dashboard = site.dashboard().await;

    for _ in 0..2 {
        assert_eq!(agent.next().await, watched(1.0));
    }
}

#[actix_web::test]
async fn an_agent_that_offers_no_live_samples_is_not_asked() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let mut agent = site.agent().await;
    let _dashboard = site.dashboard().await;
    // By the time another agent was asked twice, this one would have been.
    let mut asked = FakeAgent::with_live_samples(site.service.address, &other_key, 1.0).await;
    let _other = Dashboard::watch(site.service.address, other_id, &site.owner.token).await;
    for _ in 0..2 {
        assert_eq!(asked.next().await, watched(1.0));
    }

    agent.send_metrics(1, vec![sample_aged(1)]).await;

    assert_eq!(agent.next().await, ServiceMessage::Ack { seq: 1 });
}

#[actix_web::test]
async fn a_live_sample_that_is_older_than_the_latest_is_not_shown() {
    let site = Site::start().await;
    let mut agent = live_agent(&site).await;
    store(&mut agent, 1, sample_aged(5)).await;
    let mut dashboard = site.dashboard().await;
    dashboard.expect("status").await;
    dashboard.expect("metrics").await;

    agent.send(&AgentMessage::Live { sample: Box::new(sample_aged(60)) }).await;
    let next = sample_aged(1);
    store(&mut agent, 2, next.clone()).await;

    assert_eq!(dashboard.expect("metrics").await["timestamp"], json!(next.timestamp));
}

#[actix_web::test]
async fn a_live_sample_out_of_range_is_malformed() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = site.agent_in(encoding).await;
        let sample = Sample { cpu_percent: 101.0, ..sample_aged(1) };

        agent.send(&AgentMessage::Live { sample: Box::new(sample) }).await;

        agent.expect_close(MALFORMED).await;
    }
}
