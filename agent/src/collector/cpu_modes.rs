//! What the processors spent their time on since the last reading, from the first line of `/proc/stat`.

use signalbox_protocol::series::Unit;

use crate::catalog::{Metric, Values};

const MODE: Metric<'_> =
    Metric::gauge("cpu_mode", Unit::Percent, "Share of the processors' time spent in a mode; user includes guests.");

/// In the order of the kernel's columns; none is not reported. Guest time follows and is part of user and nice.
const COLUMNS: [Option<&str>; 8] =
    [Some("user"), Some("nice"), Some("system"), None, Some("iowait"), Some("irq"), Some("softirq"), Some("steal")];

#[derive(Debug, Default)]
pub struct CpuModes {
    /// Clock ticks since boot.
    previous: Option<[u64; 8]>,
    /// Shares of all the time since the previous reading.
    percent: Option<[f64; 8]>,
}

impl CpuModes {
    pub fn read(&mut self, stat: &str) {
        let Some(ticks) = parse(stat) else { return };
        if let Some(previous) = self.previous.replace(ticks) {
            // Two readings within one tick: the last result still holds.
            self.percent = percent(previous, ticks).or(self.percent);
        }
    }

    pub fn values(&self, values: &mut Values<'_>) {
        let Some(percent) = &self.percent else { return };
        for (mode, percent) in COLUMNS.iter().zip(percent) {
            if let Some(mode) = mode {
                values.push(MODE, Some(mode), *percent);
            }
        }
    }
}

fn parse(stat: &str) -> Option<[u64; 8]> {
    let mut words = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        // Kernels before 2.6.11 have fewer columns.
        let Some(word) = words.next() else { break };
        *tick = word.parse().ok()?;
    }
    Some(ticks)
}

/// Subtracts each counter separately, because those of some kernels decrease now and then.
fn percent(earlier: [u64; 8], later: [u64; 8]) -> Option<[f64; 8]> {
    let mut spent = [0.0; 8];
    for (spent, (earlier, later)) in spent.iter_mut().zip(earlier.iter().zip(later)) {
        *spent = later.saturating_sub(*earlier) as f64;
    }
    let total: f64 = spent.iter().sum();
    (total > 0.0).then(|| spent.map(|spent| spent / total * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::values_of;

    const BEFORE: &str = "cpu  100 10 40 800 50 3 4 5 90 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nctxt 1\n";

    fn read(texts: &[&str]) -> Vec<(String, f64)> {
        let mut modes = CpuModes::default();
        texts.iter().for_each(|text| modes.read(text));
        values_of(|values| modes.values(values))
    }

    #[test]
    fn each_mode_is_its_share_of_the_time_between() {
        let after = "cpu  120 11 50 850 60 5 5 7 99 0\n";

        let expected = [
            ("cpu_mode:user", 20.83),
            ("cpu_mode:nice", 1.04),
            ("cpu_mode:system", 10.42),
            ("cpu_mode:iowait", 10.42),
            ("cpu_mode:irq", 2.08),
            ("cpu_mode:softirq", 1.04),
            ("cpu_mode:steal", 2.08),
        ];
        assert_eq!(read(&[BEFORE, after]), expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn first_broken_and_too_early_readings_yield_nothing_new() {
        let after = "cpu  200 10 40 800 50 3 4 5\n";

        assert_eq!(read(&[BEFORE]), []);
        assert_eq!(read(&[BEFORE, "intr 1\n"]), []);
        assert_eq!(read(&[BEFORE, "cpu  x 1 2 3\n"]), []);
        assert_eq!(read(&[BEFORE, after, after])[0], ("cpu_mode:user".to_owned(), 100.0));
    }

    #[test]
    fn an_idle_counter_that_goes_back_counts_as_nothing() {
        let after = "cpu  150 10 90 799 50 3 4 5\n";

        assert_eq!(read(&[BEFORE, after])[0], ("cpu_mode:user".to_owned(), 50.0));
    }
}
