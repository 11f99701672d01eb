//! What is done again and again.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Ticks now and each period from then on. After one that was late a whole period passes before the next: what takes long,
/// or slept with the machine, is not made up for.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Does something now and each period from then on, for as long as the task lives.
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
    async fn work_that_takes_long_is_not_made_up_for() {
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
