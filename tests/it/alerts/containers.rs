//! Containers in trouble, as an agent reports them.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;
use crate::support::text_of;

/// Containers: name, state, health, exit code.
type ContainerReport<'a> = (&'a str, &'a str, Option<&'a str>, Option<i64>);

fn on_containers(pattern: Option<&str>, states: &[&str]) -> Threshold {
    let threshold = Threshold::on("container_state", "gte", 3.0);
    let threshold = if states.is_empty() { threshold } else { threshold.with("states", states.to_vec()) };
    match pattern {
        Some(pattern) => threshold.target(pattern),
        None => threshold,
    }
}

/// Reports the states of all containers, and waits until they were evaluated.
async fn tell(probe: &mut Probe, containers: &[ContainerReport<'_>]) {
    let listed = containers.iter().map(|(name, state, health, exit_code)| {
        json!({"id": id_of(name), "name": name, "state": state, "health": health, "exit_code": exit_code})
    });
    let listed: Vec<Value> = listed.collect();
    let timestamp = probe.moment().to_string();
    let data = json!({"kind": "containers", "timestamp": timestamp, "containers": listed});
    probe.agent.send_value(&json!({"type": "event", "data": data})).await;
    probe.tell(Vec::new()).await;
}

fn id_of(name: &str) -> String {
    format!("{name:0>12}").repeat(6).chars().take(64).collect()
}

/// Reports that a container has died on its own, at that moment.
async fn die(probe: &mut Probe, name: &str, at: Timestamp, restart_count: i64) {
    let data = json!({"kind": "container", "action": "die", "timestamp": at.to_string(), "container_id": id_of(name),
                      "name": name, "image": "app", "exit_code": 1, "restart_count": restart_count, "requested": false});
    probe.agent.send_value(&json!({"type": "event", "data": data})).await;
    probe.tell(Vec::new()).await;
}

/// The containers for which a threshold has an active alert.
async fn active(alarms: &Alarms, threshold: Uuid) -> Vec<String> {
    let alerts = alarms.of_threshold(threshold).await;
    let active = alerts.iter().filter(|alert| alert["status"] == "active");
    let mut names: Vec<_> = active.map(|alert| text_of(&alert["target"])).collect();
    names.sort();
    names
}

#[actix_web::test]
async fn each_container_that_has_stopped_has_an_alert_of_its_own() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(on_containers(None, &["stopped"])).await;
    let mut probe = Probe::at(&site).await;
    tell(&mut probe, &[("db", "running", None, None), ("web", "running", None, None)]).await;
    alarms.expect_none(threshold).await;

    tell(&mut probe, &[("db", "exited", None, Some(137)), ("web", "running", None, None)]).await;
    let alert = alarms.until_only(threshold, "active").await;
    tell(&mut probe, &[("db", "exited", None, Some(137)), ("web", "dead", None, None)]).await;
    assert_eq!(active(&alarms, threshold).await, ["db", "web"]);
    tell(&mut probe, &[("db", "running", None, None), ("web", "dead", None, None)]).await;

    assert_eq!(active(&alarms, threshold).await, ["web"]);
    assert_eq!((&alert["metric_type"], &alert["target"]), (&json!("container_state"), &json!("db")));
    let message = text_of(&alert["message"]);
    assert!(["db", "web-1", "137"].iter().all(|word| message.contains(word)), "{message}");
}

#[actix_web::test]
async fn the_first_threshold_finds_what_has_been_in_trouble_for_long() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let mut probe = Probe::at(&site).await;
    tell(&mut probe, &[("db", "running", None, None), ("web", "exited", None, Some(1))]).await;

    // The agent has nothing new to say of them.
    let threshold = alarms.add(on_containers(None, &["stopped"])).await;
    probe.tell(Vec::new()).await;

    assert_eq!(text_of(&alarms.until_only(threshold, "active").await["target"]), "web");
}

#[actix_web::test]
async fn a_pattern_says_which_containers() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(on_containers(Some("web-?"), &["stopped"])).await;
    let many = alarms.add(on_containers(Some("*b*"), &["stopped"])).await;
    let mut probe = Probe::at(&site).await;

    let names = ["web-1", "web-10", "db", "cache"];
    tell(&mut probe, &names.map(|name| (name, "exited", None, Some(0)))).await;

    assert_eq!(active(&alarms, threshold).await, ["web-1"]);
    assert_eq!(active(&alarms, many).await, ["db", "web-1", "web-10"]);
}

#[actix_web::test]
async fn an_unhealthy_container_has_an_alert_until_it_is_healthy() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(on_containers(None, &["unhealthy"])).await;
    let stopped = alarms.add(on_containers(None, &["stopped"])).await;
    let mut probe = Probe::at(&site).await;

    tell(&mut probe, &[("db", "running", Some("unhealthy"), None)]).await;
    assert_eq!(active(&alarms, threshold).await, ["db"]);
    tell(&mut probe, &[("db", "running", Some("healthy"), None)]).await;

    alarms.until_only(threshold, "resolved").await;
    alarms.expect_none(stopped).await;
}

#[actix_web::test]
async fn a_container_that_is_removed_is_not_missed() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(on_containers(None, &["stopped"])).await;
    let mut probe = Probe::at(&site).await;
    tell(&mut probe, &[("job", "exited", None, Some(1))]).await;
    assert_eq!(active(&alarms, threshold).await, ["job"]);

    tell(&mut probe, &[]).await;

    alarms.until_only(threshold, "resolved").await;
}

#[actix_web::test]
async fn an_agent_that_goes_away_ends_no_alert_of_a_container() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(on_containers(None, &["stopped"])).await;
    let mut probe = Probe::at(&site).await;
    tell(&mut probe, &[("db", "exited", None, Some(1))]).await;
    let alert = alarms.until_only(threshold, "active").await;

    probe.agent.socket.abort();
    site.until_status("offline").await;
    let site = site.restart().await;
    let alarms = Alarms::at(&site);
    let mut probe = Probe::at(&site).await;
    probe.cpu(10.0).await;
    assert_eq!(alarms.only(threshold).await, alert);
    tell(&mut probe, &[("db", "exited", None, Some(1))]).await;
    assert_eq!(alarms.only(threshold).await, alert);
    tell(&mut probe, &[("db", "running", None, None)]).await;

    alarms.until_only(threshold, "resolved").await;
}

#[actix_web::test]
async fn three_deaths_in_five_minutes_are_a_restart_loop() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(on_containers(Some("db"), &["restart_loop"])).await;
    let mut probe = Probe::at(&site).await;
    let start = Timestamp::now().plus_millis(-50_000);
    tell(&mut probe, &[("db", "running", None, None)]).await;

    for count in 0..3 {
        alarms.expect_none(threshold).await;
        die(&mut probe, "db", start.plus_millis(10_000 * count), count).await;
    }

    let alert = alarms.until_only(threshold, "active").await;
    assert_eq!((&alert["target"], &alert["value"]), (&json!("db"), &json!(3.0)));
}

#[actix_web::test]
async fn after_a_resolution_by_hand_a_container_fires_again_once_it_was_healthy() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(on_containers(None, &["stopped"])).await;
    let mut probe = Probe::at(&site).await;
    tell(&mut probe, &[("db", "exited", None, Some(1))]).await;
    alarms.resolve(&alarms.until_only(threshold, "active").await).await;

    tell(&mut probe, &[("db", "exited", None, Some(1))]).await;
    alarms.only(threshold).await;
    tell(&mut probe, &[("db", "running", None, None)]).await;
    tell(&mut probe, &[("db", "exited", None, Some(1))]).await;

    assert_eq!(active(&alarms, threshold).await, ["db"]);
    assert_eq!(alarms.of_threshold(threshold).await.len(), 2);
}
