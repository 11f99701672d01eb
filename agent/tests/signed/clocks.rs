//! The clock of the agent's machine is set while it runs, and while it does not.

use rustix::process::Signal;
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::Signed;

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

    /// Signs an order that holds between these minutes from now.
    fn signed_for(&self, minutes: [i64; 2]) -> Signed {
        let [from, until] = minutes.map(|minutes| json!(Timestamp::now().plus_millis(minutes * MINUTE)));
        self.sign(&self.payload(&[("not_before", from), ("expires_at", until)]), &["ada"])
    }
}

#[tokio::test]
async fn an_order_runs_once_and_in_its_time_whatever_the_clock_shows() {
    let mut host = Host::stopped("commands = \"signed\"\n").await;
    host.clock = Some(TestClock::new());
    host.run_with_clock(-60).await;
    // The record begins before the other one holds: otherwise the agent could not know whether that has run.
    let first = host.signed_for([-60, -55]);
    let order = host.order(Some(first));
    assert_eq!(host.ask(order).await, Outcome::Ran);
    let signed = host.signed_for([-20, 20]);

    // Not yet, or no longer: that uses nothing up.
    for minutes in [-50, -40, 40, 60, YEAR] {
        host.set_clock(minutes).await;
        let order = host.order(Some(signed.clone()));
        assert_eq!(host.ask(order).await, refusal("expired"), "{minutes} min");
    }
    assert_eq!(host.runs(), 1);
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
    assert_eq!(host.runs(), 2);
    host.expect_tries(52);
}

#[tokio::test]
async fn a_clock_that_was_behind_when_an_agent_without_its_record_started_makes_nothing_usable_twice() {
    let mut host = Host::start().await;
    let signed = host.sign(&host.payload(&[]), &["ada"]);
    let order = host.order(Some(signed.clone()));
    assert_eq!(host.ask(order).await, Outcome::Ran);

    host.stop(Signal::KILL).await;
    std::fs::remove_file(host.path("state/signed-nonces")).unwrap();
    host.clock = Some(TestClock::new());
    host.run_with_clock(-60).await;
    // It is in its time by that clock, and is refused: a new record must not begin with it.
    let early = host.signed_for([-90, -30]);
    let order = host.order(Some(early));
    assert_eq!(host.ask(order).await, refusal("expired"));
    host.set_clock(0).await;
    let order = host.order(Some(signed));

    assert_eq!(host.ask(order).await, refusal("expired"));
    assert_eq!(host.runs(), 1);
    host.expect_tries(3);
}
