//! Work that repeats periodically.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Returns a timer that ticks now and then each period. After a late tick a whole period passes before the next one:
/// ticks missed by slow work or a suspended machine are skipped.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Runs some work now and then each period, for as long as the task lives.
pub async fn every(period: Duration, mut work: impl AsyncFnMut()) {
    let mut ticks = ticks(period);
    loop {
        ticks.tick().await;
        work().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ticks_missed_by_slow_work_are_skipped() {
        let (began, mut at) = (Instant::now(), Vec::new());

        let work = every(Duration::from_secs(10), async || {
            at.push(began.elapsed().as_secs());
            if at.len() == 2 {
                sleep(Duration::from_secs(35)).await;
            }
        });
        _ = timeout(Duration::from_secs(70), work).await;

        assert_eq!(at, [0, 10, 45, 55, 65]);
    }
}
