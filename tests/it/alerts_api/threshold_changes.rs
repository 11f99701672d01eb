//! Changes of thresholds: what stays, what goes, what must fit, and their audit entries.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::{threshold_path, with};
use crate::support::site::Site;
use crate::support::{eventually, text_of, uuid_of};

/// Since when the threshold applies, as stored.
async fn armed_at(site: &Site, threshold: &Value) -> Timestamp {
    let id = uuid_of(&threshold["id"]);
    let row = site.service.state.store.find_threshold(id).await.unwrap();
    row.unwrap().armed_at.into()
}

/// Waits until the clock has advanced, so that the times before and after differ.
async fn a_moment_later() {
    let before = Timestamp::now();
    eventually("time passes", || async { (Timestamp::now() > before).then_some(()) }).await;
}

#[actix_web::test]
async fn only_what_is_named_changes() {
    let site = Site::start().await;
    let fields = json!({"metric_type": "disk", "target": "/", "clear_value": 80, "duration_seconds": 60});
    let threshold = site.new_threshold(with(site.cpu_threshold(), fields)).await;
    let path = threshold_path(&threshold);
    a_moment_later().await;

    let changed = site.put(&path).json(json!({"threshold_value": 95.5, "severity": "critical"})).expect(200).await;

    let updated_at = text_of(&changed["updated_at"]);
    assert!(updated_at > text_of(&threshold["updated_at"]));
    let expected = with(threshold, json!({"threshold_value": 95.5, "severity": "critical", "updated_at": updated_at}));
    assert_eq!(changed, expected);
    assert_eq!(site.read(&path).await, expected);
}

#[actix_web::test]
async fn null_takes_away_what_may_be_missing_and_leaves_the_rest() {
    let site = Site::start().await;
    let fields = json!({"metric_type": "disk", "target": "/", "clear_value": 80, "severity": "info"});
    let path = threshold_path(&site.new_threshold(with(site.cpu_threshold(), fields)).await);

    let nulls = json!({"target": null, "clear_value": null, "severity": null, "threshold_value": null, "tag": null});
    let changed = site.put(&path).json(nulls).expect(200).await;

    assert_eq!((&changed["target"], &changed["clear_value"]), (&Value::Null, &Value::Null));
    assert_eq!((&changed["severity"], changed["threshold_value"].as_f64()), (&json!("info"), Some(90.0)));
    assert_eq!(changed["server_id"], json!(site.server_id));
}

#[actix_web::test]
async fn what_was_read_may_be_written_back() {
    let site = Site::start().await;
    let all = with(site.cpu_threshold(), json!({"server_id": null, "all": true}));
    let containers = json!({"tag": "web", "metric_type": "container_state", "states": ["unhealthy"]});

    for body in [site.cpu_threshold(), all, containers] {
        let threshold = site.new_threshold(body).await;
        let written = site.put(threshold_path(&threshold)).json(threshold.clone()).expect(200).await;
        assert_eq!(with(written, json!({"updated_at": null})), with(threshold, json!({"updated_at": null})));
    }
}

#[actix_web::test]
async fn one_may_be_for_other_servers() {
    let site = Site::start().await;
    let (other_id, _) = site.other_server().await;
    let path = threshold_path(&site.new_threshold(site.cpu_threshold()).await);
    let reach = async |body: Value| {
        let changed = site.put(&path).json(body).expect(200).await;
        json!([changed["server_id"], changed["tag"], changed["all"]])
    };

    assert_eq!(reach(json!({"tag": "web"})).await, json!([null, "web", false]));
    assert_eq!(reach(json!({"all": true, "tag": null})).await, json!([null, null, true]));
    assert_eq!(reach(json!({"server_id": other_id, "all": false})).await, json!([other_id, null, false]));
}

#[actix_web::test]
async fn a_change_must_leave_something_that_fits() {
    let site = Site::start().await;
    let threshold = with(site.cpu_threshold(), json!({"metric_type": "disk", "target": "/", "clear_value": 80}));
    let path = threshold_path(&site.new_threshold(threshold).await);
    let cases = [
        (json!({"metric_type": "cpu"}), vec![("body", "target", "value_error.target")]),
        (json!({"threshold_value": 70}), vec![("body", "clear_value", "value_error.range")]),
        (json!({"comparison": "lt"}), vec![("body", "clear_value", "value_error.range")]),
        (json!({"clear_value": 91}), vec![("body", "clear_value", "value_error.range")]),
        (json!({"states": ["stopped"]}), vec![("body", "states", "value_error.states")]),
        (json!({"server_id": null}), vec![("body", "server_id", "value_error.missing")]),
        (json!({"tag": "a", "all": true}), vec![("body", "all", "value_error.reach")]),
        (
            json!({"metric_type": "container_state", "server_id": null}),
            vec![
                ("body", "server_id", "value_error.missing"),
                ("body", "comparison", "type_error.enum"),
                ("body", "clear_value", "value_error.clear"),
            ],
        ),
    ];

    let before = site.read(&path).await;
    for (body, faults) in cases {
        site.put(&path).json(body).expect_faults(422, &faults).await;
    }
    assert_eq!(site.read(&path).await, before);
    site.put(&path).json(json!({"metric_type": "cpu", "target": null})).expect(200).await;
}

#[actix_web::test]
async fn another_server_must_be_ones_own() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let (strange_id, _) = site.service.server_with_key(&stranger, "web-9").await;
    let path = threshold_path(&site.new_threshold(site.cpu_threshold()).await);

    site.put(&path).json(json!({"server_id": strange_id})).expect_error(404, "not_found").await;

    assert_eq!(site.read(&path).await["server_id"], json!(site.server_id));
}

#[actix_web::test]
async fn what_decides_about_firing_counts_from_its_change() {
    let site = Site::start().await;
    let fields = json!({"metric_type": "disk", "target": "/", "clear_value": 80});
    let threshold = site.new_threshold(with(site.cpu_threshold(), fields)).await;
    let path = threshold_path(&threshold);
    let changes = [
        (json!({"severity": "critical"}), false),
        (json!({"threshold_value": 90, "target": "/"}), false),
        (json!({"threshold_value": 91}), true),
        (json!({"clear_value": null}), true),
        (json!({"comparison": "gte"}), true),
        (json!({"duration_seconds": 5}), true),
        (json!({"target": "/var"}), true),
        (json!({"tag": "web"}), true),
        (json!({"enabled": false}), true),
        (json!({"enabled": true}), true),
        (json!({"metric_type": "temperature"}), true),
    ];

    let mut before = armed_at(&site, &threshold).await;
    for (change, is_armed_anew) in changes {
        a_moment_later().await;
        site.put(&path).json(change.clone()).expect(200).await;
        let after = armed_at(&site, &threshold).await;
        assert_eq!(after > before, is_armed_anew, "{change}");
        before = after;
    }
}

#[actix_web::test]
async fn changes_at_the_same_time_are_all_made() {
    let site = Site::start().await;
    let path = threshold_path(&site.new_threshold(site.cpu_threshold()).await);
    let changes = [json!({"severity": "info"}), json!({"duration_seconds": 7}), json!({"threshold_value": 50})];

    let calls = changes.map(|change| actix_web::rt::spawn(site.put(&path).json(change).send()));
    for call in calls {
        assert_eq!(call.await.unwrap().status, 200);
    }

    let threshold = site.read(&path).await;
    let all = (&threshold["severity"], &threshold["duration_seconds"], threshold["threshold_value"].as_f64());
    assert_eq!(all, (&json!("info"), &json!(7), Some(50.0)));
}

#[actix_web::test]
async fn the_audit_log_tells_who_changed_what() {
    let site = Site::start().await;
    let threshold = site.new_threshold(site.cpu_threshold()).await;
    let created = site.last_entry().await;
    site.put(threshold_path(&threshold)).json(json!({"threshold_value": 95, "tag": "web"})).expect(200).await;
    let updated = site.last_entry().await;
    site.delete(threshold_path(&threshold)).expect(200).await;
    let deleted = site.last_entry().await;

    for entry in [&created, &updated, &deleted] {
        assert_eq!((&entry["target"], &entry["user_id"]), (&threshold["id"], &json!(site.owner.id)));
        assert_eq!(entry["outcome"], "ok");
    }
    assert_eq!((&created["action"], &created["server_id"]), (&json!("threshold.create"), &json!(site.server_id)));
    assert_eq!((&created["server_name"], &created["detail"]["metric_type"]), (&json!("web-1"), &json!("cpu")));
    assert_eq!(updated["action"], "threshold.update");
    let change = json!({
        "threshold_value": {"from": 90.0, "to": 95.0}, "tag": {"from": null, "to": "web"},
        "server_id": {"from": site.server_id, "to": null},
    });
    assert_eq!(updated["detail"], change);
    assert_eq!((&deleted["action"], &deleted["server_id"]), (&json!("threshold.delete"), &Value::Null));
    assert_eq!(deleted["detail"]["tag"], "web");
}
