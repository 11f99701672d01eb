//! Alerts as they are listed, counted, acknowledged and resolved. They are opened as an evaluator opens them.

use serde_json::{Value, json};
use signalbox::store::{Alert, AlertAudience, AlertChange};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::of_server;
use crate::support::rows::alert;
use crate::support::site::Site;
use crate::support::{assert_timestamp, keys_of, text_of, uuid_of};

/// An alert of a threshold, raised now.
fn raised(site: &Site, threshold: &Value, server_id: Uuid, severity: &str) -> Alert {
    Alert {
        metric_type: text_of(&threshold["metric_type"]),
        worst_target: Some("/var".to_owned()),
        threshold_value: 80.0,
        clear_value: Some(75.0),
        comparison: "gte".to_owned(),
        duration_seconds: 60,
        severity: severity.to_owned(),
        value: 81.5,
        peak_value: 81.5,
        message: "memory is 81.5 % on web-1".to_owned(),
        ..alert(site.owner.id, server_id, uuid_of(&threshold["id"]))
    }
}

async fn open(site: &Site, alert: Alert) -> Alert {
    let id = alert.id;
    let change = AlertChange::Opened { alert: Box::new(alert), audience: AlertAudience::default() };
    let mut opened = site.service.state.store.change_alerts(&[change]).await.unwrap();
    opened.remove(0).filter(|alert| alert.id == id).expect("the alert was not opened")
}

/// An alert of the site's server.
pub async fn open_alert(site: &Site, threshold: &Value, severity: &str) -> Alert {
    open(site, raised(site, threshold, site.server_id, severity)).await
}

/// Makes the metric of a manually resolved alert recover: its threshold may fire again.
pub async fn recover(site: &Site, id: Uuid) {
    let at = Timestamp::now();
    let rearmed = AlertChange::Rearmed { id, sample_at: at, at };
    site.service.state.store.change_alerts(&[rearmed]).await.unwrap();
}

/// A threshold and its alert.
async fn alerting(site: &Site, severity: &str) -> Alert {
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    open_alert(site, &threshold, severity).await
}

#[actix_web::test]
async fn an_alert_has_these_fields_and_its_timeline() {
    let site = Site::start().await;
    let alert = alerting(&site, "critical").await;

    let mut read = site.read(&format!("/alerts/{}", alert.id)).await;
    let timeline = read["timeline"].take();
    let listed = site.read("/alerts").await[0].clone();

    let fields = "acknowledged_at acknowledged_by clear_value comparison duration_seconds id message metric_type owner \
                  peak_value resolved_at resolved_by series server_id severity silenced status target threshold_id \
                  threshold_value triggered_at unit value worst_target";
    assert_eq!(keys_of(&listed), fields.split_whitespace().collect::<Vec<_>>());
    let expected = json!({
        "id": alert.id, "threshold_id": alert.threshold_id, "server_id": site.server_id, "metric_type": "memory",
        "owner": {"id": site.owner.id, "username": "owner"},
        "series": null, "unit": null, "target": null, "worst_target": "/var", "threshold_value": 80.0, "clear_value": 75.0, "comparison": "gte",
        "duration_seconds": 60, "value": 81.5, "peak_value": 81.5, "status": "active", "severity": "critical",
        "message": "memory is 81.5 % on web-1", "silenced": false, "triggered_at": listed["triggered_at"],
        "acknowledged_at": null, "acknowledged_by": null, "resolved_at": null, "resolved_by": null,
    });
    assert_eq!(listed, expected);
    assert_timestamp(&listed["triggered_at"]);
    read.as_object_mut().unwrap().remove("timeline");
    assert_eq!(read, listed);
    let begin = json!({"at": listed["triggered_at"], "kind": "triggered", "user_id": null, "username": null,
                       "detail": "memory is 81.5 % on web-1"});
    assert_eq!(timeline, json!([begin]));
}

#[actix_web::test]
async fn acknowledging_and_resolving_are_done_once_and_told() {
    let site = Site::start().await;
    let alert = alerting(&site, "warning").await;
    let path = format!("/alerts/{}", alert.id);

    let acknowledged = site.post(format!("{path}/acknowledge")).expect(200).await;
    let entry = site.last_entry().await;
    let again = site.post(format!("{path}/acknowledge")).expect(200).await;
    assert_eq!(
        (&acknowledged["status"], &acknowledged["acknowledged_by"]),
        (&json!("acknowledged"), &json!(site.owner.id))
    );
    assert_timestamp(&acknowledged["acknowledged_at"]);
    assert_eq!(again, acknowledged);
    assert_eq!((&entry["action"], &entry["target"]), (&json!("alert.acknowledge"), &json!(alert.id)));
    assert_eq!(site.last_entry().await, entry);

    let resolved = site.post(format!("{path}/resolve")).expect(200).await;
    let entry = site.last_entry().await;
    assert_eq!((&resolved["status"], &resolved["resolved_by"]), (&json!("resolved"), &json!(site.owner.id)));
    assert_timestamp(&resolved["resolved_at"]);
    assert_eq!(site.post(format!("{path}/resolve")).expect(200).await, resolved);
    assert_eq!(site.post(format!("{path}/acknowledge")).expect(200).await, resolved);
    assert_eq!((&entry["action"], &entry["server_id"]), (&json!("alert.resolve"), &json!(site.server_id)));
    assert_eq!(site.last_entry().await, entry);

    let timeline = site.read(&path).await["timeline"].clone();
    let told: Vec<_> = timeline.as_array().unwrap().iter().map(|event| (&event["kind"], &event["username"])).collect();
    let (nobody, owner) = (Value::Null, json!("owner"));
    let expected = [(&json!("triggered"), &nobody), (&json!("acknowledged"), &owner), (&json!("resolved"), &owner)];
    assert_eq!(told, expected);
    assert_eq!(timeline[2]["detail"], "owner");
    // A row of an earlier version has nothing but the user's id.
    let id = format!("UPDATE alert_events SET detail = '{}' WHERE kind = 'resolved'", site.owner.id);
    let site = site.restart_after(&[&id]).await;
    assert_eq!(site.read(&path).await["timeline"], timeline);
}

#[actix_web::test]
async fn they_are_listed_newest_first_and_found_by_what_they_are() {
    let site = Site::start().await;
    let (other_id, _) = site.other_server().await;
    let memory = site.new_threshold(of_server(site.server_id)).await;
    let cpu = site.new_threshold(site.cpu_threshold()).await;
    let first = open_alert(&site, &memory, "warning").await.id.to_string();
    let second = open_alert(&site, &cpu, "critical").await.id.to_string();
    let third = open(&site, raised(&site, &memory, other_id, "info")).await.id.to_string();
    site.post(format!("/alerts/{first}/resolve")).expect(200).await;
    site.post(format!("/alerts/{second}/acknowledge")).expect(200).await;
    // The results of a query, in words.
    let found = async |query: &str| -> Vec<&str> {
        let names = [(&first, "first"), (&second, "second"), (&third, "third")];
        let ids = site.listed(&format!("/alerts?{query}")).await.0;
        ids.iter().map(|id| names.iter().find(|(known, _)| *known == id).expect("an alert of nobody").1).collect()
    };

    let all = vec![third.clone(), second.clone(), first.clone()];
    assert_eq!(site.listed("/alerts").await, (all, "3".to_owned()));
    assert_eq!(site.listed("/alerts?limit=1&offset=1").await, (vec![second.clone()], "3".to_owned()));
    assert_eq!(found("status=active").await, ["third"]);
    assert_eq!(found("status=acknowledged").await, ["second"]);
    assert_eq!(found("status=resolved").await, ["first"]);
    assert_eq!(found(&format!("server_id={}", site.server_id)).await, ["second", "first"]);
    assert_eq!(found("severity=critical").await, ["second"]);
    assert_eq!(found("metric_type=cpu").await, ["second"]);
    let of_memory = format!("threshold_id={}", text_of(&memory["id"]));
    assert_eq!(found(&of_memory).await, ["third", "first"]);
    assert_eq!(found(&format!("{of_memory}&status=resolved&severity=warning")).await, ["first"]);
    assert!(found("status=resolved&severity=critical").await.is_empty());
}

#[actix_web::test]
async fn a_range_finds_what_was_unresolved_in_it() {
    let site = Site::start().await;
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    let moment = |hour: i64| Timestamp::parse("2026-11-20T00:00:00Z").unwrap().plus_millis(hour * 3_600_000);
    let (other_id, _) = site.other_server().await;
    // From 1 to 3 o'clock, and since 5 o'clock.
    let over = raised(&site, &threshold, site.server_id, "warning");
    let over = open(&site, Alert { triggered_at: moment(1).into(), ..over }).await;
    let resolved = AlertChange::Resolved { id: over.id, by: "recovery", sample_at: moment(3), at: moment(3) };
    site.service.state.store.change_alerts(&[resolved]).await.unwrap();
    let going_on = raised(&site, &threshold, other_id, "warning");
    let going_on = open(&site, Alert { triggered_at: moment(5).into(), ..going_on }).await;
    let (over, going_on) = (over.id.to_string(), going_on.id.to_string());
    let found = async |query: String| -> Vec<&str> {
        let ids = site.listed(&format!("/alerts?{query}")).await.0;
        ids.iter()
            .map(|id| {
                if *id == over {
                    "over"
                } else if *id == going_on {
                    "open"
                } else {
                    "?"
                }
            })
            .collect()
    };
    let between = |since: i64, until: i64| format!("since={}&until={}", moment(since), moment(until));

    assert!(found(between(0, 1)).await.is_empty());
    assert_eq!(found(between(0, 2)).await, ["over"]);
    assert_eq!(found(between(2, 2)).await, ["over"]);
    assert_eq!(found(between(3, 5)).await, ["over"]);
    assert!(found(between(4, 5)).await.is_empty());
    assert_eq!(found(between(4, 6)).await, ["open"]);
    assert_eq!(found(between(0, 9)).await, ["open", "over"]);
    assert_eq!(found(format!("since={}", moment(9))).await, ["open"]);
    assert_eq!(found(format!("until={}", moment(5))).await, ["over"]);
    assert_eq!(found(format!("{}&status=resolved", between(0, 9))).await, ["over"]);
}

#[actix_web::test]
async fn an_invalid_range_is_reported() {
    let site = Site::start().await;

    let faults = [("query", "since", "value_error.datetime"), ("query", "until", "value_error.datetime")];
    site.get("/alerts?since=today&until=7").expect_faults(422, &faults).await;
    let range = "since=2026-11-20T10:00:00Z&until=2026-11-20T09:00:00Z";
    site.get(format!("/alerts?{range}")).expect_faults(422, &[("query", "until", "value_error.range")]).await;
}

#[actix_web::test]
async fn an_invalid_filter_is_reported() {
    let site = Site::start().await;
    let query = "status=open&server_id=web-1&severity=fatal&metric_type=gpu&threshold_id=first&limit=501";

    let faults = [
        ("query", "status", "type_error.enum"),
        ("query", "server_id", "type_error.uuid"),
        ("query", "severity", "type_error.enum"),
        ("query", "metric_type", "type_error.enum"),
        ("query", "threshold_id", "type_error.uuid"),
        ("query", "limit", "value_error.number.not_le"),
    ];
    site.get(format!("/alerts?{query}")).expect_faults(422, &faults).await;
    let fault = [("path", "id", "type_error.uuid")];
    site.get("/alerts/first").expect_faults(422, &fault).await;
    site.post("/alerts/first/resolve").expect_faults(422, &fault).await;
    site.post("/alerts/first/acknowledge").expect_faults(422, &fault).await;
}

#[actix_web::test]
async fn the_summary_counts_by_status_severity_and_server() {
    let site = Site::start().await;
    let (other_id, _) = site.other_server().await;
    let memory = site.new_threshold(of_server(site.server_id)).await;
    let cpu = site.new_threshold(site.cpu_threshold()).await;
    let empty = json!({
        "total": 0, "by_status": {"active": 0, "acknowledged": 0, "resolved": 0},
        "by_severity": {"info": 0, "warning": 0, "critical": 0}, "servers": [],
    });
    assert_eq!(site.read("/alerts/summary").await, empty);

    let resolved = open_alert(&site, &memory, "critical").await.id;
    site.post(format!("/alerts/{resolved}/resolve")).expect(200).await;
    recover(&site, resolved).await;
    open_alert(&site, &memory, "info").await;
    let acknowledged = open_alert(&site, &cpu, "warning").await.id;
    site.post(format!("/alerts/{acknowledged}/acknowledge")).expect(200).await;
    open(&site, raised(&site, &cpu, other_id, "critical")).await;

    let expected = json!({
        "total": 4, "by_status": {"active": 2, "acknowledged": 1, "resolved": 1},
        "by_severity": {"info": 1, "warning": 1, "critical": 1},
        "servers": [
            {"server_id": other_id, "active": 1, "acknowledged": 0, "worst_severity": "critical"},
            {"server_id": site.server_id, "active": 1, "acknowledged": 1, "worst_severity": "warning"},
        ],
    });
    assert_eq!(site.read("/alerts/summary").await, expected);
}

#[actix_web::test]
async fn alerts_that_wait_for_a_silence_are_checked_when_it_is_deleted() {
    let site = Site::start().await;
    let server = format!("/servers/{}", site.server_id);
    let threshold = site.new_threshold(of_server(site.server_id)).await;
    let ends_at = Timestamp::now().plus_millis(3_600_000);

    for way in ["deleted", "for others", "without the tag"] {
        site.put(&server).json(json!({"tags": ["web"]})).expect(200).await;
        let silence = super::silence_path(&site.new_silence(json!({"tag": "web", "ends_at": ends_at})).await);
        let waiting = raised(&site, &threshold, site.server_id, "warning");
        let waiting = open(&site, Alert { is_silenced: true, notify_at: Some(ends_at.into()), ..waiting }).await;
        let looked_at = async || {
            let alert = site.service.state.store.find_alert(waiting.id).await.unwrap().unwrap();
            alert.notify_at.map(Timestamp::from)
        };
        assert_eq!(looked_at().await, Some(ends_at));

        match way {
            "deleted" => site.delete(&silence).expect(200).await,
            "for others" => site.put(&silence).json(json!({"tag": "db"})).expect(200).await,
            _ => site.put(&server).json(json!({"tags": []})).expect(200).await,
        };

        // A check may already have happened.
        assert!(looked_at().await.is_none_or(|at| at <= Timestamp::now()), "{way}");
        site.post(format!("/alerts/{}/resolve", waiting.id)).expect(200).await;
        recover(&site, waiting.id).await;
    }
}

#[actix_web::test]
async fn they_go_with_their_server() {
    let site = Site::start().await;
    let alert = alerting(&site, "warning").await;

    site.delete_server().await;

    site.get(format!("/alerts/{}", alert.id)).expect_error(404, "not_found").await;
    assert_eq!(site.read("/alerts").await, json!([]));
    assert_eq!(site.read("/alerts/summary").await["total"], 0);
}
