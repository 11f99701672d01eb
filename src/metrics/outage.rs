//! Failed attempts to write: when they count as an outage that lasts, and when the log reports them.

use std::time::{Duration, Instant};

/// How often the log repeats an error: it would get two lines a second.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// What became of the attempts to write.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// From when on it counts as one that lasts; `None` if the last attempt succeeded.
    lasts_from: Option<Instant>,
    /// The errors that were logged in the last minute, and when. A success does not clear them, because writes may fail and
    /// succeed in turn.
    logged: Vec<(String, Instant)>,
    /// Attempts that have failed since the last line.
    unlogged: u64,
    /// Whether the newest line says that writing fails.
    is_announced: bool,
}

impl Outage {
    /// Records that an attempt that began then has failed, and that the outage counts as one that lasts after `patience`.
    /// Returns how many attempts have failed since the last line of the log, if another line is due.
    pub fn failed(&mut self, error: String, began: Instant, patience: Duration) -> Option<u64> {
        let lasts_from = began + patience;
        self.lasts_from = Some(self.lasts_from.map_or(lasts_from, |sooner| sooner.min(lasts_from)));
        self.unlogged += 1;
        self.logged.retain(|(_, at)| began.duration_since(*at) < LOG_EVERY);
        if self.logged.iter().any(|(known, _)| *known == error) {
            return None;
        }
        self.logged.push((error, began));
        self.is_announced = true;
        Some(std::mem::take(&mut self.unlogged))
    }

    /// Records that an attempt has succeeded. Returns whether the log has to say so.
    pub fn ended(&mut self) -> bool {
        self.lasts_from = None;
        std::mem::take(&mut self.is_announced)
    }

    /// Whether writing fails, and counts as failing for longer than a moment.
    pub fn lasts(&self, now: Instant) -> bool {
        self.lasts_from.is_some_and(|from| from <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn it_lasts_after_the_patience_from_its_beginning_and_at_once_without_any() {
        let (mut outage, began) = (Outage::default(), Instant::now());
        assert!(!outage.lasts(began));

        for seconds in 0_u32..5 {
            outage.failed("locked".to_owned(), began + seconds * SECOND, PATIENCE);
        }
        assert!(!outage.lasts(began + 4 * SECOND));
        assert!(outage.lasts(began + 5 * SECOND));

        outage.ended();
        assert!(!outage.lasts(began + 5 * SECOND));
        outage.failed("locked".to_owned(), began + 6 * SECOND, PATIENCE);
        outage.failed("full".to_owned(), began + 7 * SECOND, Duration::ZERO);
        assert!(outage.lasts(began + 7 * SECOND));
        outage.failed("locked".to_owned(), began + 8 * SECOND, PATIENCE);
        assert!(outage.lasts(began + 8 * SECOND));
    }

    #[test]
    fn the_log_gets_a_failure_at_once_and_then_once_a_minute_with_the_number_of_attempts() {
        let (mut outage, began) = (Outage::default(), Instant::now());

        let lines: Vec<_> = (0_u32..=130)
            .filter_map(|second| Some((second, outage.failed("full".to_owned(), began + second * SECOND, PATIENCE)?)))
            .collect();

        assert_eq!(lines, [(0, 1), (60, 60), (120, 60)]);
        // Two in turn as well.
        let mut failed = |error: &str, second: u32| outage.failed(error.to_owned(), began + second * SECOND, PATIENCE);
        assert_eq!((failed("locked", 131), failed("full", 132), failed("locked", 133)), (Some(11), None, None));
    }

    #[test]
    fn failures_and_successes_in_turn_do_not_fill_the_log() {
        let (mut outage, began) = (Outage::default(), Instant::now());

        let lines: Vec<_> = (0_u32..=60)
            .map(|second| {
                let failed = outage.failed("full".to_owned(), began + second * SECOND, PATIENCE);
                (second, failed, outage.ended())
            })
            .filter(|(_, failed, has_ended)| failed.is_some() || *has_ended)
            .collect();

        assert_eq!(lines, [(0, Some(1), true), (60, Some(60), true)]);
        assert!(!outage.ended());
    }
}
