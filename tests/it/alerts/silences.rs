//! Alerts in a silence: recorded and shown, and marked.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;
use crate::support::text_of;

async fn silence(alarms: &Alarms, mut body: Value) -> String {
    if body.get("schedule").is_none() && body.get("ends_at").is_none() {
        body["ends_at"] = json!(Timestamp::now().plus_millis(3_600_000).to_string());
    }
    text_of(&alarms.post("/alerts/silences", body).await["id"])
}

/// Whether an alert that is raised now is silenced.
async fn is_silenced(site: &Site) -> bool {
    let alarms = Alarms::at(site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    Probe::at(site).await.cpu(95.0).await;
    let alert = alarms.until_only(threshold, "active").await;
    alarms.remove(threshold).await;
    alert["silenced"].as_bool().unwrap()
}

#[actix_web::test]
async fn an_alert_in_a_silence_is_recorded_told_and_marked() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    silence(&alarms, json!({"server_id": site.server_id, "reason": "new disks"})).await;
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut dashboard = alarms.watch().await;
    let mut probe = Probe::at(&site).await;

    probe.cpu(95.0).await;
    let alert = alarms.until_only(threshold, "active").await;
    probe.cpu(10.0).await;
    let resolved = alarms.until_only(threshold, "resolved").await;

    assert_eq!((&alert["silenced"], &resolved["silenced"]), (&json!(true), &json!(true)));
    assert_eq!(dashboard.until("alert").await, alert);
    assert_eq!(alarms.timeline(&alert).await, ["triggered", "silenced", "resolved"]);
}

#[actix_web::test]
async fn a_silence_holds_for_what_it_names() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let (other_id, _) = alarms.server("web-2", &[]).await;
    let path = format!("/servers/{}", site.server_id);
    alarms.put(&path, json!({"tags": ["eu", "prod"]})).await;

    for (reach, holds) in [
        (json!({"server_id": site.server_id}), true),
        (json!({"server_id": other_id}), false),
        (json!({"tag": "prod"}), true),
        (json!({"tag": "pro"}), false),
        (json!({"all": true}), true),
    ] {
        let id = silence(&alarms, reach.clone()).await;
        assert_eq!(is_silenced(&site).await, holds, "{reach}");
        alarms.delete(&format!("/alerts/silences/{id}")).await;
        assert!(!is_silenced(&site).await, "{reach} is gone");
    }
}

#[actix_web::test]
async fn a_silence_holds_while_it_lasts() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let at = |seconds: i64| Timestamp::now().plus_millis(1000 * seconds).to_string();
    let zone = "Pacific/Kiritimati";
    let always =
        json!({"weekdays": [1, 2, 3, 4, 5, 6, 7], "start": "00:00", "duration_minutes": 1440, "time_zone": zone});

    for (times, holds) in [
        (json!({"ends_at": at(3600)}), true),
        (json!({"starts_at": at(-3600), "ends_at": at(3600)}), true),
        (json!({"starts_at": at(1800), "ends_at": at(3600)}), false),
        (json!({"schedule": always}), true),
        (json!({"schedule": always, "starts_at": at(1800)}), false),
        (json!({"schedule": always, "starts_at": at(-1800)}), true),
    ] {
        let mut body = times.clone();
        body["all"] = json!(true);
        let id = silence(&alarms, body).await;
        assert_eq!(is_silenced(&site).await, holds, "{times}");
        alarms.delete(&format!("/alerts/silences/{id}")).await;
    }
}

#[actix_web::test]
async fn a_silence_of_somebody_else_holds_for_nothing() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let (server_id, _) = site.service.server_with_key(&stranger, "theirs").await;
    let theirs = Alarms::of(&site.service, &stranger, server_id);

    silence(&theirs, json!({"all": true})).await;

    assert!(!is_silenced(&site).await);
}

#[actix_web::test]
async fn an_alert_that_was_raised_before_a_silence_is_not_marked() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    probe.cpu(95.0).await;
    let active = alarms.until_only(threshold, "active").await;

    silence(&alarms, json!({"all": true})).await;
    probe.cpu(94.0).await;

    assert_eq!(alarms.only(threshold).await, active);
}
