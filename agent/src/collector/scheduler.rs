//! The scheduler's counters, from the lines of `/proc/stat` after those of processors and interrupts.

use std::time::Instant;

use signalbox_protocol::series::Unit;

use super::rate::Rate;
use crate::catalog::{Metric, Values};

const CONTEXT_SWITCHES: Metric<'_> =
    Metric::gauge("context_switches", Unit::PerSecond, "How often a processor went from one task to another.");
const BLOCKED: Metric<'_> =
    Metric::gauge("processes_blocked", Unit::Count, "Tasks that wait for a disk or a network file system.");

#[derive(Debug, Default)]
pub struct Scheduler {
    switches: Rate,
    blocked: Option<u64>,
}

impl Scheduler {
    pub fn read(&mut self, stat: &str, now: Instant) {
        if let Some(count) = line(stat, "\nctxt ") {
            self.switches.read(count, now);
        }
        self.blocked = line(stat, "\nprocs_blocked ");
    }

    pub fn values(&self, values: &mut Values<'_>) {
        if let Some(rate) = self.switches.per_second() {
            values.push(CONTEXT_SWITCHES, None, rate);
        }
        if let Some(count) = self.blocked {
            values.push(BLOCKED, None, count as f64);
        }
    }
}

/// The number on the line with this beginning. It skips the line of interrupts before it, which has many kilobytes.
fn line(stat: &str, begin: &str) -> Option<u64> {
    let place = memchr::memmem::find(stat.as_bytes(), begin.as_bytes())?;
    stat.get(place + begin.len()..)?.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::collector::fixture::{named, values_of};

    fn stat(switches: u64) -> String {
        let interrupts = " 0".repeat(5_000);
        format!(
            "cpu  1 2 3 4\ncpu0 1 2 3 4\nintr 1{interrupts}\nctxt {switches}\nbtime 1\nprocesses 9\nprocs_running 2\n\
             procs_blocked 3\nsoftirq 1 2\n"
        )
    }

    #[test]
    fn switches_are_counted_by_the_second_and_blocked_tasks_as_they_are() {
        let (mut scheduler, start) = (Scheduler::default(), Instant::now());

        scheduler.read(&stat(1_000), start);
        let first = values_of(|values| scheduler.values(values));
        scheduler.read(&stat(6_000), start + Duration::from_secs(5));

        assert_eq!(first, named([("processes_blocked", 3.0)]));
        let expected = [("context_switches", 1_000.0), ("processes_blocked", 3.0)];
        assert_eq!(values_of(|values| scheduler.values(values)), named(expected));
    }

    #[test]
    fn a_file_without_the_line_yields_nothing() {
        let mut scheduler = Scheduler::default();

        scheduler.read("cpu  1 2 3 4\nctxt x\n", Instant::now());

        assert_eq!(values_of(|values| scheduler.values(values)), []);
    }
}
