//! A service that is killed while it sends notifications.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use super::{told, until_told, webhook};
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::command_line::signalbox;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::receiver::{Reaction, Receiver};
use crate::support::{Storage, eventually, text_of};

async fn serve(storage: &Storage) -> ServiceProcess {
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--notification-networks", "127.0.0.0/8"]);
    command.arg("--data-dir").arg(storage.path());
    storage.named_to(&mut command);
    ServiceProcess::launched(command).await
}

async fn probe(service: &ServiceProcess, prepared: &Prepared) -> Probe {
    Probe::new(service.agent(prepared).await)
}

#[actix_web::test]
async fn an_interrupted_notification_is_sent_again_with_the_same_key() {
    let storage = Storage::fresh().await;
    let service = serve(&storage).await;
    let prepared = service.prepare().await;
    let alarms = Alarms::in_process(&service, &prepared);
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    // It accepts the message and never answers.
    let receiver = Receiver::start(move |_| match well.load(Ordering::SeqCst) {
        true => Reaction::Answer(200),
        false => Reaction::Hang,
    })
    .await;
    webhook(&alarms, &receiver.url("/hook"), json!({})).await;
    let threshold = alarms.add(Threshold::cpu(90.0)).await;
    probe(&service, &prepared).await.cpu(95.0).await;
    let active = alarms.until_only(threshold, "active").await;
    until_told(&receiver, "triggered", &active).await;

    service.kill().await;
    is_well.store(true, Ordering::SeqCst);
    let service = serve(&storage).await;
    let alarms = Alarms::in_process(&service, &prepared);
    // No other instance may send it while the attempt could still be running.
    for _ in 0..2 {
        let again = async || (receiver.taken().len() >= 2).then_some(());
        if tokio::time::timeout(crate::support::PATIENCE / 2, eventually("it is sent again", again)).await.is_ok() {
            break;
        }
    }
    eventually("it is delivered", async || {
        let deliveries = alarms.read("/notifications/deliveries").await;
        (deliveries[0]["status"] == "sent").then_some(())
    })
    .await;

    let told = told(&receiver);
    assert!(told.len() == 1 && told[0].is("triggered", &active), "one message, told twice: {told:?}");
}

#[actix_web::test]
async fn however_often_it_is_killed_each_notification_has_one_key() {
    let storage = Storage::fresh().await;
    let mut service = serve(&storage).await;
    let prepared = service.prepare().await;
    let asked = AtomicUsize::new(0);
    let receiver = Receiver::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) % 3 {
        0 => Reaction::Answer(503),
        1 => Reaction::Close,
        _ => Reaction::Answer(200),
    })
    .await;
    let alarms = Alarms::in_process(&service, &prepared);
    webhook(&alarms, &receiver.url("/hook"), json!({})).await;
    let threshold = alarms.add(Threshold::cpu(90.0)).await;

    for round in 0..6 {
        let mut probe = probe(&service, &prepared).await;
        let percent = 95.0 + f64::from(round) / 10.0;
        probe.cpu(percent).await;
        // An alert that is not raised by then may be over when the service is back.
        let alarms = Alarms::in_process(&service, &prepared);
        eventually("it is raised", async || {
            let newest = alarms.of_threshold(threshold).await.into_iter().next();
            newest.filter(|alert| alert["value"] == percent)
        })
        .await;
        if round % 2 == 0 {
            probe.cpu(10.0).await;
        }
        probe.cpu(10.0).await;
        service.kill().await;
        service = serve(&storage).await;
    }
    let alarms = Alarms::in_process(&service, &prepared);
    let alerts = eventually("all of them are over", async || {
        let alerts = alarms.of_threshold(threshold).await;
        alerts.iter().all(|alert| alert["status"] == "resolved").then_some(alerts)
    })
    .await;
    assert_eq!(alerts.len(), 6);
    // Retries take a second or two each; they continue while anything is left.
    let mut left = usize::MAX;
    loop {
        let fewer = eventually("fewer are left to be sent", async || {
            let deliveries = alarms.read("/notifications/deliveries?status=pending&limit=500").await;
            let now = deliveries.as_array().unwrap().len();
            (now < left || now == 0).then_some(now)
        })
        .await;
        if fewer == 0 {
            break;
        }
        left = fewer;
    }

    let mut keys: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for it in told(&receiver) {
        keys.entry((text_of(&it.alert["id"]), it.event)).or_default().push(it.message_id);
    }
    for alert in &alerts {
        for event in ["triggered", "resolved"] {
            let told = keys.remove(&(text_of(&alert["id"]), event.to_owned())).unwrap_or_default();
            assert_eq!(told.len(), 1, "{event} of {alert} is sent under one key: {told:?}");
        }
    }
    assert!(keys.is_empty(), "nothing else: {keys:?}");
}
