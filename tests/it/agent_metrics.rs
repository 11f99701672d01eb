//! Samples on their way from an agent to a reader: acknowledged, stored once, kept exactly.

mod history;
mod limits;
mod open_series;
mod series;
mod snapshot;

use signalbox_protocol::agent::{AgentMessage, Auth, Metrics};
use signalbox_protocol::{Encoding, Timestamp};

use crate::support::agent::{FakeAgent, auth, sample_aged, sample_at};
use crate::support::site::Site;
use crate::support::text_of;

#[actix_web::test]
async fn an_acknowledged_sample_can_be_read_at_once() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = site.agent_in(encoding).await;
        let sample = sample_aged(1);
        let time = sample.timestamp.to_string();

        agent.send_metrics(1, vec![sample]).await;
        agent.expect_ack(1).await;

        assert_eq!(site.raw_timestamps().await, [time.as_str()]);
        assert_eq!(site.latest().await["timestamp"], time);
    }
}

#[actix_web::test]
async fn every_batch_is_acknowledged() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    for seq in 1..=50 {
        agent.send_metrics(seq, vec![sample_aged(100 - seq as i64)]).await;
    }
    agent.expect_ack(50).await;

    assert_eq!(site.raw_timestamps().await.len(), 50);
}

#[actix_web::test]
async fn a_batch_without_samples_is_acknowledged() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    agent.store(1, vec![]).await;

    site.expect_no_metrics().await;
}

#[actix_web::test]
async fn a_sample_that_is_sent_twice_is_stored_once() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let batch = vec![sample_aged(3), sample_aged(2)];

    agent.store(1, batch.clone()).await;
    agent.store(2, [batch.clone(), batch].concat()).await;

    assert_eq!(site.raw_timestamps().await.len(), 2);
}

#[actix_web::test]
async fn a_batch_that_is_sent_again_is_acknowledged_again() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let batch = vec![sample_aged(2)];

    agent.store(1, batch.clone()).await;
    agent.store(1, batch).await;

    assert_eq!(site.raw_timestamps().await.len(), 1);
}

#[actix_web::test]
async fn a_batch_that_is_sent_again_after_a_reconnect_is_stored_once() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let batch = vec![sample_aged(3), sample_aged(2)];
    agent.store(1, batch.clone()).await;
    agent.socket.abort();

    let mut agent = site.agent_in(Encoding::MessagePack).await;
    agent.store(1, batch).await;

    assert_eq!(site.raw_timestamps().await.len(), 2);
}

#[actix_web::test]
async fn samples_out_of_order_land_in_order() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let now = Timestamp::now();
    let at = |seconds: i64| sample_at(now.plus_millis(-1000 * seconds));

    agent.store(1, vec![at(10), at(40), at(20)]).await;
    agent.store(2, vec![at(30), at(50)]).await;

    let expected: Vec<String> = [50, 40, 30, 20, 10].map(|seconds| at(seconds).timestamp.to_string()).to_vec();
    assert_eq!(site.raw_timestamps().await, expected);
}

#[actix_web::test]
async fn an_older_sample_never_becomes_the_latest() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let newest = sample_aged(10);
    agent.store(1, vec![newest.clone()]).await;

    agent.store(2, vec![sample_aged(300)]).await;

    assert_eq!(site.latest().await["timestamp"], newest.timestamp.to_string());
    assert_eq!(site.raw_timestamps().await.len(), 2);
}

#[actix_web::test]
async fn a_sample_of_the_far_future_is_refused_and_its_batch_is_acknowledged() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let sound = sample_aged(1);
    let future = sample_at(Timestamp::now().plus_millis(25 * 3600 * 1000));

    agent.store(1, vec![sound.clone(), future.clone()]).await;
    agent.store(2, vec![future.clone()]).await;
    agent.store(3, vec![sample_aged(0)]).await;

    assert_eq!(site.raw_timestamps().await.len(), 2);
    assert_ne!(site.latest().await["timestamp"], future.timestamp.to_string());
    let until_far = format!("resolution=raw&end={}", future.timestamp.plus_millis(1000));
    let times = site.history(&until_far).await;
    assert!(times.iter().all(|sample| text_of(&sample["timestamp"]) != future.timestamp.to_string()));
}

#[actix_web::test]
async fn a_sample_that_is_of_the_future_by_any_clock_holds_up_nothing() {
    let site = Site::start().await;
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
    // The only agent says that it is two minutes later.
    let there = |by_ms: i64| Timestamp::now().plus_millis(2 * 60 * 1000 + by_ms);
    let AgentMessage::Auth(hello) = auth(&site.key) else { unreachable!() };
    agent.send(&AgentMessage::Auth(Auth { sent_at: Some(there(0)), ..hello })).await;
    agent.next().await;
    let (sound, future) = (sample_at(there(0)), sample_at(there(25 * 3600 * 1000)));

    let samples = vec![future, sound.clone()];
    agent.send(&AgentMessage::Metrics(Metrics { seq: 1, samples, sent_at: Some(there(0)) })).await;

    agent.expect_ack(1).await;
    assert_eq!(site.latest().await["timestamp"], sound.timestamp.to_string());
}

#[actix_web::test]
async fn a_clock_that_is_less_than_a_day_ahead_is_taken() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let ahead = sample_at(Timestamp::now().plus_millis(23 * 3600 * 1000));

    agent.store(1, vec![ahead.clone()]).await;

    assert_eq!(site.latest().await["timestamp"], ahead.timestamp.to_string());
}

#[actix_web::test]
async fn after_a_restart_a_sample_of_the_future_is_not_the_latest() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let (ahead, present) = (sample_at(Timestamp::now().plus_millis(2 * 3600 * 1000)), sample_aged(0));
    agent.store(1, vec![ahead, present.clone()]).await;
    drop(agent);

    let site = site.restart().await;

    assert_eq!(site.latest().await["timestamp"], present.timestamp.to_string());
}

#[actix_web::test]
async fn the_samples_of_two_servers_stay_apart() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let mut agent = site.agent().await;
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let (mine, theirs) = (sample_aged(2), sample_aged(1));

    agent.store(1, vec![mine.clone()]).await;
    other.store(1, vec![theirs.clone()]).await;

    assert_eq!(site.raw_timestamps().await, [mine.timestamp.to_string()]);
    let latest = site.read(&format!("/metrics/{other_id}")).await;
    assert_eq!(latest["timestamp"], theirs.timestamp.to_string());
}
