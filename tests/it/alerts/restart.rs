//! A service that ends, in order or by force, while alerts are pending, active, acknowledged or resolved by hand: when
//! it is back nothing is repeated, lost or late.

use serde_json::Value;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::alerts::{Alarms, Probe, Threshold, busy, busy_for};
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::{Storage, eventually};

/// How the service ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Term,
    Kill,
}

/// A service that can be ended, on a database that outlives it.
pub(super) struct Scene {
    pub storage: Storage,
    pub service: ServiceProcess,
    pub prepared: Prepared,
}

impl Scene {
    pub async fn start() -> Self {
        let storage = Storage::fresh().await;
        let service = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
        let prepared = service.prepare().await;
        Self { storage, service, prepared }
    }

    pub async fn again(self, end: End) -> Self {
        let Self { storage, service, prepared } = self;
        match end {
            End::Term => assert_eq!(service.terminate().await.code, Some(0)),
            End::Kill => service.kill().await,
        }
        let service = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
        Self { storage, service, prepared }
    }

    /// The same, and these statements change its database while it is stopped.
    async fn again_after(self, statements: &[&str]) -> Self {
        let Self { storage, service, prepared } = self;
        assert_eq!(service.terminate().await.code, Some(0));
        storage.execute(statements).await;
        let service = ServiceProcess::start_on(&storage, "127.0.0.1:0").await;
        Self { storage, service, prepared }
    }

    pub fn alarms(&self) -> Alarms {
        Alarms::in_process(&self.service, &self.prepared)
    }

    pub async fn probe(&self) -> Probe {
        Probe::new(self.service.agent(&self.prepared).await)
    }
}

const ENDS: [End; 2] = [End::Term, End::Kill];

/// The alerts of a threshold, newest first, as soon as they have this status.
async fn until_raised(scene: &Scene, threshold: Uuid, statuses: &[&str]) -> Vec<Value> {
    eventually(&format!("its alerts are {statuses:?}"), async || {
        let alerts = scene.alarms().of_threshold(threshold).await;
        let is_so = alerts.iter().map(|alert| &alert["status"]).eq(statuses);
        is_so.then_some(alerts)
    })
    .await
}

fn ago(millis: i64) -> Timestamp {
    Timestamp::now().plus_millis(-millis)
}

#[actix_web::test]
async fn what_was_pending_fires_as_soon_as_if_nothing_had_been() {
    for end in ENDS {
        let scene = Scene::start().await;
        let threshold = scene.alarms().add(Threshold::cpu(90.0).lasting(30)).await;
        let scene = scene.again_after(&["UPDATE alert_thresholds SET armed_at = armed_at - 86400000"]).await;
        let mut probe = scene.probe().await;
        let start = ago(30_000);
        probe.tell(busy_for(start.plus_millis(20_000), 20, 95.0)).await;
        scene.alarms().expect_none(threshold).await;

        let scene = scene.again(end).await;
        scene.alarms().expect_none(threshold).await;
        let mut probe = scene.probe().await;
        probe.tell(vec![busy(start.plus_millis(25_000), 95.0)]).await;
        scene.alarms().expect_none(threshold).await;
        probe.tell(vec![busy(start.plus_millis(30_000), 96.0)]).await;

        let alert = scene.alarms().until_only(threshold, "active").await;
        assert_eq!(alert["value"], 96.0, "{end:?}");
    }
}

#[actix_web::test]
async fn a_run_that_was_broken_before_the_end_does_not_count_after_it() {
    for end in ENDS {
        let scene = Scene::start().await;
        let threshold = scene.alarms().add(Threshold::cpu(90.0).lasting(30)).await;
        let mut probe = scene.probe().await;
        let start = ago(40_000);
        let mut samples = busy_for(start.plus_millis(20_000), 20, 95.0);
        samples.extend([busy(start.plus_millis(21_000), 10.0), busy(start.plus_millis(22_000), 95.0)]);
        probe.tell(samples).await;

        let scene = scene.again(end).await;
        let mut probe = scene.probe().await;
        probe.tell(vec![busy(start.plus_millis(51_999), 95.0)]).await;
        scene.alarms().expect_none(threshold).await;
        probe.tell(vec![busy(start.plus_millis(52_000), 95.0)]).await;

        scene.alarms().until_only(threshold, "active").await;
    }
}

#[actix_web::test]
async fn an_acknowledged_sample_that_crosses_has_its_alert_whatever_happens_next() {
    for round in 0..4 {
        let scene = Scene::start().await;
        let at_once = scene.alarms().add(Threshold::cpu(90.0)).await;
        let lasting = scene.alarms().add(Threshold::cpu(90.0).lasting(20)).await;
        let mut probe = scene.probe().await;
        let end = probe.moment();
        probe.store(busy_for(end, 20, 95.0)).await;

        let scene = scene.again(End::Kill).await;

        for threshold in [at_once, lasting] {
            let alert = scene.alarms().until_only(threshold, "active").await;
            assert_eq!(alert["value"], 95.0, "round {round}");
        }
    }
}

/// The alert of a threshold after the service has stopped and started, which must be as it was before; and then more samples
/// that cross.
async fn keeps(scene: Scene, end: End, before: &Value) -> (Scene, Probe) {
    let scene = scene.again(end).await;
    let threshold = before["threshold_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(&scene.alarms().only(threshold).await, before, "{end:?}");
    let mut probe = scene.probe().await;
    probe.tell(Vec::new()).await;
    assert_eq!(&scene.alarms().only(threshold).await, before, "{end:?}");
    probe.cpu(91.0).await;
    assert_eq!(&scene.alarms().only(threshold).await, before, "{end:?}: not repeated");
    (scene, probe)
}

#[actix_web::test]
async fn an_active_alert_stays_the_same_and_recovers_afterwards() {
    for end in ENDS {
        let scene = Scene::start().await;
        let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
        let mut probe = scene.probe().await;
        probe.cpu(95.0).await;
        let active = scene.alarms().until_only(threshold, "active").await;

        let (scene, mut probe) = keeps(scene, end, &active).await;
        probe.cpu(99.0).await;
        eventually("the peak is known", async || {
            (scene.alarms().only(threshold).await["peak_value"] == 99.0).then_some(())
        })
        .await;
        probe.cpu(10.0).await;

        let resolved = scene.alarms().until_only(threshold, "resolved").await;
        assert_eq!((&resolved["id"], &resolved["resolved_by"]), (&active["id"], &Value::from("recovery")), "{end:?}");
        assert_eq!(scene.alarms().timeline(&active).await, ["triggered", "resolved"], "{end:?}");
    }
}

#[actix_web::test]
async fn an_acknowledged_alert_stays_acknowledged() {
    for end in ENDS {
        let scene = Scene::start().await;
        let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
        let mut probe = scene.probe().await;
        probe.cpu(95.0).await;
        let active = scene.alarms().until_only(threshold, "active").await;
        scene.alarms().acknowledge(&active).await;
        let acknowledged = scene.alarms().only(threshold).await;

        let (scene, mut probe) = keeps(scene, end, &acknowledged).await;
        probe.cpu(10.0).await;

        let resolved = scene.alarms().until_only(threshold, "resolved").await;
        assert_eq!(resolved["acknowledged_at"], acknowledged["acknowledged_at"], "{end:?}");
    }
}

#[actix_web::test]
async fn what_was_resolved_by_hand_waits_for_its_recovery_across_the_end() {
    for end in ENDS {
        let scene = Scene::start().await;
        let threshold = scene.alarms().add(Threshold::cpu(90.0).clear(80.0)).await;
        let mut probe = scene.probe().await;
        probe.cpu(95.0).await;
        let active = scene.alarms().until_only(threshold, "active").await;
        scene.alarms().resolve(&active).await;
        let resolved = scene.alarms().only(threshold).await;

        let (scene, mut probe) = keeps(scene, end, &resolved).await;
        probe.cpu(85.0).await;
        probe.cpu(95.0).await;
        assert_eq!(scene.alarms().only(threshold).await, resolved, "{end:?}: between the two it has not recovered");
        probe.cpu(80.0).await;
        probe.cpu(97.0).await;

        assert_eq!(scene.alarms().until(threshold, "active").await["value"], 97.0);
        assert_eq!(scene.alarms().of_threshold(threshold).await.len(), 2, "{end:?}");
    }
}

#[actix_web::test]
async fn what_is_over_is_not_raised_again_from_the_history() {
    for end in ENDS {
        let scene = Scene::start().await;
        let at_once = scene.alarms().add(Threshold::cpu(90.0)).await;
        let lasting = scene.alarms().add(Threshold::cpu(90.0).lasting(20)).await;
        let mut probe = scene.probe().await;
        let start = ago(50_000);
        let mut samples = busy_for(start.plus_millis(25_000), 25, 95.0);
        samples.push(busy(start.plus_millis(26_000), 10.0));
        probe.tell(samples).await;
        let mut before = Vec::new();
        for threshold in [at_once, lasting] {
            before.push(scene.alarms().until_only(threshold, "resolved").await);
        }

        let scene = scene.again(end).await;
        let mut probe = scene.probe().await;
        probe.cpu(10.0).await;
        for (threshold, before) in [at_once, lasting].into_iter().zip(&before) {
            assert_eq!(&scene.alarms().only(threshold).await, before, "{end:?}");
        }
        probe.cpu(95.0).await;

        until_raised(&scene, at_once, &["active", "resolved"]).await;
        assert_eq!(scene.alarms().only(lasting).await, before[1], "{end:?}: for how long is counted from the recovery");
    }
}

#[actix_web::test]
async fn what_was_resolved_by_hand_and_has_recovered_fires_only_for_what_is_new() {
    for end in ENDS {
        let scene = Scene::start().await;
        let threshold = scene.alarms().add(Threshold::cpu(90.0).lasting(10)).await;
        let mut probe = scene.probe().await;
        let start = ago(50_000);
        probe.tell(busy_for(start.plus_millis(20_000), 20, 95.0)).await;
        scene.alarms().resolve(&scene.alarms().until_only(threshold, "active").await).await;
        probe.tell(vec![busy(start.plus_millis(25_000), 10.0), busy(start.plus_millis(26_000), 95.0)]).await;

        let scene = scene.again(end).await;
        let mut probe = scene.probe().await;
        probe.tell(vec![busy(start.plus_millis(35_000), 95.0)]).await;
        scene.alarms().only(threshold).await;
        probe.tell(vec![busy(start.plus_millis(36_000), 95.0)]).await;

        scene.alarms().until(threshold, "active").await;
        assert_eq!(scene.alarms().of_threshold(threshold).await.len(), 2, "{end:?}");
    }
}

#[actix_web::test]
async fn what_is_sent_again_after_the_end_is_heard_once() {
    let scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
    let mut probe = scene.probe().await;
    let start = ago(30_000);
    let values = [95.0, 10.0, 96.0, 10.0];
    let samples: Vec<_> = (0..).zip(values).map(|(step, value)| busy(start.plus_millis(5000 * step), value)).collect();
    probe.tell(samples.clone()).await;
    let before = until_raised(&scene, threshold, &["resolved", "resolved"]).await;

    // The acknowledgement was lost, from the agent's point of view.
    let scene = scene.again(End::Kill).await;
    let mut probe = scene.probe().await;
    probe.tell(samples).await;
    probe.cpu(20.0).await;

    assert_eq!(scene.alarms().of_threshold(threshold).await, before);
}

#[actix_web::test]
async fn what_is_sent_again_neither_ends_nor_repeats_what_is_active() {
    let scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
    let mut probe = scene.probe().await;
    let start = ago(30_000);
    let samples: Vec<_> =
        (0..).zip([10.0, 95.0, 10.0, 96.0]).map(|(step, value)| busy(start.plus_millis(5000 * step), value)).collect();
    probe.tell(samples.clone()).await;
    let before = until_raised(&scene, threshold, &["active", "resolved"]).await;

    let scene = scene.again(End::Kill).await;
    let mut probe = scene.probe().await;
    for sample in samples {
        probe.tell(vec![sample]).await;
        assert_eq!(scene.alarms().of_threshold(threshold).await, before);
    }
    probe.cpu(10.0).await;

    until_raised(&scene, threshold, &["resolved", "resolved"]).await;
}

#[actix_web::test]
async fn many_ends_in_a_row_leave_one_alert() {
    let mut scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
    let lasting = scene.alarms().add(Threshold::cpu(90.0).lasting(1)).await;

    for round in 0..6 {
        scene.probe().await.cpu(95.0 + f64::from(round) / 10.0).await;
        scene = scene.again(ENDS[round as usize % 2]).await;
    }

    for threshold in [threshold, lasting] {
        let alert = scene.alarms().until_only(threshold, "active").await;
        assert_eq!(scene.alarms().timeline(&alert).await, ["triggered"]);
    }
}

#[actix_web::test]
async fn an_alert_belongs_to_its_threshold_whatever_the_clock_said_when_that_was_edited() {
    let scene = Scene::start().await;
    let threshold = scene.alarms().add(Threshold::cpu(90.0)).await;
    scene.probe().await.cpu(95.0).await;
    let raised = scene.alarms().until_only(threshold, "active").await;

    // As if it had been edited two hours in the future.
    let scene = scene.again_after(&["UPDATE alert_thresholds SET armed_at = armed_at + 7200000"]).await;
    scene.probe().await.cpu(96.0).await;

    let alert = scene.alarms().only(threshold).await;
    assert_eq!((&alert["id"], &alert["status"]), (&raised["id"], &raised["status"]));
}
