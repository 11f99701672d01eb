//! Alerts on dashboards.

use sea_orm::{ConnectionTrait, Database};
use serde_json::Value;
use signalbox_protocol::Timestamp;

use crate::support::alerts::{ALERTS_PATH, Alarms, Probe, Threshold};
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;
use crate::support::storage::direct;
use crate::support::text_of;

/// The next `count` alerts that a dashboard receives.
async fn told(dashboard: &mut Dashboard, count: usize) -> Vec<Value> {
    let mut alerts = Vec::new();
    while alerts.len() < count {
        alerts.push(dashboard.until("alert").await);
    }
    alerts
}

fn states(alerts: &[Value]) -> Vec<(String, f64)> {
    alerts.iter().map(|alert| (text_of(&alert["status"]), alert["peak_value"].as_f64().unwrap())).collect()
}

#[actix_web::test]
async fn dashboards_receive_every_change_in_order() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    // An alert that is already open is sent first: later ones are sent once.
    alarms.add(Threshold::on("memory", "gt", 40.0)).await;
    probe.cpu(10.0).await;
    let mut of_server = site.dashboard().await;
    of_server.expect("status").await;
    let mut of_all = alarms.watch().await;
    assert_eq!(of_all.until("alert").await["metric_type"], "memory");

    probe.cpu(95.0).await;
    let active = alarms.only(threshold).await;
    probe.cpu(99.0).await;
    alarms.acknowledge(&active).await;
    probe.cpu(10.0).await;
    probe.cpu(96.0).await;

    let expected = [("active", 95.0), ("active", 99.0), ("acknowledged", 99.0), ("resolved", 99.0), ("active", 96.0)];
    let expected = expected.map(|(status, peak)| (status.to_owned(), peak));
    let first = told(&mut of_server, 5).await;
    let second = told(&mut of_all, 5).await;
    assert_eq!(states(&first), expected);
    assert_eq!(first, second, "both receive the same");
    assert_eq!(first[0], active, "and what the API shows");
    assert_eq!(first[4], alarms.until(threshold, "active").await);
    assert_eq!(first[3], alarms.of_threshold(threshold).await[1]);
}

#[actix_web::test]
async fn a_recovery_that_was_written_before_its_answer_was_lost_is_shown() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    probe.cpu(95.0).await;
    alarms.until_only(threshold, "active").await;
    let mut dashboard = alarms.watch().await;
    assert_eq!(dashboard.until("alert").await["status"], "active");
    // What a commit leaves behind whose answer did not arrive.
    let database = Database::connect(direct(&site.service.state.config.database_url())).await.unwrap();
    let written = "UPDATE alerts SET status = 'resolved', resolved_by = 'recovery', notify_at = NULL";
    let at = Timestamp::now().as_millis();
    database.execute_unprepared(&format!("{written}, resolved_at = {at}, rearmed_at = {at}")).await.unwrap();
    database.close().await.unwrap();

    probe.cpu(10.0).await;

    assert_eq!(dashboard.until("alert").await, alarms.only(threshold).await);
}

#[actix_web::test]
async fn what_people_do_is_shown_again_when_they_repeat_it() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    Probe::at(&site).await.cpu(95.0).await;
    let active = alarms.until_only(threshold, "active").await;
    let mut dashboard = alarms.watch().await;
    assert_eq!(dashboard.until("alert").await["status"], "active");

    for _ in 0..2 {
        alarms.acknowledge(&active).await;
    }
    for _ in 0..2 {
        alarms.resolve(&active).await;
    }

    let statuses = told(&mut dashboard, 4).await.iter().map(|alert| text_of(&alert["status"])).collect::<Vec<_>>();
    assert_eq!(statuses, ["acknowledged", "acknowledged", "resolved", "resolved"]);
}

#[actix_web::test]
async fn an_alert_comes_with_the_sample_that_raised_it() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = Probe::at(&site).await;
    let mut dashboard = site.dashboard().await;
    dashboard.expect("status").await;

    for percent in [10.0, 95.0, 10.0] {
        probe.cpu(percent).await;
    }

    let mut order = Vec::new();
    for _ in 0..5 {
        order.push(text_of(&dashboard.next().await["type"]));
    }
    assert_eq!(order, ["metrics", "metrics", "alert", "metrics", "alert"], "before the next sample is read");
}

#[actix_web::test]
async fn a_new_dashboard_of_all_alerts_receives_the_open_ones() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let ended = alarms.add(Threshold::on("memory", "gt", 90.0)).await;
    let first = alarms.add(Threshold::cpu(90.0)).await;
    let second = alarms.add(Threshold::cpu(80.0)).await;
    let mut probe = Probe::at(&site).await;
    probe.now(|sample| sample.memory_percent = 95.0).await;
    alarms.until_only(ended, "active").await;
    probe.cpu(95.0).await;
    alarms.until_only(ended, "resolved").await;
    alarms.acknowledge(&alarms.only(second).await).await;

    let mut dashboard = alarms.watch().await;
    let mut open = told(&mut dashboard, 2).await;
    probe.cpu(96.0).await;
    let mut later = told(&mut dashboard, 2).await;

    for alerts in [&mut open, &mut later] {
        alerts.sort_by_key(|alert| text_of(&alert["status"]));
    }
    assert_eq!(open.iter().map(|alert| text_of(&alert["status"])).collect::<Vec<_>>(), ["acknowledged", "active"]);
    assert_eq!(later, [alarms.only(second).await, alarms.only(first).await]);
}

#[actix_web::test]
async fn all_alerts_are_those_of_all_servers_that_there_are_and_will_be() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    alarms.add(Threshold::cpu(90.0).everywhere()).await;
    let mut all = alarms.watch().await;
    let mut first = Probe::at(&site).await;
    let (second_id, key) = alarms.server("web-2", &[]).await;
    let mut second = alarms.probe(&key).await;

    first.cpu(95.0).await;
    second.cpu(95.0).await;

    let servers = told(&mut all, 2).await.iter().map(|alert| text_of(&alert["server_id"])).collect::<Vec<_>>();
    assert_eq!(servers, [site.server_id.to_string(), second_id.to_string()]);
}

#[actix_web::test]
async fn a_dashboard_of_one_server_receives_nothing_of_another() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    alarms.add(Threshold::cpu(90.0).everywhere()).await;
    let (_, key) = alarms.server("web-2", &[]).await;
    let mut dashboard = site.dashboard().await;
    dashboard.expect("status").await;
    let mut own = Probe::at(&site).await;
    dashboard.expect("status").await;

    alarms.probe(&key).await.cpu(99.0).await;
    own.cpu(95.0).await;

    assert_eq!(dashboard.until("alert").await["server_id"], site.server_id.to_string());
}

#[actix_web::test]
async fn strangers_see_nothing() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    let stranger = site.service.register("stranger").await;
    let (server_id, key) = site.service.server_with_key(&stranger, "theirs").await;
    let theirs = Alarms::of(&site.service, &stranger, server_id);
    theirs.add(Threshold::cpu(50.0)).await;
    let mut watching = theirs.watch().await;

    Probe::at(&site).await.cpu(95.0).await;
    let alert = alarms.until_only(threshold, "active").await;
    theirs.probe(&key).await.cpu(60.0).await;

    // The first alert that they receive is their own.
    assert_eq!(watching.until("alert").await["server_id"], server_id.to_string());
    let lists = [theirs.all().await, theirs.list(&format!("server_id={}", theirs.server_id)).await];
    assert!(lists.iter().all(|alerts| alerts.len() == 1 && alerts[0]["server_id"] == server_id.to_string()));
    assert_eq!(theirs.read("/alerts/summary").await["total"], 1);
    let (client, id) = (&site.service.client, text_of(&alert["id"]));
    client.get(format!("/alerts/{id}")).bearer(&stranger.token).expect_error(404, "not_found").await;
    for verb in ["acknowledge", "resolve"] {
        client.post(format!("/alerts/{id}/{verb}")).bearer(&stranger.token).expect_error(404, "not_found").await;
    }
    let path = format!("/alerts/thresholds/{threshold}");
    client.get(&path).bearer(&stranger.token).expect_error(404, "not_found").await;
    client.delete(&path).bearer(&stranger.token).expect_error(404, "not_found").await;
    assert_eq!(alarms.only(threshold).await, alert, "and change nothing");
}

#[actix_web::test]
async fn without_a_token_nobody_watches() {
    let site = Site::start().await;

    for path in [ALERTS_PATH, "/ws/alerts"] {
        let refused = Dashboard::open(site.service.address, path, Pass::Nothing, &[]).await;
        assert_eq!(refused.err(), Some(401), "{path}");
        Dashboard::open(site.service.address, path, Pass::Query(&site.owner.token), &[]).await.unwrap();
    }
}
