//! The clock of the agent's machine is set while it runs, and while it does not.

use rustix::process::Signal;
use serde_json::json;
use signalbox_protocol::Timestamp;

use crate::clock::TestClock;
use crate::host::{Host, Outcome, refusal};

const MINUTE: i64 = 60_000;
const YEAR: i64 = 366 * 24 * 60;

impl Host {
    /// Sets the clock so many minutes ahead, or behind. The agent takes a jump ahead for a suspend, and connects again.
    async fn set_clock(&mut self, minutes: i64) {
        let clock = self.clock.as_ref().unwrap();
        let is_ahead = minutes * MINUTE > clock.ahead_ms();
        clock.set_ms(minutes * MINUTE);
        if is_ahead {
            self.until_connected_again().await;
        }
    }

    /// Starts the agent with its clock so many minutes ahead, or behind.
    async fn run_with_clock(&mut self, minutes: i64) {
        self.clock.as_ref().unwrap().set_ms(minutes * MINUTE);
        self.run().await;
    }
}

#[tokio::test]
async fn an_order_runs_once_and_in_its_time_whatever_the_clock_shows() {
    let mut host = Host::stopped("commands = \"signed\"\n").await;
    host.clock = Some(TestClock::new());
    // Before what is signed holds: otherwise the agent could not know whether it has run.
    host.run_with_clock(-60).await;
    let [from, until] = [-20, 20].map(|minutes| json!(Timestamp::now().plus_millis(minutes * MINUTE)));
    let signed = host.sign(&host.payload(&[("not_before", from), ("expires_at", until)]), &["ada"]);

    // Not yet, or no longer: that uses nothing up.
    for minutes in [-50, -40, 40, 60, YEAR] {
        host.set_clock(minutes).await;
        let order = host.order(Some(signed.clone()));
        assert_eq!(host.ask(order).await, refusal("expired"), "{minutes} min");
    }
    assert_eq!(host.runs(), 0);
    host.set_clock(0).await;
    let order = host.order(Some(signed.clone()));
    assert_eq!(host.ask(order).await, Outcome::Ran);

    // Set back and forth after that, also while the agent is away.
    for (round, at_start) in [-10, 10, -40, 40, 0].into_iter().enumerate() {
        for minutes in [15, 10, -10, -40, YEAR, 1, 0, -1, -YEAR] {
            host.set_clock(minutes).await;
            let expected = refusal(if (-20..20).contains(&minutes) { "replayed" } else { "expired" });
            let order = host.order(Some(signed.clone()));
            assert_eq!(host.ask(order).await, expected, "round {round}, {minutes} min");
        }
        host.stop(if round % 2 == 0 { Signal::KILL } else { Signal::TERM }).await;
        host.run_with_clock(at_start).await;
    }
    assert_eq!(host.runs(), 1);
    host.expect_tries(51);
}
