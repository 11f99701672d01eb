//! A database that is away while samples cross: the alerts come when it is back, each once.

use std::time::{Duration, Instant};

use futures_util::future::join;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection};
use serde_json::json;
use signalbox_protocol::Sample;

use crate::support::alerts::{Alarms, Probe, Threshold, busy};
use crate::support::wire::Wire;
use crate::support::{Account, PATIENCE, Storage, TestService, eventually};

/// A service whose database can be taken away.
struct Scene {
    service: TestService,
    owner: Account,
    alarms: Alarms,
    key: String,
    from: From,
}

/// How the service's database is taken away.
enum From {
    /// Another connection locks the file of the embedded database.
    File(String),
    /// The connections to PostgreSQL are cut.
    Wire(Wire),
}

/// Ends when it is dropped.
enum Outage<'a> {
    Locked(DatabaseConnection),
    Cut(&'a Wire),
}

impl Scene {
    async fn start() -> Self {
        let storage = Storage::fresh().await;
        let url = storage.config().database_url();
        let (service, from) = match url.strip_prefix("postgres://") {
            None => (TestService::start_on(storage, |_| {}).await, From::File(url)),
            Some(rest) => {
                let (before, database) = rest.split_once('/').unwrap();
                let (user, address) = before.rsplit_once('@').unwrap();
                let wire = Wire::to(address.replace("localhost", "127.0.0.1").parse().unwrap()).await;
                let through = format!("postgres://{user}@{}/{database}", wire.address);
                let service = TestService::start_on(storage, |config| config.database_url = Some(through.into())).await;
                (service, From::Wire(wire))
            }
        };
        let owner = service.register("owner").await;
        let (server_id, key) = service.server_with_key(&owner, "web-1").await;
        let alarms = Alarms::of(&service, &owner, server_id);
        Self { service, owner, alarms, key, from }
    }

    async fn outage(&self) -> Outage<'_> {
        match &self.from {
            From::Wire(wire) => {
                wire.cut();
                Outage::Cut(wire)
            }
            From::File(url) => {
                let mut options = ConnectOptions::new(url.clone());
                options.max_connections(1).min_connections(1);
                let other = Database::connect(options).await.unwrap();
                eventually("somebody else has the database", async || {
                    other.execute_unprepared("BEGIN EXCLUSIVE").await.ok()
                })
                .await;
                Outage::Locked(other)
            }
        }
    }

    /// Until the service answers again: it asks once a second whether its database is back, and says 503 before.
    async fn end(&self, outage: Outage<'_>) {
        match outage {
            Outage::Cut(wire) => wire.mend(),
            Outage::Locked(other) => {
                other.execute_unprepared("ROLLBACK").await.unwrap();
                other.close().await.unwrap();
            }
        }
        eventually("the service answers again", async || {
            let answer = self.service.client.get("/alerts").bearer(&self.owner.token).send().await;
            (answer.status == 200).then_some(())
        })
        .await;
    }

    /// Waits until the service has failed to write an alert: it waits for the database a while each time.
    async fn until_failed(&self) {
        let began = Instant::now();
        while !self.has_failed().await {
            assert!(began.elapsed() < 4 * PATIENCE, "it does not try to write an alert");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn has_failed(&self) -> bool {
        let metrics = self.service.root.get("/metrics").send().await.text;
        let mut failed = metrics.lines().filter(|line| line.starts_with("signalbox_alert_writes_failed_total"));
        failed.any(|line| !line.ends_with(" 0"))
    }
}

/// Sends samples that cannot be acknowledged yet.
async fn send(probe: &mut Probe, seq: u64, percent: f64) -> Sample {
    let sample = busy(probe.moment(), percent);
    probe.agent.send_metrics(seq, vec![sample.clone()]).await;
    sample
}

#[actix_web::test]
async fn an_alert_that_could_not_be_written_comes_when_the_database_is_back() {
    let scene = Scene::start().await;
    let threshold = scene.alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = scene.alarms.probe(&scene.key).await;
    probe.cpu(10.0).await;

    let outage = scene.outage().await;
    send(&mut probe, 1 << 50, 95.0).await;
    scene.until_failed().await;
    scene.end(outage).await;

    let alert = scene.alarms.until_only(threshold, "active").await;
    assert_eq!(alert["value"], 95.0);
    assert_eq!(scene.alarms.timeline(&alert).await, ["triggered"]);
}

#[actix_web::test]
async fn crossings_and_recoveries_of_the_outage_are_reported_as_they_were() {
    let scene = Scene::start().await;
    let threshold = scene.alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = scene.alarms.probe(&scene.key).await;
    // An alert that is already open is sent first: then the dashboard does not need the database any more.
    scene.alarms.add(Threshold::on("memory", "gt", 40.0)).await;
    probe.cpu(10.0).await;
    let mut dashboard = scene.alarms.watch().await;
    assert_eq!(dashboard.until("alert").await["metric_type"], "memory");

    let outage = scene.outage().await;
    for (seq, percent) in [(1, 95.0), (2, 97.0), (3, 10.0), (4, 96.0)] {
        send(&mut probe, (1 << 50) + seq, percent).await;
    }
    scene.until_failed().await;
    scene.end(outage).await;

    let mut told = Vec::new();
    while told.len() < 4 {
        let alert = dashboard.until("alert").await;
        told.push((alert["status"].clone(), alert["value"].clone(), alert["peak_value"].clone()));
    }
    let expected = [("active", 95.0, 95.0), ("active", 95.0, 97.0), ("resolved", 95.0, 97.0), ("active", 96.0, 96.0)];
    assert_eq!(told, expected.map(|(status, value, peak)| (json!(status), json!(value), json!(peak))));
    assert_eq!(scene.alarms.of_threshold(threshold).await.len(), 2);
}

#[actix_web::test]
async fn a_recovery_that_could_not_be_written_comes_when_the_database_is_back() {
    let scene = Scene::start().await;
    let threshold = scene.alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = scene.alarms.probe(&scene.key).await;
    probe.cpu(95.0).await;
    scene.alarms.until_only(threshold, "active").await;

    let outage = scene.outage().await;
    send(&mut probe, 1 << 50, 10.0).await;
    scene.until_failed().await;
    scene.end(outage).await;

    let alert = scene.alarms.until_only(threshold, "resolved").await;
    assert_eq!(scene.alarms.timeline(&alert).await, ["triggered", "resolved"]);
}

#[actix_web::test]
async fn a_service_that_ends_in_the_outage_has_the_alert_when_it_is_back() {
    let scene = Scene::start().await;
    let threshold = scene.alarms.add(Threshold::cpu(90.0)).await;
    let mut probe = scene.alarms.probe(&scene.key).await;
    probe.cpu(10.0).await;

    let outage = scene.outage().await;
    let crossing = send(&mut probe, 1 << 50, 95.0).await;
    scene.until_failed().await;
    scene.end(outage).await;
    let Scene { service, owner, alarms, key, from } = scene;
    // The sample may have been written and acknowledged, or not: the agent sends what was not acknowledged.
    let (storage, ()) = join(service.stop(), async { drop(probe) }).await;
    let service = TestService::start_on(storage, |_| {}).await;
    drop(from);
    let alarms = Alarms::of(&service, &owner, alarms.server_id);
    alarms.probe(&key).await.tell(vec![crossing]).await;

    alarms.until_only(threshold, "active").await;
}
