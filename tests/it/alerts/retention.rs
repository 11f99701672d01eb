//! Alerts that were resolved long ago are removed; open and recently resolved ones are not.

use serde_json::Value;

use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::eventually;
use crate::support::site::Site;

/// All alerts of a threshold, by value.
async fn values(alarms: &Alarms) -> Vec<Value> {
    alarms.all().await.into_iter().map(|alert| alert["value"].clone()).collect()
}

#[actix_web::test]
async fn what_was_resolved_longer_ago_than_is_kept_is_forgotten() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    for percent in [91.0, 10.0, 92.0, 10.0, 93.0] {
        probe.cpu(percent).await;
    }
    alarms.until(threshold, "active").await;
    assert_eq!(values(&alarms).await, [93.0, 92.0, 91.0]);

    // The retention is a year. The first is older, the second nearly, and the third is older and still open.
    let day = 86_400_000_i64;
    let site = site
        .restart_after(&[
            &format!("UPDATE alerts SET resolved_at = resolved_at - {} WHERE value = 91", 366 * day),
            &format!("UPDATE alerts SET resolved_at = resolved_at - {} WHERE value = 92", 364 * day),
            &format!("UPDATE alerts SET triggered_at = triggered_at - {} WHERE value = 93", 366 * day),
            &format!("UPDATE alert_thresholds SET armed_at = armed_at - {}", 400 * day),
        ])
        .await;

    let alarms = Alarms::at(&site);
    eventually("the oldest is forgotten", async || (values(&alarms).await.len() < 3).then_some(())).await;
    assert_eq!(values(&alarms).await, [93.0, 92.0]);
}
