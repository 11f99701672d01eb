//! The samples of an outage: they are history, and show for how long the present state has lasted.

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::alerts::{Alarms, Probe, Threshold, busy, busy_for};
use crate::support::site::Site;

/// A site with thresholds on the processor that have existed for a day, and its agent.
async fn scene_of<const N: usize>(thresholds: [Threshold; N]) -> (Site, Alarms, [Uuid; N], Probe) {
    let site = Site::start().await;
    let mut ids = [Uuid::nil(); N];
    for (id, threshold) in ids.iter_mut().zip(thresholds) {
        *id = Alarms::at(&site).add(threshold).await;
    }
    let site = site.restart_after(&["UPDATE alert_thresholds SET armed_at = armed_at - 86400000"]).await;
    let (alarms, probe) = (Alarms::at(&site), Probe::at(&site).await);
    (site, alarms, ids, probe)
}

/// The same with one.
async fn scene(threshold: Threshold) -> (Site, Alarms, Uuid, Probe) {
    let (site, alarms, [id], probe) = scene_of([threshold]).await;
    (site, alarms, id, probe)
}

fn ago(seconds: i64) -> Timestamp {
    Timestamp::now().plus_millis(-1000 * seconds)
}

#[actix_web::test]
async fn old_samples_behind_the_present_raise_nothing() {
    let thresholds = [Threshold::cpu(90.0), Threshold::cpu(90.0).lasting(60)];
    let (site, alarms, [threshold, lasting], mut probe) = scene_of(thresholds).await;
    probe.cpu(10.0).await;

    probe.tell(busy_for(ago(600), 600, 99.0)).await;
    probe.tell(busy_for(ago(20), 300, 99.0)).await;

    alarms.expect_none(threshold).await;
    alarms.expect_none(lasting).await;
    assert_eq!(site.history("resolution=raw").await.len(), 1 + 121 + 61, "they are history all the same");
}

#[actix_web::test]
async fn an_agent_that_catches_up_in_order_raises_nothing_about_the_past() {
    let thresholds = [Threshold::cpu(90.0), Threshold::cpu(90.0).lasting(60)];
    let (_site, alarms, [threshold, lasting], mut probe) = scene_of(thresholds).await;

    probe.tell(busy_for(ago(300), 3000, 99.0)).await;
    probe.tell(busy_for(ago(120), 120, 99.0)).await;
    probe.cpu(10.0).await;

    alarms.expect_none(threshold).await;
    alarms.expect_none(lasting).await;
}

#[actix_web::test]
async fn an_agent_that_catches_up_in_order_raises_it_with_its_first_sample_of_now() {
    let (_site, alarms, threshold, mut probe) = scene(Threshold::cpu(90.0).lasting(300)).await;
    let start = ago(400);
    probe.tell(busy_for(start.plus_millis(300_000), 300, 99.0)).await;
    alarms.expect_none(threshold).await;

    probe.tell(busy_for(start.plus_millis(395_000), 90, 99.0)).await;

    let alert = alarms.until_only(threshold, "active").await;
    assert_eq!(alert["value"], 99.0);
}

#[actix_web::test]
async fn old_samples_resolve_nothing() {
    let (_site, alarms, threshold, mut probe) = scene(Threshold::cpu(90.0)).await;
    probe.cpu(95.0).await;
    let raised = alarms.until_only(threshold, "active").await;

    probe.tell(busy_for(ago(2), 600, 5.0)).await;

    assert_eq!(alarms.only(threshold).await, raised);
}

#[actix_web::test]
async fn old_samples_are_no_peak() {
    let (_site, alarms, threshold, mut probe) = scene(Threshold::cpu(90.0)).await;
    probe.cpu(95.0).await;
    let raised = alarms.until_only(threshold, "active").await;

    probe.tell(busy_for(ago(2), 600, 100.0)).await;

    assert_eq!(alarms.only(threshold).await, raised);
}

#[actix_web::test]
async fn a_gap_that_is_filled_behind_the_present_makes_the_duration_count() {
    let (_site, alarms, threshold, mut probe) = scene(Threshold::cpu(90.0).lasting(300)).await;
    let now = probe.moment();
    probe.tell(vec![busy(now, 97.0)]).await;
    alarms.expect_none(threshold).await;

    // In batches, oldest first, as an agent sends them.
    probe.tell(busy_for(now.plus_millis(-200_000), 150, 99.0)).await;
    alarms.expect_none(threshold).await;
    probe.tell(busy_for(now.plus_millis(-5000), 190, 99.0)).await;

    let alert = alarms.until_only(threshold, "active").await;
    assert_eq!(alert["value"], 97.0, "the value is of now");
}

#[actix_web::test]
async fn a_pending_crossing_continues_when_the_agent_is_back() {
    let (site, alarms, threshold, mut probe) = scene(Threshold::cpu(90.0).lasting(30)).await;
    let start = ago(45);
    let after = |seconds: i64| start.plus_millis(1000 * seconds);
    probe.tell(vec![busy(start, 95.0), busy(after(5), 95.0)]).await;
    probe.agent.socket.abort();
    site.until_status("offline").await;

    // First the present, then what was missed.
    let mut probe = Probe::at(&site).await;
    let now = probe.moment();
    probe.tell(vec![busy(now, 96.0)]).await;
    probe.tell(busy_for(now.plus_millis(-5000), 35, 95.0)).await;

    assert_eq!(alarms.until_only(threshold, "active").await["value"], 96.0);
}

#[actix_web::test]
async fn a_recovery_in_the_gap_is_not_passed_over() {
    let thresholds = [Threshold::cpu(90.0).lasting(300), Threshold::cpu(90.0).lasting(60)];
    let (_site, alarms, [threshold, short], mut probe) = scene_of(thresholds).await;
    let now = probe.moment();
    probe.tell(vec![busy(now, 97.0)]).await;

    let mut missed = busy_for(now.plus_millis(-105_000), 300, 99.0);
    missed.push(busy(now.plus_millis(-100_000), 10.0));
    missed.extend(busy_for(now.plus_millis(-5000), 90, 99.0));
    probe.tell(missed).await;

    alarms.until_only(short, "active").await;
    alarms.expect_none(threshold).await;
    // It counts from the recovery on.
    probe.tell(busy_for(now.plus_millis(200_000), 195, 97.0)).await;
    alarms.expect_none(threshold).await;
    probe.tell(vec![busy(now.plus_millis(205_000), 97.0)]).await;
    alarms.until_only(threshold, "active").await;
}

#[actix_web::test]
async fn a_gap_that_stays_open_counts_for_nothing() {
    let (_site, alarms, threshold, mut probe) = scene(Threshold::cpu(90.0).lasting(120)).await;
    let now = probe.moment();
    probe.tell(vec![busy(now, 97.0)]).await;

    // The last minute is unknown.
    probe.tell(busy_for(now.plus_millis(-60_000), 240, 99.0)).await;

    alarms.expect_none(threshold).await;
}

#[actix_web::test]
async fn what_crossed_before_the_threshold_was_there_does_not_count() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let mut probe = Probe::at(&site).await;
    let end = probe.moment();
    probe.tell(busy_for(end, 40, 99.0)).await;

    let threshold = alarms.add(Threshold::cpu(90.0).lasting(30)).await;
    probe.cpu(99.0).await;

    alarms.expect_none(threshold).await;
    let at = probe.moment().plus_millis(31_000);
    probe.tell(vec![busy(at, 99.0)]).await;
    alarms.until_only(threshold, "active").await;
}

#[actix_web::test]
async fn a_day_of_old_samples_does_not_hold_up_the_present() {
    let (_site, alarms, threshold, mut probe) = scene(Threshold::cpu(90.0)).await;
    probe.cpu(10.0).await;
    let mut at = ago(80_000);

    for _ in 0..8 {
        let samples = (0..1000).map(|step| busy(at.plus_millis(5000 * step), 99.0)).collect();
        probe.store(samples).await;
        at = at.plus_millis(5_000_000);
    }
    probe.cpu(96.0).await;

    assert_eq!(alarms.until_only(threshold, "active").await["value"], 96.0);
}
