//! A service that finds that it has not run for two minutes.

use serde_json::Value;
use signalbox_protocol::Timestamp;

use super::{Host, MINUTE_MS, counted};
use crate::support::dashboard::Dashboard;
use crate::support::{Client, eventually, text_of};

const SKIPPED_MS: i64 = 2 * MINUTE_MS;

/// So many answers in a row come from every thread of the service: they take new connections in turn.
const IN_A_ROW: usize = 16;

impl Host {
    /// Has the service find that it has not run for [`SKIPPED_MS`].
    pub(super) async fn skip(&self) {
        self.service_clock.skip_ms(SKIPPED_MS);
        self.until_it_answers().await;
    }

    /// Each thread may take a request for one that took two minutes to come, and refuse it or close its connection, until that
    /// thread has looked at the clock.
    async fn until_it_answers(&self) {
        let root = Client::new(format!("http://{}", self.service.address));
        eventually("every thread of the service answers", async || {
            for _ in 0..IN_A_ROW {
                let answer = root.get("/healthz").try_send().await.ok()?;
                (answer.status == 200).then_some(())?;
            }
            Some(())
        })
        .await;
    }
}

#[actix_web::test]
async fn a_service_that_was_paused_misses_nobody() {
    let host = Host::start().await;
    host.threshold("offline", "gt", 5.0).await;
    let _agent = host.agent();
    host.until_live("at first").await;
    let mut dashboard = Dashboard::watch(host.service.address, host.prepared.server_id, &host.prepared.token).await;

    host.service.signal("STOP");
    // It finds that two minutes have passed, of which its agent waited the last one for an answer.
    host.service_clock.skip_ms(SKIPPED_MS);
    host.service.signal("CONT");

    host.agent_clock.set_ms(SKIPPED_MS);
    eventually("the pause is noticed", async || {
        (counted(&host.service, "signalbox_clock_pauses_total").await >= 1.0).then_some(())
    })
    .await;
    host.until_it_answers().await;
    host.until_offset("after the pause").await;
    host.until_live("after the pause").await;
    // The dashboard, which was not pinged for two minutes either, was not closed as silent.
    let shown = host.latest().await.unwrap();
    while Timestamp::parse(&text_of(&dashboard.until("metrics").await["timestamp"])) < Some(shown) {}
    assert_eq!(host.alerts().await, Vec::<Value>::new());
}
