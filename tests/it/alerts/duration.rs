//! How long a value must cross, by the agent's time, and what counts as a recovery.

use signalbox_protocol::Timestamp;

use crate::support::alerts::{Alarms, Probe, Threshold, busy, busy_for};
use crate::support::site::Site;

#[actix_web::test]
async fn samples_that_come_at_once_count_by_their_own_time() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let enough = alarms.add(Threshold::cpu(90.0).lasting(40)).await;
    let not_enough = alarms.add(Threshold::cpu(90.0).lasting(41)).await;
    let mut probe = Probe::at(&site).await;

    let end = probe.moment();
    probe.tell(busy_for(end, 40, 95.0)).await;

    alarms.until_only(enough, "active").await;
    alarms.expect_none(not_enough).await;
    probe.tell(vec![busy(end.plus_millis(1000), 96.0)]).await;
    assert_eq!(alarms.until_only(not_enough, "active").await["value"], 96.0);
}

#[actix_web::test]
async fn samples_that_are_one_duration_apart_are_enough() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).lasting(300)).await;
    let mut probe = Probe::at(&site).await;
    let start = probe.moment();

    probe.tell(vec![busy(start, 95.0)]).await;
    alarms.expect_none(threshold).await;
    probe.tell(vec![busy(start.plus_millis(299_999), 95.0)]).await;
    alarms.expect_none(threshold).await;
    probe.tell(vec![busy(start.plus_millis(300_000), 95.0)]).await;

    alarms.until_only(threshold, "active").await;
}

#[actix_web::test]
async fn one_sample_that_does_not_cross_restarts_the_duration() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).lasting(30)).await;
    let mut probe = Probe::at(&site).await;
    let start = probe.moment();
    let after = |seconds: i64| start.plus_millis(1000 * seconds);

    let mut samples = busy_for(after(25), 25, 95.0);
    samples.push(busy(after(26), 90.0));
    samples.extend(busy_for(after(55), 25, 95.0));
    probe.tell(samples).await;

    alarms.expect_none(threshold).await;
    probe.tell(vec![busy(after(60), 95.0)]).await;
    alarms.until_only(threshold, "active").await;
}

#[actix_web::test]
async fn recovery_needs_no_duration() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).lasting(30)).await;
    let mut probe = Probe::at(&site).await;
    let end = probe.moment();
    probe.tell(busy_for(end, 30, 95.0)).await;
    alarms.until_only(threshold, "active").await;

    probe.cpu(90.0).await;

    alarms.until_only(threshold, "resolved").await;
    // And the next one takes its time again.
    probe.cpu(95.0).await;
    assert_eq!(alarms.only(threshold).await["status"], "resolved");
}

/// Fires at the first value, holds through the others, and recovers at the last.
async fn holds_until(comparison: &str, limit: f64, clear: f64, values: &[f64], recovered: f64) {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("cpu", comparison, limit).clear(clear)).await;
    let mut probe = Probe::at(&site).await;

    for value in values {
        probe.cpu(*value).await;
        let alert = alarms.until_only(threshold, "active").await;
        assert_eq!(alert["clear_value"], clear, "{comparison} {limit}, {value}");
    }
    probe.cpu(recovered).await;

    alarms.until_only(threshold, "resolved").await;
    // A value that only held the alert does not raise it.
    probe.cpu(values[values.len() - 1]).await;
    assert_eq!(alarms.only(threshold).await["status"], "resolved", "{comparison} {limit}");
}

#[actix_web::test]
async fn an_alert_holds_until_the_value_at_which_it_clears() {
    holds_until("gt", 90.0, 80.0, &[90.01, 90.0, 85.0, 80.01], 80.0).await;
    holds_until("gte", 90.0, 80.0, &[90.0, 89.99, 80.0], 79.99).await;
    holds_until("lt", 10.0, 20.0, &[9.99, 10.0, 19.99], 20.0).await;
    holds_until("lte", 10.0, 20.0, &[10.0, 10.01, 20.0], 20.01).await;
}

#[actix_web::test]
async fn what_would_only_hold_an_alert_does_not_count_before_it() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0).clear(80.0).lasting(20)).await;
    let mut probe = Probe::at(&site).await;
    let start = probe.moment();

    let values = [95.0, 95.0, 85.0, 95.0, 95.0];
    let samples = (0..).zip(values).map(|(step, value)| busy(start.plus_millis(5000 * step), value)).collect();
    probe.tell(samples).await;

    alarms.expect_none(threshold).await;
}

#[actix_web::test]
async fn an_agent_that_goes_away_has_not_recovered() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    probe.cpu(95.0).await;
    let raised = alarms.until_only(threshold, "active").await;

    probe.agent.socket.abort();
    site.until_status("offline").await;
    assert_eq!(alarms.only(threshold).await, raised);
    let mut probe = Probe::at(&site).await;
    probe.tell(Vec::new()).await;
    assert_eq!(alarms.only(threshold).await, raised);
    probe.cpu(95.0).await;
    assert_eq!(alarms.only(threshold).await["id"], raised["id"]);
    probe.cpu(10.0).await;

    alarms.until_only(threshold, "resolved").await;
}

#[actix_web::test]
async fn the_same_sample_twice_is_one() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    let at = probe.moment();
    probe.tell(vec![busy(at, 95.0)]).await;
    let raised = alarms.until_only(threshold, "active").await;

    // A moment has one sample; another one with the same time is not of the present.
    probe.tell(vec![busy(at, 10.0), busy(at, 99.0)]).await;

    assert_eq!(alarms.only(threshold).await, raised);
}

#[actix_web::test]
async fn a_clock_that_is_put_right_does_not_silence_a_server() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    // Two hours ahead at first.
    probe.tell(vec![busy(Timestamp::now().plus_millis(7_200_000), 10.0)]).await;

    probe.tell(vec![busy(Timestamp::now(), 95.0)]).await;
    alarms.until_only(threshold, "active").await;
    probe.tell(vec![busy(Timestamp::now(), 10.0)]).await;

    alarms.until_only(threshold, "resolved").await;
}
