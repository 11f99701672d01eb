//! Thresholds on open series.

use std::time::Duration;

use serde_json::{Value, json};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::Unread;
use signalbox_protocol::series::{SeriesKind, Unit};

use super::{describe, sample, series};
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;
use crate::support::text_of;

fn fans() -> Vec<signalbox_protocol::series::SeriesDescription> {
    ["cpu", "case"].into_iter().zip(1..).map(|(target, id)| fan(id, target)).collect()
}

fn fan(id: u16, target: &str) -> signalbox_protocol::series::SeriesDescription {
    series(id, "fan_speed", Unit::Rpm, SeriesKind::Gauge, Some(target))
}

fn slow(value: f64) -> Threshold {
    Threshold::on("series", "lt", value).with("series", "fan_speed")
}

#[actix_web::test]
async fn a_series_that_crosses_fires_and_is_shown_in_its_unit() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let any = alarms.add(slow(800.0).clear(1_000.0)).await;
    let one = alarms.add(slow(800.0).target("cpu")).await;
    let other = alarms.add(slow(800.0).target("case")).await;
    let mut probe = Probe::at(&site).await;
    describe(&mut probe.agent, fans()).await;

    let at = probe.moment();
    probe.tell(vec![sample(at, &[(1, 1_500.0), (2, 650.5)])]).await;

    let alert = alarms.until_only(any, "active").await;
    assert_eq!(
        (&alert["metric_type"], &alert["series"], &alert["unit"]),
        (&json!("series"), &json!("fan_speed"), &json!("rpm"))
    );
    assert_eq!(
        (&alert["target"], &alert["worst_target"], &alert["value"]),
        (&Value::Null, &json!("case"), &json!(650.5))
    );
    assert_eq!(alert["message"], "fan_speed of case is 650.5 rpm on web-1, under 800 rpm");
    let alert = alarms.until_only(other, "active").await;
    assert_eq!((&alert["target"], &alert["worst_target"]), (&json!("case"), &Value::Null));
    alarms.expect_none(one).await;

    // A sample without it is no recovery, and neither is a value between the two.
    let at = probe.moment();
    probe.tell(vec![sample(at, &[])]).await;
    let at = probe.moment();
    probe.tell(vec![sample(at, &[(1, 1_500.0), (2, 900.0)])]).await;
    assert_eq!(alarms.only(any).await["status"], "active");
    let resolved = alarms.until_only(other, "resolved").await;
    assert_eq!(resolved["resolved_by"], "recovery");
    let at = probe.moment();
    probe.tell(vec![sample(at, &[(2, 1_000.0), (1, 1_500.0)])]).await;
    assert_eq!(alarms.until_only(any, "resolved").await["resolved_by"], "recovery");
}

#[actix_web::test]
async fn it_must_hold_for_its_duration_across_a_reconnect_and_a_restart() {
    let site = Site::start().await;
    let threshold = Alarms::at(&site).add(slow(800.0).target("cpu").lasting(60)).await;
    let mut probe = Probe::at(&site).await;
    let end = probe.moment();
    describe(&mut probe.agent, fans()).await;
    probe
        .tell(vec![sample(end.plus_millis(-60_000), &[(1, 500.0)]), sample(end.plus_millis(-30_000), &[(1, 500.0)])])
        .await;
    drop(probe);

    let site = site.restart().await;
    let (alarms, mut probe) = (Alarms::at(&site), Probe::at(&site).await);
    alarms.expect_none(threshold).await;
    describe(&mut probe.agent, vec![fan(7, "cpu")]).await;
    probe.tell(vec![sample(end, &[(7, 400.0)])]).await;

    let alert = alarms.until_only(threshold, "active").await;
    assert_eq!(alert["value"], 400.0);
    assert_eq!(alert["message"], "fan_speed of cpu is 400 rpm on web-1, under 800 rpm for 1 min");
}

#[actix_web::test]
async fn a_counter_is_watched_by_its_rate() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("series", "gt", 1_000.0).with("series", "written")).await;
    let mut probe = Probe::at(&site).await;
    describe(&mut probe.agent, vec![series(1, "written", Unit::Bytes, SeriesKind::Counter, None)]).await;
    let end = probe.moment();

    probe.tell(vec![sample(end.plus_millis(-5_000), &[(1, 1e9)]), sample(end, &[(1, 1e9 + 10_000.0)])]).await;

    let alert = alarms.until_only(threshold, "active").await;
    assert_eq!((&alert["value"], &alert["unit"]), (&json!(2_000.0), &json!("bytes_per_second")));
    assert_eq!(alert["message"], "written is 2 kB/s on web-1, over 1 kB/s");
}

#[actix_web::test]
async fn a_series_that_is_gone_for_long_ends_its_alert() {
    let site = Site::start_with(|config| config.timing.target_gone = Duration::from_secs(10)).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(slow(800.0).target("cpu")).await;
    let mut probe = Probe::at(&site).await;
    describe(&mut probe.agent, fans()).await;
    let start = probe.moment();
    let at = |seconds: i64| start.plus_millis(seconds * 1_000);
    probe.tell(vec![sample(at(0), &[(1, 500.0)]), sample(at(1), &[(2, 1.0)]), sample(at(10), &[(2, 1.0)])]).await;
    assert_eq!(alarms.only(threshold).await["status"], "active", "it may come back");

    probe.tell(vec![sample(at(11), &[(2, 1.0)])]).await;

    assert_eq!(alarms.until_only(threshold, "resolved").await["resolved_by"], "target_gone");
}

#[actix_web::test]
async fn a_series_that_could_not_be_read_is_not_gone_and_the_others_are_no_recovery() {
    let site = Site::start_with(|config| config.timing.target_gone = Duration::from_secs(10)).await;
    let alarms = Alarms::at(&site);
    let [one, any] = [alarms.add(slow(800.0).target("cpu")).await, alarms.add(slow(800.0)).await];
    let mut probe = Probe::at(&site).await;
    describe(&mut probe.agent, fans()).await;
    let start = probe.moment();
    let at = |seconds: i64| start.plus_millis(seconds * 1_000);
    let hanging = |seconds| {
        let unread = vec![Unread { list: "series".to_owned(), name: Some("fan_speed:cpu".to_owned()) }];
        Sample { unread, ..sample(at(seconds), &[(2, 1_500.0)]) }
    };
    probe.tell(vec![sample(at(0), &[(1, 500.0), (2, 1_500.0)])]).await;

    probe.tell(vec![hanging(5), hanging(10), hanging(20)]).await;

    for threshold in [one, any] {
        assert_eq!(alarms.until_only(threshold, "active").await["value"], 500.0);
    }
    probe.tell(vec![sample(at(25), &[(1, 1_200.0), (2, 1_500.0)])]).await;
    for threshold in [one, any] {
        assert_eq!(alarms.until_only(threshold, "resolved").await["resolved_by"], "recovery");
    }
}

#[actix_web::test]
async fn a_threshold_on_a_series_needs_its_name_and_others_have_none() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let faults = async |body: Value| {
        let mut body = body;
        body["server_id"] = json!(site.server_id);
        body["comparison"] = json!("gt");
        body["threshold_value"] = json!(5);
        let call = site.service.client.post("/alerts/thresholds").bearer(&site.owner.token).json(body);
        let answer = call.expect(422).await;
        let faults = answer["detail"].as_array().unwrap().clone();
        faults.iter().map(|fault| (text_of(&fault["loc"][1]), text_of(&fault["type"]))).collect::<Vec<_>>()
    };
    let fault = |field: &str, kind: &str| vec![(field.to_owned(), kind.to_owned())];

    assert_eq!(faults(json!({"metric_type": "series"})).await, fault("series", "value_error.missing"));
    assert_eq!(
        faults(json!({"metric_type": "cpu", "series": "fan_speed"})).await,
        fault("series", "value_error.series")
    );
    for name in ["", "Fan", "fan_speed:cpu", "1fan"] {
        assert_eq!(
            faults(json!({"metric_type": "series", "series": name})).await,
            fault("series", "value_error.str.regex"),
            "{name}"
        );
    }

    let id = alarms.add(slow(800.0)).await;
    let path = format!("/alerts/thresholds/{id}");
    let read = alarms.read(&path).await;
    assert_eq!(
        (&read["metric_type"], &read["series"], &read["target"]),
        (&json!("series"), &json!("fan_speed"), &Value::Null)
    );
    let changed = alarms.change(id, json!({"series": "pump_speed", "target": "cpu"})).await;
    assert_eq!((&changed["series"], &changed["target"]), (&json!("pump_speed"), &json!("cpu")));
    let call = site.service.client.put(&path).bearer(&site.owner.token);
    let answer = call.json(json!({"metric_type": "disk"})).expect(422).await;
    assert_eq!(answer["detail"][0]["type"], "value_error.series");
    let changed = alarms.change(id, json!({"metric_type": "disk", "series": null})).await;
    assert_eq!((&changed["metric_type"], &changed["series"]), (&json!("disk"), &Value::Null));
}
