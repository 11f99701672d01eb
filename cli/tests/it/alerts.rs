//! Alerts of a real agent.

use std::process::Stdio;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Running, Site, eventually};

/// A server whose memory is above 0 %.
async fn alarmed(site: &Site) -> crate::support::Agent {
    let agent = site.agent("web-1", &[], &[]).await;
    let threshold = json!({"server_id": agent.server_id, "metric_type": "memory", "threshold_value": 0.0, "comparison": "gt",
        "severity": "critical"});
    site.post("/alerts/thresholds", &threshold).await;
    agent
}

async fn raised(site: &Site) -> Value {
    eventually("an alert is raised", async || site.get("/alerts?status=active").await.get(0).cloned()).await
}

#[tokio::test]
async fn an_alert_is_watched_listed_acknowledged_and_resolved() {
    let site = Site::start().await;
    let watching = Running::start(site.command(&["alerts", "watch"]));
    let agent = alarmed(&site).await;
    let alert = raised(&site).await;
    let id = alert["id"].as_str().unwrap();
    let end = &id[id.len() - 8..];
    watching.until(&format!("critical active web-1: {} [{end}]", alert["message"].as_str().unwrap())).await;

    let listed = site.run(&["alerts"]).await;
    let none = site.run(&["alerts", "--severity", "info"]).await;
    let acknowledged = site.run(&["alerts", "ack", end]).await;
    watching.until("critical acknowledged web-1").await;
    let resolved = site.run(&["alerts", "resolve", id]).await;
    watching.until("critical resolved after").await;
    let past = site.run(&["alerts", "--status", "resolved", "--server", "web-1", "-o", "json"]).await;
    let gone = site.run(&["alerts", "ack", end]).await;

    assert!(listed.done().contains("critical  active") && listed.done().contains("web-1"), "{listed:?}");
    assert_eq!(none.done(), "");
    assert!(acknowledged.done().starts_with(&format!("{end} is acknowledged: ")), "{acknowledged:?}");
    assert!(resolved.done().starts_with(&format!("{end} is resolved: ")), "{resolved:?}");
    assert_eq!(past.json()[0]["server_id"], json!(agent.server_id));
    gone.refused(1, "no alert that is not resolved");
    assert_eq!(watching.stdout().lines().count(), 3, "each change once: {}", watching.stdout());
}

#[tokio::test]
async fn programs_watch_one_object_a_line() {
    let site = Site::start().await;
    let _agent = alarmed(&site).await;
    let alert = raised(&site).await;

    let watching = Running::start(site.command(&["alerts", "watch", "-o", "json"]));
    watching.until("\n").await;

    let line: Value = serde_json::from_str(watching.stdout().lines().next().unwrap()).unwrap();
    assert_eq!((&line["id"], &line["status"]), (&alert["id"], &json!("active")));
}

#[tokio::test]
async fn all_alerts_have_their_turn_where_nobody_reads_the_output() {
    let site = Site::start().await;
    let _agent = alarmed(&site).await;
    let alert = raised(&site).await;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);

    let mut command = site.command(&["alerts", "ack", alert["id"].as_str().unwrap(), &Uuid::nil().to_string()]);
    let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let status = eventually("it ends", async || child.try_wait().unwrap()).await;

    assert_eq!(status.code(), Some(1), "there is no second alert");
}

#[tokio::test]
async fn what_is_no_id_is_wrong_usage() {
    let site = Site::start().await;

    site.run(&["alerts", "ack", "cpu"]).await.refused(2, "no id of an alert");
}
