//! How much of the time tasks waited for processors, memory or disks, from `/proc/pressure` (PSI).

use std::io;
use std::time::Instant;

use signalbox_protocol::series::Unit;

use super::Collector;
use super::file::KernelFile;
use super::rate::Rate;
use crate::catalog::{Metric, Values};
use crate::config::Roots;

const SOME: Metric<'_> = Metric::gauge(
    "pressure_some",
    Unit::Percent,
    "Share of the time in which at least one task waited for a resource.",
);
const FULL: Metric<'_> = Metric::gauge(
    "pressure_full",
    Unit::Percent,
    "Share of the time in which no task ran because all waited for a resource.",
);

/// Rates are microseconds per second.
const MICROSECONDS_A_PERCENT: f64 = 10_000.0;

pub struct Pressure {
    resources: [Resource; 3],
}

struct Resource {
    name: &'static str,
    file: KernelFile,
    some: Rate,
    full: Rate,
}

impl Pressure {
    pub fn new(roots: &Roots) -> Self {
        let dir = roots.proc.join("pressure");
        let resource = |name: &'static str| Resource {
            name,
            file: KernelFile::new(dir.join(name)),
            some: Rate::default(),
            full: Rate::default(),
        };
        Self { resources: ["cpu", "memory", "io"].map(resource) }
    }
}

impl Collector for Pressure {
    fn name(&self) -> &str {
        "pressure"
    }

    fn read(&mut self) -> io::Result<()> {
        self.resources.iter_mut().for_each(Resource::read);
        Ok(())
    }

    fn values(&self, values: &mut Values<'_>) {
        for Resource { name, some, full, .. } in &self.resources {
            for (metric, rate) in [(SOME, some), (FULL, full)] {
                if let Some(rate) = rate.per_second() {
                    // The kernel updates the sum a little after it reads the time.
                    values.push(metric, Some(name), (rate / MICROSECONDS_A_PERCENT).min(100.0));
                }
            }
        }
    }
}

impl Resource {
    /// A kernel without PSI, or with PSI disabled, has no such files or unreadable ones.
    fn read(&mut self) {
        let now = Instant::now();
        match self.file.read_text() {
            Ok(text) => {
                for line in text.lines() {
                    let Some((kind, total)) = parse(line) else { continue };
                    match kind {
                        "some" => self.some.read(total, now),
                        "full" => self.full.read(total, now),
                        _ => {}
                    }
                }
            }
            Err(_) => (self.some, self.full) = (Rate::default(), Rate::default()),
        }
    }
}

/// The kind of a line and its microseconds since boot.
fn parse(line: &str) -> Option<(&str, u64)> {
    let (kind, rest) = line.split_once(' ')?;
    let (_, total) = rest.rsplit_once("total=")?;
    Some((kind, total.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::{read, roots, write};

    #[test]
    fn a_line_says_for_how_long_tasks_waited_since_boot() {
        assert_eq!(
            parse("some avg10=98.80 avg60=97.33 avg300=95.00 total=25552017524"),
            Some(("some", 25_552_017_524))
        );
        assert_eq!(parse("full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"), Some(("full", 0)));
        assert_eq!(parse("some avg10=0.00"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_second_reading_yields_shares_of_the_time_and_missing_resources_are_absent() {
        let dir = tempfile::tempdir().unwrap();
        let cpu = dir.path().join("proc/pressure/cpu");
        write(&cpu, "some avg10=1.00 avg60=0.00 avg300=0.00 total=1000\n");
        write(&dir.path().join("proc/pressure/io"), "some avg10=0 total=5\nfull avg10=0 total=5\n");
        let mut pressure = Pressure::new(&roots(dir.path()));

        let first = read(&mut pressure);
        write(&cpu, "some avg10=1.00 avg60=0.00 avg300=0.00 total=999999999999\n");
        let second = read(&mut pressure);

        assert_eq!(first, []);
        let names: Vec<_> = second.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(names, [("pressure_some:cpu", 100.0), ("pressure_some:io", 0.0), ("pressure_full:io", 0.0)]);
    }
}
