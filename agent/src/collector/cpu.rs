//! How busy the processors were since the last reading, from `/proc/stat` or from the usage of a limited cgroup.

use std::io;
use std::time::Instant;

use signalbox_protocol::Sample;
use signalbox_protocol::sample::MAX_LIST;

use super::Collector;
use super::cgroup::{Cgroups, CpuLimit};
use super::cpu_modes::CpuModes;
use super::file::{KernelFile, unexpected};
use super::scheduler::Scheduler;
use crate::catalog::Values;
use crate::config::Roots;

pub struct Cpu {
    stat: KernelFile,
    cgroups: Cgroups,
    previous: Stat,
    current: Stat,
    /// Nanoseconds that the limited cgroup had used, and when.
    usage: Option<(u64, Instant)>,
    percent: Option<f64>,
    per_core: Vec<f64>,
    modes: CpuModes,
    scheduler: Scheduler,
}

/// Clock ticks since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    total: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Stat {
    all: Ticks,
    /// By core number; cores that are offline are missing.
    cores: Vec<(u32, Ticks)>,
}

impl Cpu {
    pub fn new(roots: &Roots) -> Self {
        Self {
            stat: KernelFile::new(roots.proc.join("stat")),
            cgroups: Cgroups::new(roots),
            previous: Stat::default(),
            current: Stat::default(),
            usage: None,
            percent: None,
            per_core: Vec::new(),
            modes: CpuModes::default(),
            scheduler: Scheduler::default(),
        }
    }

    /// Percent of what the cgroup may use. None at the first reading.
    fn limited_percent(&mut self, limit: &CpuLimit) -> Option<f64> {
        let (used, now) = (limit.usage_nanos?, Instant::now());
        let (earlier, then) = self.usage.replace((used, now))?;
        let elapsed = now.duration_since(then).as_nanos() as f64;
        let share = used.saturating_sub(earlier) as f64 / (elapsed * limit.cores);
        (elapsed > 0.0).then(|| (share * 100.0).clamp(0.0, 100.0))
    }

    fn update_cores(&mut self, limit: Option<&CpuLimit>) {
        self.per_core.clear();
        let mut allowed = Ticks::default();
        let mut allowed_before = Ticks::default();
        for (core, ticks) in &self.current.cores {
            if limit.is_some_and(|limit| !limit.allows(*core)) {
                continue;
            }
            let Some((_, before)) = self.previous.cores.iter().find(|(number, _)| number == core) else { continue };
            self.per_core.push(ticks.percent_since(*before).unwrap_or(0.0));
            allowed.add(*ticks);
            allowed_before.add(*before);
        }
        let whole = if limit.is_some() { (allowed, allowed_before) } else { (self.current.all, self.previous.all) };
        // Two readings within one tick: the last result still holds.
        self.percent = whole.0.percent_since(whole.1).or(self.percent);
    }
}

impl Collector for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn read(&mut self) -> io::Result<()> {
        std::mem::swap(&mut self.previous, &mut self.current);
        let stat = self.stat.read_text()?;
        if !self.current.parse(stat) {
            return Err(unexpected("/proc/stat"));
        }
        self.modes.read(stat);
        self.scheduler.read(stat, Instant::now());
        let is_first = self.previous.cores.is_empty();
        let limit = self.cgroups.cpu_limit(self.current.cores.len());
        let limited = limit.as_ref().and_then(|limit| self.limited_percent(limit));
        if limit.is_none() {
            self.usage = None;
        }
        if is_first {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "usage needs a second reading"));
        }
        self.update_cores(limit.as_ref());
        self.percent = limited.or(self.percent);
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        sample.cpu_percent = self.percent.unwrap_or_default();
        sample.cpu_per_core.extend(self.per_core.iter().take(MAX_LIST));
    }

    fn values(&self, values: &mut Values<'_>) {
        self.modes.values(values);
        self.scheduler.values(values);
    }
}

impl Stat {
    /// Reads `/proc/stat` into `self`. Returns whether it was complete.
    fn parse(&mut self, text: &str) -> bool {
        self.cores.clear();
        let mut found = false;
        // The lines that begin with `cpu` come first, and one of many kilobytes after them.
        for line in text.lines().take_while(|line| line.starts_with("cpu")) {
            let mut words = line.split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            let Some(ticks) = Ticks::parse(words) else { return false };
            match name.trim_start_matches("cpu").parse() {
                Ok(core) => self.cores.push((core, ticks)),
                Err(_) => {
                    self.all = ticks;
                    found = true;
                }
            }
        }
        found && !self.cores.is_empty()
    }
}

impl Ticks {
    /// Sums user, nice, system, idle, iowait, irq, softirq and steal. Guest time follows and is part of user.
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut ticks = Self::default();
        let mut fields = 0;
        for (position, word) in words.take(8).enumerate() {
            let value: u64 = word.parse().ok()?;
            ticks.total = ticks.total.wrapping_add(value);
            let is_idle = position == 3 || position == 4;
            ticks.busy = if is_idle { ticks.busy } else { ticks.busy.wrapping_add(value) };
            fields += 1;
        }
        (fields >= 4).then_some(ticks)
    }

    /// None when no tick passed. The idle counters of some kernels decrease now and then.
    fn percent_since(self, earlier: Self) -> Option<f64> {
        let total = self.total.saturating_sub(earlier.total);
        let busy = self.busy.saturating_sub(earlier.busy);
        (total > 0).then(|| (busy as f64 / total as f64 * 100.0).min(100.0))
    }

    fn add(&mut self, other: Self) {
        self.busy = self.busy.wrapping_add(other.busy);
        self.total = self.total.wrapping_add(other.total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 10 40 800 50 0 0 0 90 0\n\
                        cpu0 60 5 20 400 15 0 0 0 0 0\n\
                        cpu3 40 5 20 400 35 0 0 0 90 0\n\
                        intr 474506 0 0\nctxt 1\nbtime 1\n";

    fn parsed(text: &str) -> Stat {
        let mut stat = Stat::default();
        assert!(stat.parse(text));
        stat
    }

    #[test]
    fn idle_and_waiting_for_disks_are_not_busy_and_guests_count_once() {
        let expected = Stat {
            all: Ticks { busy: 150, total: 1000 },
            cores: vec![(0, Ticks { busy: 85, total: 500 }), (3, Ticks { busy: 65, total: 500 })],
        };

        assert_eq!(parsed(STAT), expected);
    }

    #[test]
    fn a_broken_file_is_not_taken_for_an_idle_machine() {
        for text in ["", "cpu 1 2\ncpu0 1 2\n", "cpu 1 2 x 4\n", "intr 1\n", "cpu 1 2 3 4\n"] {
            assert!(!Stat::default().parse(text), "{text:?}");
        }
    }

    #[test]
    fn percent_is_the_busy_share_of_the_ticks_between() {
        let (before, after) = (Ticks { busy: 100, total: 1000 }, Ticks { busy: 150, total: 1200 });

        assert_eq!(after.percent_since(before), Some(25.0));
        assert_eq!(before.percent_since(before), None);
        assert_eq!(Ticks { busy: 90, total: 1100 }.percent_since(before), Some(0.0), "a counter that went back");
    }

    #[test]
    fn the_second_reading_fills_a_sample() {
        let dir = tempfile::tempdir().unwrap();
        let roots =
            Roots { proc: dir.path().into(), sys: dir.path().into(), etc: dir.path().into(), ..Roots::default() };
        std::fs::write(dir.path().join("stat"), STAT).unwrap();
        let mut cpu = Cpu::new(&roots);

        let first = cpu.read();
        std::fs::write(
            dir.path().join("stat"),
            "cpu 150 10 40 850 50 0 0 0\ncpu0 110 5 20 400 15 0 0 0\ncpu3 40 5 20 450 35 0 0 0\n",
        )
        .unwrap();
        cpu.read().unwrap();
        let mut sample = Sample::default();
        cpu.fill(&mut sample);

        assert_eq!(first.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!((sample.cpu_percent, sample.cpu_per_core), (50.0, vec![100.0, 0.0]));
    }

    #[test]
    fn a_sample_of_a_machine_with_very_many_cores_is_valid() {
        let mut cpu = Cpu::new(&Roots::default());
        cpu.per_core = vec![1.0; MAX_LIST + 1];
        let mut sample = Sample::default();

        cpu.fill(&mut sample);

        assert_eq!((sample.validate(), sample.cpu_per_core.len()), (Ok(()), MAX_LIST));
    }
}
