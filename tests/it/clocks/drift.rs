//! Clocks that run fast and slow. The drift of 100 ppm over months passes in a minute, in steps that no message can distinguish
//! from the real ones: each is too small to report.

use std::time::{Duration, Instant};

use serde_json::Value;
use signalbox_protocol::Timestamp;

use super::{DAY_MS, Host};
use crate::support::PATIENCE;
use crate::support::clock::TestClock;

const PARTS_PER_MILLION: i64 = 100;

/// The resulting offset after this many days.
fn in_days(days: i64) -> i64 {
    days * DAY_MS * PARTS_PER_MILLION / 1_000_000
}

/// Makes a clock drift by this many milliseconds per second until it is this far off. Nothing is missed during that time.
async fn drifts(host: &Host, clock: &TestClock, millis_a_second: i64, until_ms: i64) -> Duration {
    let began = Instant::now();
    clock.drift(millis_a_second * 1_000);
    while clock.ahead_ms().abs() < until_ms {
        assert_eq!(host.alerts().await, Vec::<Value>::new());
        assert!(began.elapsed() < 2 * PATIENCE, "the clock stands still");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    clock.set_ms(clock.ahead_ms());
    began.elapsed()
}

/// How many samples are stored for a time of this length.
async fn expect_kept(host: &Host, range: (Timestamp, Timestamp), lasted: Duration) {
    let expected = usize::try_from(lasted.as_millis() / 500).unwrap();
    let kept = host.kept(range).await.len();
    // The machine that runs all this may have skipped some.
    assert!(kept + expected / 4 >= expected, "{kept} of {expected}");
}

async fn an_agent_drifts(millis_a_second: i64) {
    let host = Host::start().await;
    host.threshold("offline", "gt", 20.0).await;
    let _agent = host.agent();
    host.until_live("at first").await;
    let began = host.agent_clock.now();

    let lasted = drifts(&host, &host.agent_clock, millis_a_second, in_days(90)).await;

    host.until_offset("after three months").await;
    host.until_live("after three months").await;
    host.until_up("after three months").await;
    let ended = host.agent_clock.now();
    let range = if ended > began { (began, ended) } else { (ended, began) };
    expect_kept(&host, range, lasted).await;
    assert_eq!(host.clock_events().await, [true], "told once");
    host.agent_clock.set_ms(0);
    host.until_offset("put right").await;
    host.until_live("put right").await;
    assert_eq!(host.alerts().await, Vec::<Value>::new());
}

#[actix_web::test]
async fn an_agents_clock_that_runs_fast_for_three_months_is_followed() {
    an_agent_drifts(26_000).await;
}

#[actix_web::test]
async fn an_agents_clock_that_runs_slow_for_three_months_is_followed() {
    an_agent_drifts(-26_000).await;
}

async fn a_service_drifts(millis_a_second: i64) {
    let host = Host::start().await;
    host.threshold("offline", "gt", 20.0).await;
    let _agent = host.agent();
    host.until_live("at first").await;
    let began = Timestamp::now();

    let lasted = drifts(&host, &host.service_clock, millis_a_second, in_days(28)).await;

    host.until_offset("after four weeks").await;
    host.until_live("after four weeks").await;
    host.until_up("after four weeks").await;
    expect_kept(&host, (began, Timestamp::now()), lasted).await;
    host.service_clock.set_ms(0);
    host.until_offset("put right").await;
    host.until_live("put right").await;
    assert_eq!(host.alerts().await, Vec::<Value>::new());
}

#[actix_web::test]
async fn a_services_clock_that_runs_fast_for_four_weeks_loses_nobody() {
    a_service_drifts(4_000).await;
}

#[actix_web::test]
async fn a_services_clock_that_runs_slow_for_four_weeks_loses_nobody() {
    a_service_drifts(-4_000).await;
}
