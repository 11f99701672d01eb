//! Live samples, while the service asks for them.

use std::time::Duration;

use signalbox_agent::{Config, Exit, Interval, LiveSamples};
use signalbox_protocol::agent::{AgentMessage, Request, ServiceMessage};
use uuid::Uuid;

use crate::agent::{Agent, config};
use crate::service::{Service, accepted};

/// An agent that takes one sample and then none for an hour, unless somebody watches.
fn slow(url: &str, live: LiveSamples) -> Config {
    Config { interval: Interval::from_seconds(3600.0).unwrap(), live, ..config(url) }
}

#[tokio::test]
async fn live_samples_are_sent_while_they_are_asked_for_and_kept_nowhere() {
    let service = Service::start().await;
    let agent = Agent::start(slow(&service.url(), LiveSamples::Every(Duration::from_millis(20))));
    let mut peer = service.accept().await;
    let auth = peer.auth().await;
    peer.send(&accepted(None)).await;
    let kept = peer.metrics().await;

    peer.send(&ServiceMessage::Watched { interval_seconds: 0.0, for_seconds: 60.0 }).await;
    let mut shown = Vec::new();
    for _ in 0..3 {
        match peer.message().await {
            AgentMessage::Live { sample } => shown.push(sample.timestamp.as_millis()),
            other => panic!("a live sample, not {other:?}"),
        }
    }
    drop(peer);
    let mut peer = service.accept_authenticated().await;

    assert_eq!(auth.live_interval_seconds, Some(0.02));
    assert!(shown.is_sorted_by(|one, next| one < next), "{shown:?}");
    assert_eq!(peer.metrics().await.samples, kept.samples, "what was not acknowledged is sent again, and nothing else");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_owner_who_wants_no_live_samples_gets_none() {
    let service = Service::start().await;
    let agent = Agent::start(slow(&service.url(), LiveSamples::Off));
    let mut peer = service.accept().await;
    let auth = peer.auth().await;
    peer.send(&accepted(None)).await;
    peer.metrics().await;

    peer.send(&ServiceMessage::Watched { interval_seconds: 0.0, for_seconds: 60.0 }).await;
    let question = Request {
        request_id: Uuid::from_u128(1),
        method: "agent.info".to_owned(),
        params: serde_json::Value::Null,
        timeout_ms: None,
        by: None,
    };
    peer.send(&ServiceMessage::Request(question)).await;

    assert_eq!(auth.live_interval_seconds, None);
    assert!(matches!(peer.message().await, AgentMessage::Response(_)));
    assert_eq!(agent.stop().await, Exit::Stopped);
}
