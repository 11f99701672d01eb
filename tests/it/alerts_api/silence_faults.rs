//! Malformed silences: every fault is reported at once.

use serde_json::{Value, json};

use super::{silence_path, with};
use crate::support::site::Site;

const START: &str = "2026-11-20T10:00:00Z";
const END: &str = "2026-11-20T12:00:00Z";

fn once() -> Value {
    json!({"all": true, "starts_at": START, "ends_at": END})
}

fn schedule() -> Value {
    json!({"weekdays": ["mon"], "start": "22:00", "duration_minutes": 60, "time_zone": "Europe/Berlin"})
}

#[actix_web::test]
async fn a_field_that_does_not_fit_is_the_one_fault() {
    let site = Site::start().await;
    let cases = [
        (json!({"all": null}), "server_id", "value_error.missing"),
        (json!({"all": false}), "server_id", "value_error.missing"),
        (json!({"tag": "web"}), "all", "value_error.reach"),
        (json!({"server_id": "web-1"}), "server_id", "type_error.uuid"),
        (json!({"reason": 5}), "reason", "type_error.str"),
        (json!({"reason": "ä".repeat(201)}), "reason", "value_error.any_str.max_length"),
        (json!({"reason": "a\0b"}), "reason", "value_error.str.control"),
        (json!({"starts_at": "now"}), "starts_at", "value_error.datetime"),
        (json!({"starts_at": 5}), "starts_at", "value_error.datetime"),
        (json!({"starts_at": END}), "ends_at", "value_error.range"),
        (json!({"starts_at": null}), "ends_at", "value_error.range"),
        (json!({"ends_at": null}), "ends_at", "value_error.missing"),
        (json!({"ends_at": "2026-11-20"}), "ends_at", "value_error.datetime"),
        (json!({"ends_at": "2027-11-22T10:00:00Z"}), "ends_at", "value_error.range"),
        (json!({"schedule": "daily"}), "schedule", "type_error.dict"),
        (json!({"schedule": schedule(), "ends_at": START}), "ends_at", "value_error.range"),
    ];

    for (fields, field, kind) in cases {
        let body = with(once(), fields);
        site.post("/alerts/silences").json(body).expect_faults(422, &[("body", field, kind)]).await;
    }
    assert_eq!(site.read("/alerts/silences").await, json!([]));
}

#[actix_web::test]
async fn values_at_their_limits_are_taken() {
    let site = Site::start().await;
    let cases = [
        json!({"reason": "ä".repeat(200)}),
        json!({"ends_at": "2027-11-21T10:00:00Z"}),
        json!({"ends_at": "2036-11-21T10:00:00+05:30", "schedule": schedule()}),
        json!({"schedule": with(schedule(), json!({"start": "23:59", "duration_minutes": 10_080}))}),
        json!({"schedule": with(schedule(), json!({"start": "00:00", "duration_minutes": 1}))}),
    ];

    for fields in cases {
        site.new_silence(with(once(), fields)).await;
    }
}

#[actix_web::test]
async fn an_invalid_schedule_is_reported() {
    let site = Site::start().await;
    let cases = [
        (json!({"weekdays": []}), "weekdays", "value_error.list.min_items"),
        (json!({"weekdays": [1, 2, 3, 4, 5, 6, 7, 1]}), "weekdays", "value_error.list.max_items"),
        (json!({"weekdays": "mon"}), "weekdays", "type_error.list"),
        (json!({"weekdays": [0]}), "weekdays.0", "type_error.enum"),
        (json!({"weekdays": [1, 8]}), "weekdays.1", "type_error.enum"),
        (json!({"weekdays": [-1]}), "weekdays.0", "type_error.enum"),
        (json!({"weekdays": ["monday"]}), "weekdays.0", "type_error.enum"),
        (json!({"weekdays": [true]}), "weekdays.0", "type_error.str"),
        (json!({"start": "24:00"}), "start", "value_error.time"),
        (json!({"start": "9:00"}), "start", "value_error.time"),
        (json!({"start": "22:00:00"}), "start", "value_error.time"),
        (json!({"start": 1_320}), "start", "type_error.str"),
        (json!({"duration_minutes": 0}), "duration_minutes", "value_error.number.not_ge"),
        (json!({"duration_minutes": 10_081}), "duration_minutes", "value_error.number.not_le"),
        (json!({"duration_minutes": "60"}), "duration_minutes", "type_error.integer"),
        (json!({"time_zone": "Mars/Olympus"}), "time_zone", "value_error.time_zone"),
        (json!({"time_zone": "+01:00"}), "time_zone", "value_error.time_zone"),
        (json!({"time_zone": ""}), "time_zone", "value_error.time_zone"),
        (json!({"time_zone": null}), "time_zone", "type_error.none.not_allowed"),
    ];

    for (fields, field, kind) in cases {
        let body = json!({"all": true, "schedule": with(schedule(), fields)});
        let field = format!("schedule.{field}");
        site.post("/alerts/silences").json(body).expect_faults(422, &[("body", &field, kind)]).await;
    }
}

#[actix_web::test]
async fn every_fault_is_reported_at_once() {
    let site = Site::start().await;
    let body = json!({"tag": 5, "reason": 5, "starts_at": "now", "schedule": {"weekdays": [9], "start": "1"}});

    let faults = [
        ("body", "tag", "type_error.str"),
        ("body", "reason", "type_error.str"),
        ("body", "starts_at", "value_error.datetime"),
        ("body", "schedule.weekdays.0", "type_error.enum"),
        ("body", "schedule.start", "value_error.time"),
        ("body", "schedule.duration_minutes", "value_error.missing"),
        ("body", "schedule.time_zone", "value_error.missing"),
    ];
    site.post("/alerts/silences").json(body).expect_faults(422, &faults).await;
    let missing = ["server_id", "ends_at"].map(|field| ("body", field, "value_error.missing"));
    site.post("/alerts/silences").json(json!({})).expect_faults(422, &missing).await;
}

#[actix_web::test]
async fn a_change_must_leave_something_that_fits() {
    let site = Site::start().await;
    let path = silence_path(&site.new_silence(once()).await);
    let before = site.read(&path).await;
    let cases = [
        (json!({"ends_at": START}), ("ends_at", "value_error.range")),
        (json!({"starts_at": END}), ("ends_at", "value_error.range")),
        (json!({"ends_at": null}), ("ends_at", "value_error.missing")),
        (json!({"all": false}), ("server_id", "value_error.missing")),
        (json!({"all": true, "tag": "web"}), ("all", "value_error.reach")),
        (json!({"ends_at": "soon"}), ("ends_at", "value_error.datetime")),
    ];

    for (body, (field, kind)) in cases {
        site.put(&path).json(body).expect_faults(422, &[("body", field, kind)]).await;
    }
    assert_eq!(site.read(&path).await, before);
}
