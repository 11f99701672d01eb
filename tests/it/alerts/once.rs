//! At most one alert that is not resolved of a threshold and target.

use futures_util::future::join_all;

use crate::support::agent::FakeAgent;
use crate::support::alerts::{Alarms, Probe, Threshold, busy};
use crate::support::site::Site;

#[actix_web::test]
async fn a_thousand_crossing_samples_are_one_alert() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    let start = probe.moment().plus_millis(-30_000);

    for piece in 0..5 {
        let numbers = 200 * piece..200 * (piece + 1);
        let samples = numbers.map(|number| busy(start.plus_millis(30 * number), 91.0 + (number % 7) as f64));
        probe.store(samples.collect()).await;
    }
    probe.tell(Vec::new()).await;

    let alert = alarms.until_only(threshold, "active").await;
    assert_eq!((alert["value"].as_f64(), alert["peak_value"].as_f64()), (Some(91.0), Some(97.0)));
    assert_eq!(alarms.timeline(&alert).await, ["triggered"]);
}

#[actix_web::test]
async fn crossings_within_one_message_are_reported_one_by_one() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    let start = probe.moment().plus_millis(-30_000);

    let values = [95.0, 10.0, 96.0, 10.0, 97.0, 10.0];
    let samples = (0..).zip(values).map(|(step, value)| busy(start.plus_millis(5000 * step), value)).collect();
    probe.tell(samples).await;

    alarms.until(threshold, "resolved").await;
    let alerts = alarms.of_threshold(threshold).await;
    let values: Vec<_> = alerts.iter().map(|alert| alert["value"].as_f64().unwrap()).collect();
    assert_eq!(values, [97.0, 96.0, 95.0]);
    assert!(alerts.iter().all(|alert| alert["status"] == "resolved"), "{alerts:?}");
}

#[actix_web::test]
async fn two_connections_of_one_agent_raise_it_once() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut old = Probe::at(&site).await;
    old.cpu(10.0).await;

    // The newer session replaces the older one, which has just sent a crossing sample of its own.
    let at = old.moment();
    old.agent.send_metrics(u64::MAX >> 12, vec![busy(at, 95.0)]).await;
    let mut new = Probe::at(&site).await;
    new.cpu(96.0).await;
    new.cpu(97.0).await;

    alarms.until_only(threshold, "active").await;
}

#[actix_web::test]
async fn agents_that_take_each_others_place_raise_it_once() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;

    for round in 0..10 {
        let mut agent = FakeAgent::online(site.service.address, &site.key).await;
        let sample = busy(signalbox_protocol::Timestamp::now(), 95.0);
        agent.send_metrics(round + 1, vec![sample]).await;
    }
    Probe::at(&site).await.cpu(96.0).await;

    alarms.until_only(threshold, "active").await;
}

#[actix_web::test]
async fn thresholds_on_the_same_metric_have_an_alert_each() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let limits = [(80.0, "warning"), (80.0, "warning"), (90.0, "critical"), (99.0, "info")];
    let add = |(limit, severity)| alarms.add(Threshold::cpu(limit).severity(severity));
    let thresholds = join_all(limits.map(add)).await;
    let mut probe = Probe::at(&site).await;

    probe.cpu(95.0).await;

    for (threshold, (_, severity)) in thresholds.iter().zip(limits).take(3) {
        assert_eq!(alarms.until_only(*threshold, "active").await["severity"], severity);
    }
    alarms.expect_none(thresholds[3]).await;
}

#[actix_web::test]
async fn a_hundred_thresholds_on_one_sample_are_all_heard() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    for step in 0..100 {
        alarms.add(Threshold::cpu(f64::from(step) / 2.0)).await;
    }
    let mut probe = Probe::at(&site).await;

    probe.cpu(95.0).await;
    assert_eq!(alarms.list("status=active").await.len(), 100);
    probe.cpu(20.0).await;

    assert_eq!(alarms.list("status=active").await.len(), 40);
    assert_eq!(alarms.list("status=resolved").await.len(), 60);
}
