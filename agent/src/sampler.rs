//! Takes a sample at every tick and stores it in the backlog, connected or not; and live ones in between, if they are wanted.

use signalbox_protocol::Sample;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::backlog::Backlog;
use crate::config::Interval;
use crate::live::{Live, Rest};
use crate::source::Source;
use crate::wire;

/// Never ends. The first sample is taken at once; a new interval counts from the last tick.
pub async fn sample_forever(
    mut source: impl Source,
    backlog: &Backlog,
    mut intervals: watch::Receiver<Interval>,
    live: &Live,
) {
    let mut encoded = Vec::new();
    let (mut start, mut latest) = (Instant::now(), None);
    let (mut newest, mut rest): (Option<Sample>, _) = (None, Rest::from_now());
    loop {
        let interval = *intervals.borrow_and_update();
        backlog.expect_every(interval);
        let period = interval.duration();
        let mut ticks = interval_at(latest.map_or(start, |latest| latest + period), period);
        // After a slow reading or a suspend it continues with the next tick, without a burst of equal samples.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                // Where both are due, the sample that is kept is the live one, too.
                biased;
                tick = ticks.tick() => {
                    latest = Some(tick);
                    if let Some(sample) = source.sample().await {
                        newest = Some(sample.clone());
                        rest = Rest::from_now();
                        keep(sample, backlog, &mut encoded);
                    }
                }
                () = live.due(rest), if newest.is_some() => {
                    let began = Instant::now();
                    if let Some(kept) = &newest
                        && let Some(sample) = source.live(kept).await
                    {
                        live.offer(sample);
                    }
                    rest = Rest::after(began);
                }
                Ok(()) = intervals.changed() => break,
            }
        }
        start = Instant::now();
    }
}

/// Rounds, checks and stores a sample. It drops one that the service would refuse, because that would close the connection.
pub fn keep(mut sample: Sample, backlog: &Backlog, encoded: &mut Vec<u8>) {
    sample.round();
    if let Err(error) = sample.validate() {
        tracing::error!(%error, "left out a sample that is not valid");
        return;
    }
    match wire::encode_sample(&sample, encoded) {
        Ok(()) => backlog.append(encoded),
        Err(error) => tracing::error!(%error, "left out a sample that cannot be encoded"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use signalbox_protocol::Timestamp;

    use super::*;
    use crate::state::StateDir;
    use crate::{BufferLimits, Catalog, Config};

    /// Yields numbered samples, every third of them invalid and every fourth none at all.
    struct Numbered<'a>(&'a AtomicU32);

    impl Source for Numbered<'_> {
        async fn sample(&mut self) -> Option<Sample> {
            let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            let cpu_percent = if number.is_multiple_of(3) { f64::NAN } else { 12.345 };
            let sample = Sample { timestamp: Timestamp::from_millis(number.into()), cpu_percent, ..Sample::default() };
            (!number.is_multiple_of(4)).then_some(sample)
        }
    }

    fn backlog() -> Backlog {
        Backlog::open(&Config::default(), None, Catalog::default()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_sample_is_taken_at_once_and_the_rest_at_the_interval() {
        let (backlog, taken, live) = (backlog(), AtomicU32::new(0), Live::new(None));
        let (_interval, intervals) = watch::channel(Interval::from_seconds(5.0).unwrap());

        let sampling = sample_forever(Numbered(&taken), &backlog, intervals, &live);
        let _ = tokio::time::timeout(Duration::from_millis(20_001), sampling).await;
        let kept = backlog.batch(0, u64::MAX).unwrap();

        assert_eq!(taken.load(Ordering::Relaxed), 5);
        assert_eq!(kept.map(|batch| batch.count), Some(3), "without the third and the fourth");
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_interval_counts_from_the_latest_sample() {
        let (backlog, taken, live) = (backlog(), AtomicU32::new(0), Live::new(None));
        let (interval, intervals) = watch::channel(Interval::from_seconds(10.0).unwrap());
        let at_three_seconds = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            interval.send_replace(Interval::from_seconds(4.0).unwrap());
            tokio::time::sleep(Duration::from_millis(999)).await;
            let before = taken.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(2)).await;
            (before, taken.load(Ordering::Relaxed))
        };

        let counts = tokio::select! {
            counts = at_three_seconds => counts,
            () = sample_forever(Numbered(&taken), &backlog, intervals, &live) => unreachable!(),
        };

        assert_eq!(counts, (1, 2));
    }

    /// Its live samples have the load of the sample before, and one more for each.
    struct Climbing(u64);

    impl Source for Climbing {
        async fn sample(&mut self) -> Option<Sample> {
            Some(Sample { process_count: 100, ..Sample::default() })
        }

        async fn live(&mut self, latest: &Sample) -> Option<Sample> {
            self.0 += 1;
            Some(Sample { process_count: latest.process_count + self.0, ..Sample::default() })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_day_of_samples_is_kept_at_the_interval_that_the_service_asks_for() {
        // In memory: on a disk under load a call may take as long as on one that hangs.
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        // One file for each sample, and no room beyond what a day needs.
        let limits = BufferLimits { segment_bytes: 1, disk_bytes: 1, disk_samples: 0, ..BufferLimits::default() };
        let config = Config { limits, ..Config::default() };
        let backlog = Backlog::open(&config, Some(StateDir::new(dir.path())), Catalog::default()).unwrap();
        let (day, live) = (Duration::from_secs(24 * 3600), Live::new(None));
        let (interval, intervals) = watch::channel(Interval::of(day / 10));
        let three_days = async {
            tokio::time::sleep(day).await;
            interval.send_replace(Interval::of(day / 100));
            tokio::time::sleep(day * 2).await;
        };

        tokio::select! {
            () = three_days => {}
            () = sample_forever(Climbing(0), &backlog, intervals, &live) => unreachable!(),
        }
        let kept = backlog.batch(0, u64::MAX).unwrap().map_or(0, |batch| batch.count);

        assert!((100..=102).contains(&kept), "{kept}");
    }

    #[tokio::test(start_paused = true)]
    async fn live_samples_come_between_those_that_are_kept() {
        let (backlog, live) = (backlog(), Live::new(Some(Duration::from_secs(1))));
        let (_interval, intervals) = watch::channel(Interval::from_seconds(5.0).unwrap());
        live.ask(1.0, 60.0);
        let mut shown = Vec::new();
        let watching = async {
            for _ in 0..100 {
                shown.push(live.taken().await.process_count);
            }
        };

        let sampling = async { tokio::join!(sample_forever(Climbing(0), &backlog, intervals, &live), watching) };
        let _ = tokio::time::timeout(Duration::from_millis(9_500), sampling).await;

        assert_eq!(shown, [101, 102, 103, 104, 105, 106, 107, 108], "four between each two");
        assert_eq!(backlog.batch(0, u64::MAX).unwrap().map(|batch| batch.count), Some(2));
    }
}
