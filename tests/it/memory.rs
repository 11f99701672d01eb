//! A service that holds more memory than it may: expensive reads wait, live samples and alerts do not.

use std::time::{Duration, Instant};

use serde_json::json;
use signalbox::memory::Memory;
use signalbox::metrics::query::wanted::Selection;
use signalbox::metrics::query::{HistoryError, Resolution, TimeRange};
use signalbox_protocol::Timestamp;

use crate::support::agent::sample_aged;
use crate::support::eventually;
use crate::support::site::Site;

/// A site whose service has held too much from its start on.
async fn site_without_memory() -> Site {
    let site = Site::start_with(|config| {
        config.memory_budget = Some(1);
        config.timing.memory_patience = Duration::from_millis(200);
    })
    .await;
    let memory = site.service.state.limits.memory.clone();
    eventually("the first look at the memory", || async { memory.is_over().then_some(()) }).await;
    site
}

#[actix_web::test]
async fn expensive_reads_wait_and_are_refused_while_samples_are_taken_and_alerts_fire() {
    let site = site_without_memory().await;
    let threshold =
        json!({"server_id": site.server_id, "metric_type": "cpu", "threshold_value": 10, "comparison": "gt"});
    site.post("/alerts/thresholds").json(threshold).expect(201).await;

    let mut agent = site.agent().await;
    for seq in 1..=3 {
        agent.store(seq, vec![sample_aged(0)]).await;
    }

    eventually("the alert", || async { (site.read("/alerts").await[0]["status"] == "active").then_some(()) }).await;
    assert_eq!(site.latest().await["cpu_percent"], 12.5);
    for read in ["names", "series", "history", "processes"] {
        let path = format!("/metrics/{}/{read}", site.server_id);
        let began = Instant::now();
        let answer = site.service.client.get(path).bearer(&site.owner.token).expect_answer(503).await;
        assert_eq!((&answer.json()["code"], answer.header("retry-after")), (&json!("busy"), "2"), "{read}");
        assert!(began.elapsed() >= Duration::from_millis(200), "{read} did not wait");
    }
    let log = format!("/logs/{}", site.server_id);
    for read in ["/metrics/fleet", "/metrics/prometheus", &log] {
        site.service.client.get(read).bearer(&site.owner.token).expect_error(503, "busy").await;
    }
}

#[actix_web::test]
async fn a_long_read_waits_for_memory_between_its_steps() {
    let site = Site::start().await;
    // Hours apart, so that no step reads both.
    site.agent().await.store(1, vec![sample_aged(50_000), sample_aged(0)]).await;
    let memory = Memory::new(1).patient_for(Duration::from_millis(1));
    let history = site.service.state.metrics.history.read_by(Some(site.owner.id)).within(memory.clone());
    let now = Timestamp::now();
    let range = TimeRange { start: now.plus_millis(-60_000_000), end: now };
    let mut reader =
        history.open(site.server_id, range, Resolution::Raw, Selection::everything()).await.expect("there is memory");

    assert_eq!(memory.look(), Some(true));

    assert!(matches!(reader.next_page().await, Err(HistoryError::Busy)));
}

#[actix_web::test]
async fn agents_that_catch_up_are_slowed_and_lose_nothing() {
    let site = site_without_memory().await;
    let mut agent = site.agent().await;

    let began = Instant::now();
    agent.store(1, vec![sample_aged(900), sample_aged(899)]).await;
    let late = began.elapsed();
    agent.store(2, vec![sample_aged(0)]).await;

    assert!(late >= Duration::from_secs(1), "a late batch was acknowledged after {late:?}");
    let kept = site.service.state.metrics.tail.samples(site.server_id, i64::MIN, i64::MAX).len();
    if !site.service.state.store.has_sample_table() {
        assert_eq!(kept, 3);
    }
}

#[actix_web::test]
async fn metrics_show_what_is_held_and_what_may_be() {
    let site = site_without_memory().await;

    let text = site.service.root.get("/metrics").expect_answer(200).await.text;

    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
    };
    assert!(value("signalbox_memory_resident_bytes ") > 1_000_000.0);
    assert_eq!(value("signalbox_memory_budget_bytes "), 1.0);
    assert_eq!(value("signalbox_memory_over_budget "), 1.0);
}
