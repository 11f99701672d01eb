//! Lists of alerts and their summary.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;
use crate::support::text_of;

/// Two servers: on the first a resolved, an acknowledged and an active alert, on the second an active one.
struct Scene {
    site: Site,
    alarms: Alarms,
    second: Uuid,
    critical: Uuid,
}

async fn scene() -> Scene {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let (second, key) = alarms.server("web-2", &[]).await;
    alarms.add(Threshold::on("memory", "gt", 90.0).severity("info")).await;
    let acknowledged = alarms.add(Threshold::cpu(80.0)).await;
    let critical = alarms.add(Threshold::cpu(90.0).severity("critical")).await;
    alarms.add(Threshold::cpu(90.0).severity("info").of_server(second)).await;
    let mut probe = Probe::at(&site).await;
    probe.now(|sample| sample.memory_percent = 95.0).await;
    probe.cpu(95.0).await;
    alarms.probe(&key).await.cpu(95.0).await;
    alarms.acknowledge(&alarms.only(acknowledged).await).await;
    Scene { site, alarms, second, critical }
}

fn severities(alerts: &[Value]) -> Vec<String> {
    let mut severities: Vec<_> = alerts.iter().map(|alert| text_of(&alert["severity"])).collect();
    severities.sort();
    severities
}

#[actix_web::test]
async fn alerts_are_filtered_by_what_they_are() {
    let Scene { site, alarms, second, critical } = scene().await;
    let first = site.server_id;

    for (query, expected) in [
        (String::new(), vec!["critical", "info", "info", "warning"]),
        ("status=active".to_owned(), vec!["critical", "info"]),
        ("status=acknowledged".to_owned(), vec!["warning"]),
        ("status=resolved".to_owned(), vec!["info"]),
        ("severity=critical".to_owned(), vec!["critical"]),
        ("severity=info&status=active".to_owned(), vec!["info"]),
        (format!("server_id={first}"), vec!["critical", "info", "warning"]),
        (format!("server_id={second}"), vec!["info"]),
        (format!("server_id={second}&severity=critical"), vec![]),
        (format!("threshold_id={critical}"), vec!["critical"]),
        ("metric_type=memory".to_owned(), vec!["info"]),
    ] {
        assert_eq!(severities(&alarms.list(&query).await), expected, "{query}");
    }
}

#[actix_web::test]
async fn alerts_come_in_pages_newest_first() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    for round in 0..7 {
        probe.cpu(91.0 + f64::from(round)).await;
        probe.cpu(10.0).await;
    }

    let all = alarms.of_threshold(threshold).await;
    let path = "/alerts?limit=3&offset=2";
    let page = site.service.client.get(path).bearer(&alarms.token).expect_answer(200).await;

    let values: Vec<_> = all.iter().map(|alert| alert["value"].as_f64().unwrap()).collect();
    assert_eq!(values, [97.0, 96.0, 95.0, 94.0, 93.0, 92.0, 91.0]);
    assert_eq!(page.json().as_array().unwrap(), &all[2..5]);
    assert_eq!(page.header("X-Total-Count"), "7");
}

#[actix_web::test]
async fn the_summary_counts_what_the_list_shows() {
    let Scene { site, alarms, second, .. } = scene().await;

    let mut summary = alarms.read("/alerts/summary").await;

    let servers = summary["servers"].as_array_mut().unwrap();
    servers.sort_by_key(|server| server["server_id"] == second.to_string());
    let expected = json!({
        "total": 4,
        "by_status": {"active": 2, "acknowledged": 1, "resolved": 1},
        "by_severity": {"info": 1, "warning": 1, "critical": 1},
        "servers": [
            {"server_id": site.server_id.to_string(), "active": 1, "acknowledged": 1, "worst_severity": "critical"},
            {"server_id": second.to_string(), "active": 1, "acknowledged": 0, "worst_severity": "info"},
        ],
    });
    assert_eq!(summary, expected);
}

#[actix_web::test]
async fn without_alerts_the_summary_is_zero() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);

    let summary = alarms.read("/alerts/summary").await;

    assert_eq!(summary["total"], 0);
    assert_eq!(summary["by_status"], json!({"active": 0, "acknowledged": 0, "resolved": 0}));
    assert_eq!(summary["by_severity"], json!({"info": 0, "warning": 0, "critical": 0}));
    assert_eq!(summary["servers"], json!([]));
}
