//! Machines whose clock has no battery: a service and an agent that are installed in 1970 or in 2099, before something sets
//! the clock.

use serde_json::Value;
use signalbox_protocol::Timestamp;

use super::{DAY_MS, Host, MINUTE_MS, YEAR_MS, counted};
use crate::support::eventually;

/// How far a clock is ahead that shows the first minutes of 1970.
fn of_1970() -> i64 {
    MINUTE_MS - Timestamp::now().as_millis()
}

/// The same of one that shows 2099.
const OF_2099: i64 = 73 * YEAR_MS;

impl Host {
    /// Returns when this much was measured since the latest sample that is shown now.
    async fn until_later_by(&self, millis: i64) {
        let shown = self.latest().await.unwrap();
        eventually("more samples", async || self.latest().await.filter(|at| at.millis_since(shown) > millis)).await;
    }

    /// Comes back when samples since some time are kept: they are shown before.
    async fn until_kept(&self, since: Timestamp) {
        eventually("samples are kept", async || (self.kept((since, Timestamp::now())).await.len() >= 4).then_some(()))
            .await;
    }

    async fn one_alert(&self) -> Value {
        let alerts =
            eventually("an alert", async || Some(self.alerts().await).filter(|alerts| !alerts.is_empty())).await;
        assert_eq!(alerts.len(), 1, "{alerts:?}");
        alerts[0].clone()
    }
}

/// Comes back when the service counts its own clock as doubted, or as believed.
async fn until_doubted(host: &Host, doubted: f64) {
    let counted = async || counted(&host.service, "signalbox_clock_doubted").await;
    eventually("the clock is doubted, or not", async || (counted().await == doubted).then_some(())).await;
}

async fn is_installed_and_put_right(ahead_ms: i64) {
    let mut host = Host::start_at(ahead_ms).await;
    host.threshold("offline", "gt", 20.0).await;
    host.threshold("memory", "gt", 0.0).await;
    let began = Timestamp::now();
    let _agent = host.agent();

    host.until_live("at the false time").await;
    host.until_offset("at the false time").await;
    host.until_up("at the false time").await;
    let alert = host.one_alert().await;
    until_doubted(&host, 1.0).await;
    host.until_later_by(2_000).await;
    let ended = Timestamp::now();
    host.service_clock.set_ms(0);
    host.sign_in().await;

    host.until_live("put right").await;
    host.until_offset("put right").await;
    host.until_up("put right").await;
    assert_eq!(alert["metric_type"], "memory");
    until_doubted(&host, 0.0).await;
    eventually("what was measured at the false time is kept", async || {
        (host.kept((began, ended)).await.len() >= 4).then_some(())
    })
    .await;
    assert_eq!(host.clock_events().await, Vec::<bool>::new(), "no agent is blamed");
    let only = host.one_alert().await;
    assert_eq!((&only["id"], &only["status"]), (&alert["id"], &"active".into()));
}

#[actix_web::test]
async fn a_service_that_is_installed_in_1970_loses_nothing_when_its_clock_is_put_right() {
    is_installed_and_put_right(of_1970()).await;
}

#[actix_web::test]
async fn a_service_that_is_installed_in_2099_loses_nothing_when_its_clock_is_put_right() {
    is_installed_and_put_right(OF_2099).await;
}

#[actix_web::test]
async fn an_agent_that_is_installed_in_1970_is_shown_as_it_is_and_raises_its_alerts() {
    let host = Host::start().await;
    host.threshold("offline", "gt", 20.0).await;
    host.threshold("memory", "gt", 0.0).await;
    host.agent_clock.set_ms(of_1970());
    let _agent = host.agent();

    host.until_live("in 1970").await;
    host.until_offset("in 1970").await;
    host.until_up("in 1970").await;
    let alert = host.one_alert().await;
    assert_eq!(host.clock_events().await, [true]);
    let began = Timestamp::now();
    host.agent_clock.set_ms(0);

    host.until_live("put right").await;
    host.until_offset("put right").await;
    host.until_later_by(2_000).await;
    host.until_kept(began).await;
    assert_eq!(host.one_alert().await["id"], alert["id"]);
}

#[actix_web::test]
async fn an_agent_that_is_installed_in_2099_is_shown_as_wrong_and_is_live_when_its_clock_is_put_right() {
    let host = Host::start().await;
    host.threshold("offline", "gt", 20.0).await;
    host.agent_clock.set_ms(OF_2099);
    let _agent = host.agent();

    // Its samples are refused, like all of the distant future, but it is known to be connected.
    host.until_offset("in 2099").await;
    assert_eq!(host.clock_events().await, [true]);
    assert_eq!(counted(&host.service, "signalbox_clock_doubted").await, 0.0, "nobody believes it");
    let began = Timestamp::now();
    host.agent_clock.set_ms(0);

    host.until_live("put right").await;
    host.until_offset("put right").await;
    host.until_up("put right").await;
    host.until_later_by(2_000).await;
    host.until_kept(began).await;
    eventually("an event says that the clock is right", async || {
        (host.clock_events().await == [false, true]).then_some(())
    })
    .await;
    assert_eq!(host.alerts().await, Vec::<Value>::new());
}

#[actix_web::test]
async fn an_agents_clock_that_jumps_far_ahead_is_shown_and_all_is_live_when_it_is_put_right() {
    let host = Host::start().await;
    host.threshold("offline", "gt", 20.0).await;
    let _agent = host.agent();
    host.until_live("at first").await;

    for ahead_ms in [2 * DAY_MS, YEAR_MS] {
        let before = host.clock_events().await.len();
        // Its present samples are of the distant future and not stored. It is connected, and shown as wrong.
        host.agent_clock.set_ms(ahead_ms);
        host.until_offset(&format!("{ahead_ms} ms ahead")).await;
        eventually("an event says that its clock is off", async || {
            (host.clock_events().await.len() == before + 1).then_some(())
        })
        .await;
        let began = Timestamp::now();
        host.agent_clock.set_ms(0);

        host.until_live("put right").await;
        host.until_offset("put right").await;
        host.until_up("put right").await;
        host.until_kept(began).await;
        eventually("an event says that the clock is right", async || {
            (host.clock_events().await.first() == Some(&false)).then_some(())
        })
        .await;
    }
    assert_eq!(host.alerts().await, Vec::<Value>::new());
}
