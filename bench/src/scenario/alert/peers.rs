//! Prometheus with Alertmanager and the same crossings, each at a moment of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use signalbox_protocol::Timestamp;
use tokio::time::timeout;

use crate::peer::{Exporter, Setting, Watch, from_alertmanager};
use crate::report::progress;
use crate::service::ServiceOptions;
use crate::stats::Latencies;
use crate::webhook::Webhook;

/// Longer than both take to start; they evaluate once per period, so every series has been seen before it crosses.
const START: Duration = Duration::from_secs(5);
/// Crossings per period, evenly spread: their delay depends on the position within it.
const CROSSINGS_A_PERIOD: usize = 6;

/// The results of all crossings.
#[derive(Debug)]
pub struct Peer {
    /// By Prometheus' own times.
    pub fired: Latencies,
    pub called: Latencies,
    pub missed: Missed,
}

/// Crossings without a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed(pub usize);

/// Fails when the programs are not there. None when nothing is to cross.
pub async fn measure(options: &ServiceOptions, setting: Setting, crossings: usize) -> anyhow::Result<Option<Peer>> {
    if crossings == 0 {
        return Ok(None);
    }
    let begin = Instant::now() + START + setting.period();
    let crossings: Arc<[Instant]> = moments(begin, setting.period(), crossings).into();
    let exporter = Exporter::start(crossings.clone())?;
    let mut webhook = Webhook::start()?;
    let _watch = Watch::start(&options.work_dir, &setting, exporter.address(), &webhook.url()).await?;
    let last = crossings.last().copied().context("nothing crosses")?;
    let deadline = last + setting.patience();
    let seconds = deadline.saturating_duration_since(Instant::now()).as_secs();
    progress(format_args!("Prometheus, {}: {} crossings within {seconds} s", setting.name, crossings.len()));
    let mut peer = Peer { fired: Latencies::default(), called: Latencies::default(), missed: Missed(0) };
    let mut waiting: Vec<Option<Instant>> = crossings.iter().copied().map(Some).collect();
    while waiting.iter().any(Option::is_some) {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(call) = timeout(left, webhook.next()).await else { break };
        let call = call?;
        for told in from_alertmanager(&call)? {
            // Alertmanager may repeat it.
            let Some(crossed) = waiting.get_mut(told.series).and_then(Option::take) else { continue };
            peer.called.record(call.at.saturating_duration_since(crossed));
            let fired = Timestamp::parse(&told.fired).context("Prometheus told another kind of time")?;
            peer.fired.record(between(crossed.elapsed(), Timestamp::now(), fired));
        }
    }
    peer.missed = Missed(waiting.iter().flatten().count());
    Ok(Some(peer))
}

/// Moments in random places of equal shares, so that few of them are spread well.
fn moments(begin: Instant, period: Duration, count: usize) -> Vec<Instant> {
    let span = period.mul_f64((count as f64 / CROSSINGS_A_PERIOD as f64).max(1.0));
    (0..count).map(|number| begin + span.mul_f64((number as f64 + fastrand::f64()) / count as f64)).collect()
}

/// The time from a moment this long ago until `time`, on the clock of the same machine.
fn between(ago: Duration, now: Timestamp, time: Timestamp) -> Duration {
    let since = u64::try_from(now.millis_since(time)).unwrap_or_default();
    ago.saturating_sub(Duration::from_millis(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_of_a_period_has_its_crossing() {
        let begin = Instant::now();

        let moments = moments(begin, Duration::from_secs(60), 6);

        for (number, moment) in (0..).zip(moments) {
            let share = begin + Duration::from_secs(10) * number;
            assert!(moment >= share && moment <= share + Duration::from_secs(10));
        }
    }

    #[test]
    fn what_was_two_of_seven_seconds_ago_took_five() {
        let now = Timestamp::from_millis(1_795_166_130_120);

        let took = between(Duration::from_secs(7), now, now.plus_millis(-2000));

        assert_eq!(took, Duration::from_secs(5));
    }
}
