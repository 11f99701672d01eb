//! Thresholds as they are made, read, listed and deleted.

use serde_json::{Value, json};

use super::{of_server, threshold_path, with, without};
use crate::support::site::Site;
use crate::support::{assert_timestamp, keys_of, text_of, uuid_of};

#[actix_web::test]
async fn the_request_of_the_specification_makes_one() {
    let site = Site::start().await;

    let threshold = site.new_threshold(site.cpu_threshold()).await;

    let fields = "all clear_value comparison created_at duration_seconds enabled id metric_type series server_id severity \
                  states tag target threshold_value updated_at";
    assert_eq!(keys_of(&threshold), fields.split_whitespace().collect::<Vec<_>>());
    assert_eq!(uuid_of(&threshold["id"]).get_version_num(), 7);
    assert_eq!(threshold["server_id"], json!(site.server_id));
    assert_eq!((&threshold["metric_type"], &threshold["comparison"]), (&json!("cpu"), &json!("gt")));
    assert_eq!(threshold["threshold_value"].as_f64(), Some(90.0));
    assert_eq!((&threshold["enabled"], &threshold["duration_seconds"]), (&json!(true), &json!(0)));
    assert_eq!((&threshold["severity"], &threshold["all"]), (&json!("warning"), &json!(false)));
    for field in ["tag", "target", "clear_value", "states", "series"] {
        assert_eq!(threshold[field], Value::Null, "{field}");
    }
    assert_timestamp(&threshold["created_at"]);
    assert_timestamp(&threshold["updated_at"]);
    assert_eq!(site.read(&threshold_path(&threshold)).await, threshold);
    assert_eq!(site.read("/alerts/thresholds").await, json!([threshold]));
}

#[actix_web::test]
async fn every_field_is_kept_as_it_was_said() {
    let site = Site::start().await;
    let body = json!({
        "server_id": site.server_id, "metric_type": "disk", "threshold_value": 92.5, "clear_value": 85.25,
        "comparison": "gte", "duration_seconds": 86_400, "target": "/var/lib", "severity": "critical",
        "enabled": false,
    });

    let threshold = site.new_threshold(body.clone()).await;

    for (name, value) in body.as_object().unwrap() {
        assert_eq!(&threshold[name], value, "{name}");
    }
}

#[actix_web::test]
async fn every_metric_and_comparison_makes_one() {
    let site = Site::start().await;
    let metrics = ["cpu", "memory", "swap", "disk", "load", "network_in", "network_out", "temperature", "offline"];

    for metric in metrics {
        for comparison in ["gt", "gte", "lt", "lte"] {
            let fields = json!({"metric_type": metric, "comparison": comparison});
            let threshold = site.new_threshold(with(site.cpu_threshold(), fields)).await;
            assert_eq!((&threshold["metric_type"], &threshold["comparison"]), (&json!(metric), &json!(comparison)));
        }
    }
}

#[actix_web::test]
async fn values_at_their_limits_are_taken() {
    let site = Site::start().await;
    let cases = [
        json!({"metric_type": "temperature", "threshold_value": -40}),
        json!({"metric_type": "network_in", "threshold_value": 1e15}),
        json!({"metric_type": "offline", "threshold_value": 0}),
        json!({"clear_value": 90}),
        json!({"comparison": "lt", "clear_value": 95}),
        json!({"duration_seconds": 0}),
        json!({"duration_seconds": 86_400}),
        json!({"metric_type": "disk", "target": "ä".repeat(500)}),
        json!({"metric_type": "container_state", "threshold_value": 1, "comparison": "gte", "target": "web-*"}),
        json!({"metric_type": "container_state", "threshold_value": 100, "comparison": "gte"}),
        json!({"duration_seconds": null, "target": null, "clear_value": null, "severity": null, "states": null,
               "enabled": null, "tag": null, "all": null}),
    ];

    for fields in cases {
        site.new_threshold(with(site.cpu_threshold(), fields)).await;
    }
}

#[actix_web::test]
async fn a_container_rule_needs_neither_value_nor_comparison() {
    let site = Site::start().await;
    let body = json!({"server_id": site.server_id, "metric_type": "container_state", "target": "web-?",
                      "states": ["restart_loop", "stopped", "stopped"]});

    let some = site.new_threshold(body.clone()).await;
    let all = site.new_threshold(without(body, &["states", "target"])).await;

    assert_eq!((some["threshold_value"].as_f64(), &some["comparison"]), (Some(3.0), &json!("gte")));
    assert_eq!((&some["states"], &some["target"]), (&json!(["stopped", "restart_loop"]), &json!("web-?")));
    assert_eq!((&all["states"], &all["target"]), (&Value::Null, &Value::Null));
}

#[actix_web::test]
async fn one_may_be_for_a_tag_or_for_all() {
    let site = Site::start().await;
    let rule = without(site.cpu_threshold(), &["server_id"]);

    let tagged = site.new_threshold(with(rule.clone(), json!({"tag": "production"}))).await;
    let all = site.new_threshold(with(rule, json!({"all": true, "tag": null}))).await;

    let reach =
        |threshold: &Value| (threshold["server_id"].clone(), threshold["tag"].clone(), threshold["all"].clone());
    assert_eq!(reach(&tagged), (Value::Null, json!("production"), json!(false)));
    assert_eq!(reach(&all), (Value::Null, Value::Null, json!(true)));
}

#[actix_web::test]
async fn the_newest_come_first_and_in_pages() {
    let site = Site::start().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(text_of(&site.new_threshold(site.cpu_threshold()).await["id"]));
    }
    ids.reverse();

    assert_eq!(site.listed("/alerts/thresholds").await, (ids.clone(), "3".to_owned()));
    let page = site.listed("/alerts/thresholds?limit=1&offset=1").await;
    assert_eq!(page, (vec![ids[1].clone()], "3".to_owned()));
}

#[actix_web::test]
async fn they_are_found_by_server_metric_and_whether_they_are_enabled() {
    let site = Site::start().await;
    let (other_id, _) = site.other_server().await;
    let cpu = text_of(&site.new_threshold(site.cpu_threshold()).await["id"]);
    let off = with(of_server(site.server_id), json!({"enabled": false}));
    let off = text_of(&site.new_threshold(off).await["id"]);
    let other = text_of(&site.new_threshold(of_server(other_id)).await["id"]);
    let all = with(site.cpu_threshold(), json!({"server_id": null, "all": true}));
    let all = text_of(&site.new_threshold(all).await["id"]);
    let found = async |query: &str| site.listed(&format!("/alerts/thresholds?{query}")).await.0;

    assert_eq!(found(&format!("server_id={}", site.server_id)).await, [off.clone(), cpu.clone()]);
    assert_eq!(found("metric_type=cpu").await, [all.clone(), cpu.clone()]);
    assert_eq!(found("enabled=false").await, [off]);
    assert_eq!(found("enabled=true").await, [all, other, cpu.clone()]);
    assert_eq!(found(&format!("server_id={}&metric_type=cpu", site.server_id)).await, [cpu]);
    assert!(found(&format!("server_id={}", uuid::Uuid::now_v7())).await.is_empty());
}

#[actix_web::test]
async fn a_deleted_one_is_gone() {
    let site = Site::start().await;
    let path = threshold_path(&site.new_threshold(site.cpu_threshold()).await);

    let answer = site.delete(&path).expect(200).await;

    assert_eq!(answer, json!({"data": null, "message": "Threshold deleted"}));
    site.get(&path).expect_error(404, "not_found").await;
    site.put(&path).json(json!({"enabled": false})).expect_error(404, "not_found").await;
    site.delete(&path).expect_error(404, "not_found").await;
    assert_eq!(site.read("/alerts/thresholds").await, json!([]));
}

#[actix_web::test]
async fn they_go_with_their_server_and_templates_stay() {
    let site = Site::start().await;
    let path = threshold_path(&site.new_threshold(site.cpu_threshold()).await);
    let template = with(site.cpu_threshold(), json!({"server_id": null, "all": true}));
    let template = threshold_path(&site.new_threshold(template).await);

    site.delete_server().await;

    site.get(&path).expect_error(404, "not_found").await;
    site.get(&template).expect(200).await;
}
