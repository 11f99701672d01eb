//! Alerts, thresholds and silences of a server that somebody shares: its role decides, as for everything else of the server.

use serde_json::{Value, json};

use super::Shared;
use crate::alerts_api::alerts::open_alert;
use crate::alerts_api::of_server;
use crate::support::{text_of, uuid_of};

/// A responder and those below and above: what each may do to an alert of the server.
#[actix_web::test]
async fn who_sees_a_server_reads_its_alerts_and_a_responder_handles_them() {
    let shared = Shared::start().await;
    let threshold = shared.site.new_threshold(of_server(shared.site.server_id)).await;
    let alert = open_alert(&shared.site, &threshold, "warning").await;
    let (path, list) = (format!("/alerts/{}", alert.id), format!("/alerts?server_id={}", shared.site.server_id));
    shared.by_guest("GET", &path).expect_error(404, "not_found").await;
    assert_eq!(shared.by_guest("GET", &list).expect(200).await, json!([]));

    let viewer = shared.grant_server("viewer", json!([])).await;
    assert_eq!(shared.by_guest("GET", &path).expect(200).await["id"], json!(alert.id));
    assert_eq!(uuid_of(&shared.by_guest("GET", &list).expect(200).await[0]["id"]), alert.id);
    for verb in ["acknowledge", "resolve"] {
        shared.by_guest("POST", &format!("{path}/{verb}")).expect_error(403, "forbidden").await;
    }
    shared.end(&viewer).await;
    shared.grant_server("responder", json!([])).await;
    let acknowledged = shared.by_guest("POST", &format!("{path}/acknowledge")).expect(200).await;
    let resolved = shared.by_guest("POST", &format!("{path}/resolve")).expect(200).await;

    assert_eq!((&acknowledged["status"], &resolved["status"]), (&json!("acknowledged"), &json!("resolved")));
    assert_eq!(resolved["resolved_by"], json!(shared.guest.id));
}

#[actix_web::test]
async fn a_responder_silences_the_server_and_a_viewer_only_sees_it() {
    let shared = Shared::start().await;
    let responder = shared.grant_server("responder", json!([])).await;
    let ends_at = signalbox_protocol::Timestamp::now().plus_millis(3_600_000).to_string();
    let body = json!({"server_id": shared.site.server_id, "ends_at": ends_at});
    let silence = shared.by_guest("POST", "/alerts/silences").json(body.clone()).expect(201).await;
    let path = format!("/alerts/silences/{}", text_of(&silence["id"]));
    let list = format!("/alerts/silences?server_id={}", shared.site.server_id);

    assert_eq!(shared.by_guest("GET", &path).expect(200).await, silence);
    assert_eq!(shared.by_guest("GET", &list).expect(200).await, json!([silence]));
    assert_eq!(shared.by_owner("GET", "/alerts/silences").expect(200).await, json!([silence]));
    shared.by_guest("PUT", &path).json(json!({"reason": "disk"})).expect(200).await;
    shared.end(&responder).await;
    shared.by_guest("GET", &path).expect_error(404, "not_found").await;
    shared.grant_server("viewer", json!([])).await;
    shared.by_guest("GET", &path).expect(200).await;
    shared.by_guest("DELETE", &path).expect_error(403, "forbidden").await;
    shared.by_guest("POST", "/alerts/silences").json(body).expect_error(403, "forbidden").await;
    shared.by_owner("DELETE", &path).expect(200).await;
}

#[actix_web::test]
async fn who_manages_a_server_makes_rules_for_it_and_for_no_other_server_of_its_owner() {
    let shared = Shared::start().await;
    shared.grant_server("manager", json!([])).await;
    let body = of_server(shared.site.server_id);
    let made = shared.by_guest("POST", "/alerts/thresholds").json(body.clone()).expect(201).await;
    let path = format!("/alerts/thresholds/{}", text_of(&made["id"]));
    let list = format!("/alerts/thresholds?server_id={}", shared.site.server_id);

    assert_eq!(shared.by_guest("GET", &path).expect(200).await, made);
    assert_eq!(shared.by_guest("GET", &list).expect(200).await, json!([made]));
    assert_eq!(shared.by_owner("GET", "/alerts/thresholds").expect(200).await, json!([made]));
    assert_eq!(shared.by_guest("GET", "/alerts/thresholds").expect(200).await, json!([]));
    shared.by_guest("PUT", &path).json(json!({"threshold_value": 70.0})).expect(200).await;
    for elsewhere in [json!({"server_id": null, "tag": "db"}), json!({"server_id": null, "all": true})] {
        shared.by_guest("PUT", &path).json(elsewhere).expect_error(403, "forbidden").await;
    }
    let own = shared.by_guest("POST", "/servers").json(json!({"name": "own", "host": "192.0.2.9"})).expect(201).await;
    let moved = json!({"server_id": own["id"]});
    shared.by_guest("PUT", &path).json(moved).expect_error(403, "forbidden").await;
    let kept: Value = shared.by_owner("GET", &path).expect(200).await;
    assert_eq!((&kept["server_id"], &kept["threshold_value"]), (&made["server_id"], &json!(70.0)));
    shared.by_guest("DELETE", &path).expect(200).await;
}
