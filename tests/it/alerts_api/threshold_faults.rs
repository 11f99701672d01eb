//! Malformed thresholds: every fault is reported at once.

use serde_json::json;

use super::{with, without};
use crate::support::site::Site;

#[actix_web::test]
async fn a_field_that_does_not_fit_is_the_one_fault() {
    let site = Site::start().await;
    let cases = [
        (json!({"server_id": "web-1"}), "server_id", "type_error.uuid"),
        (json!({"server_id": 5}), "server_id", "type_error.uuid"),
        (json!({"server_id": null}), "server_id", "value_error.missing"),
        (json!({"server_id": null, "all": false}), "server_id", "value_error.missing"),
        (json!({"tag": "web"}), "tag", "value_error.reach"),
        (json!({"tag": ""}), "tag", "value_error.any_str.min_length"),
        (json!({"tag": 5}), "tag", "type_error.str"),
        (json!({"all": true}), "all", "value_error.reach"),
        (json!({"all": "yes"}), "all", "type_error.bool"),
        (json!({"metric_type": "gpu"}), "metric_type", "type_error.enum"),
        (json!({"metric_type": "CPU"}), "metric_type", "type_error.enum"),
        (json!({"metric_type": 5}), "metric_type", "type_error.str"),
        (json!({"metric_type": null}), "metric_type", "type_error.none.not_allowed"),
        (json!({"comparison": "eq"}), "comparison", "type_error.enum"),
        (json!({"comparison": ">"}), "comparison", "type_error.enum"),
        (json!({"comparison": null}), "comparison", "type_error.none.not_allowed"),
        (json!({"severity": "fatal"}), "severity", "type_error.enum"),
        (json!({"threshold_value": "90"}), "threshold_value", "type_error.float"),
        (json!({"threshold_value": null}), "threshold_value", "type_error.none.not_allowed"),
        (json!({"threshold_value": true}), "threshold_value", "type_error.float"),
        (json!({"threshold_value": 1.1e15}), "threshold_value", "value_error.number.not_le"),
        (json!({"threshold_value": -1.1e15}), "threshold_value", "value_error.number.not_ge"),
        (json!({"threshold_value": u64::MAX}), "threshold_value", "value_error.number.not_le"),
        (json!({"metric_type": "offline", "threshold_value": -1}), "threshold_value", "value_error.number.not_ge"),
        (json!({"clear_value": "80"}), "clear_value", "type_error.float"),
        (json!({"clear_value": 90.5}), "clear_value", "value_error.range"),
        (json!({"comparison": "lte", "clear_value": 89.5}), "clear_value", "value_error.range"),
        (json!({"duration_seconds": -1}), "duration_seconds", "value_error.number.not_ge"),
        (json!({"duration_seconds": 86_401}), "duration_seconds", "value_error.number.not_le"),
        (json!({"duration_seconds": 1.5}), "duration_seconds", "type_error.integer"),
        (json!({"target": "/"}), "target", "value_error.target"),
        (json!({"metric_type": "disk", "target": ""}), "target", "value_error.any_str.min_length"),
        (json!({"metric_type": "disk", "target": "a".repeat(4_097)}), "target", "value_error.any_str.max_length"),
        (json!({"metric_type": "disk", "target": "a\0b"}), "target", "value_error.str.control"),
        (json!({"metric_type": "disk", "target": ["/"]}), "target", "type_error.str"),
        (json!({"states": ["stopped"]}), "states", "value_error.states"),
        (json!({"enabled": "true"}), "enabled", "type_error.bool"),
    ];

    for (fields, field, kind) in cases {
        let body = with(site.cpu_threshold(), fields);
        site.post("/alerts/thresholds").json(body).expect_faults(422, &[("body", field, kind)]).await;
    }
    assert_eq!(site.read("/alerts/thresholds").await, json!([]));
}

#[actix_web::test]
async fn an_invalid_container_rule_is_reported() {
    let site = Site::start().await;
    let rule = json!({"server_id": site.server_id, "metric_type": "container_state"});
    let cases = [
        (json!({"comparison": "gt"}), "comparison", "type_error.enum"),
        (json!({"threshold_value": 0.5}), "threshold_value", "value_error.number.not_ge"),
        (json!({"threshold_value": 101}), "threshold_value", "value_error.number.not_le"),
        (json!({"clear_value": 1}), "clear_value", "value_error.clear"),
        (json!({"states": []}), "states", "value_error.list.min_items"),
        (json!({"states": vec!["stopped"; 4]}), "states", "value_error.list.max_items"),
        (json!({"states": "stopped"}), "states", "type_error.list"),
        (json!({"states": ["paused"]}), "states.0", "type_error.enum"),
        (json!({"states": [5]}), "states.0", "type_error.str"),
    ];

    for (fields, field, kind) in cases {
        let body = with(rule.clone(), fields);
        site.post("/alerts/thresholds").json(body).expect_faults(422, &[("body", field, kind)]).await;
    }
}

#[actix_web::test]
async fn all_missing_fields_are_reported_at_once() {
    let site = Site::start().await;

    let faults = ["server_id", "metric_type", "threshold_value", "comparison"]
        .map(|field| ("body", field, "value_error.missing"));
    site.post("/alerts/thresholds").json(json!({})).expect_faults(422, &faults).await;

    for field in ["server_id", "metric_type", "threshold_value", "comparison"] {
        let body = without(site.cpu_threshold(), &[field]);
        site.post("/alerts/thresholds").json(body).expect_faults(422, &[("body", field, "value_error.missing")]).await;
    }
    site.new_threshold(without(site.cpu_threshold(), &["enabled"])).await;
}

#[actix_web::test]
async fn every_fault_is_reported_at_once_even_of_fields_together() {
    let site = Site::start().await;
    let body = json!({
        "server_id": site.server_id, "tag": "web", "all": true, "metric_type": "cpu", "threshold_value": 90,
        "comparison": "gt", "clear_value": 95, "duration_seconds": -1, "target": "/", "states": ["stopped"],
        "severity": "fatal", "enabled": 1,
    });

    let faults = [
        ("body", "tag", "value_error.reach"),
        ("body", "all", "value_error.reach"),
        ("body", "clear_value", "value_error.range"),
        ("body", "duration_seconds", "value_error.number.not_ge"),
        ("body", "target", "value_error.target"),
        ("body", "states", "value_error.states"),
        ("body", "severity", "type_error.enum"),
        ("body", "enabled", "type_error.bool"),
    ];
    site.post("/alerts/thresholds").json(body).expect_faults(422, &faults).await;
}

#[actix_web::test]
async fn a_malformed_change_is_reported_before_any_lookup() {
    let site = Site::start().await;
    let body = json!({"metric_type": "gpu", "duration_seconds": 86_401, "enabled": "no", "target": 5});

    let faults = [
        ("path", "id", "type_error.uuid"),
        ("body", "metric_type", "type_error.enum"),
        ("body", "duration_seconds", "value_error.number.not_le"),
        ("body", "enabled", "type_error.bool"),
        ("body", "target", "type_error.str"),
    ];
    site.put("/alerts/thresholds/first").json(body).expect_faults(422, &faults).await;
}

#[actix_web::test]
async fn a_body_that_is_no_object_is_reported() {
    let site = Site::start().await;
    let path = "/alerts/thresholds";

    site.post(path).raw("application/json", "{").expect_faults(422, &[("body", "", "value_error.jsondecode")]).await;
    site.post(path).raw("application/json", "[]").expect_faults(422, &[("body", "", "type_error.dict")]).await;
    site.post(path).expect_faults(422, &[("body", "", "value_error.missing")]).await;
    // JSON has no infinity, and a number that is too large is not rounded to one.
    let huge = r#"{"metric_type": "cpu", "threshold_value": 1e999}"#;
    site.post(path).raw("application/json", huge).expect_faults(422, &[("body", "", "value_error.jsondecode")]).await;
}

#[actix_web::test]
async fn an_invalid_filter_is_reported() {
    let site = Site::start().await;
    let query = "server_id=web-1&enabled=maybe&metric_type=gpu&limit=0&offset=-1";

    let faults = [
        ("query", "server_id", "type_error.uuid"),
        ("query", "enabled", "type_error.bool"),
        ("query", "metric_type", "type_error.enum"),
        ("query", "limit", "value_error.number.not_ge"),
        ("query", "offset", "value_error.number.not_ge"),
    ];
    site.get(format!("/alerts/thresholds?{query}")).expect_faults(422, &faults).await;
}
