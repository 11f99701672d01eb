//! The processes that used the most, once a minute.
//!
//! CPU time is measured since the previous look, a minute ago, and not between two looks in quick succession. That costs half
//! as much and misses no use between the looks, while the use in a fifth of a second says little. Only the first list covers
//! less time, so that one of the agent's first samples has it.
//!
//! A look takes some 10 µs per process. With so many processes that the sample would have to wait, it continues with the next
//! sample; each process has its own time of the previous look, so that its percentage stays right.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::time::{ClockId, clock_gettime};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::{MAX_NAME_BYTES, ProcessUsage, TopProcesses as Lists};

use super::Collector;
use super::pids::Pids;
use super::process_stat::{self, Stat};
use super::ranking::{RankedProcess, Ranking};
use super::users::Users;
use crate::config::Roots;

/// The time between two lists: a minute, less the deviation of the sampler's ticks.
const LOOK_EVERY: Duration = Duration::from_secs(59);
/// The least time that the first list covers: a hundred clock ticks.
const FIRST_LOOK_AFTER: Duration = Duration::from_secs(1);
/// The most time that a look takes of one sample: a quarter of a collector's deadline.
const BUDGET: Duration = Duration::from_millis(250);
/// Processes between two readings of the clock.
const AT_ONCE: usize = 64;
/// With more processes there is no list, because it would have to omit some. This many take 7 MiB.
const MAX_PROCESSES: usize = 1 << 17;
/// A line has some 50 numbers and a name of at most 64 bytes.
const LINE_BYTES: usize = 2048;
/// How far before a look a process may seem to have started although the look did not see it.
const START_TOLERANCE: Duration = Duration::from_secs(1);

pub struct TopProcesses {
    proc: PathBuf,
    pids: Pids,
    users: Users,
    began: Instant,
    budget: Duration,
    due_at: Duration,
    before: Option<PreviousScan>,
    look: Option<Look>,
    found: Option<Lists>,
}

/// One moment by two clocks, which diverge while the machine sleeps.
#[derive(Debug, Clone, Copy)]
struct ClockPair {
    /// Since the collector began, without sleep, like the times that processes use.
    awake: Duration,
    /// Since boot, like the times at which processes started.
    boot: Duration,
}

/// The result of the previous look.
struct PreviousScan {
    at: ClockPair,
    /// By pid.
    seen: Vec<Seen>,
}

/// What is kept of a process: 24 bytes, because there may be very many.
#[derive(Debug, Clone, Copy)]
struct Seen {
    pid: u32,
    /// Milliseconds since the collector began. They wrap after 49 days; only differences count.
    at_ms: u32,
    started_at: u64,
    cpu_ticks: u64,
}

const _: () = assert!(size_of::<Seen>() == 24);

/// A look in progress.
struct Look {
    at: ClockPair,
    proc: File,
    /// The processes that are still to be read, the highest first.
    pids: Vec<u32>,
    seen: Vec<Seen>,
    by_cpu: Ranking,
    by_memory: Ranking,
}

impl TopProcesses {
    pub fn new(roots: &Roots) -> Self {
        Self {
            proc: roots.proc.clone(),
            pids: Pids::new(),
            users: Users::new(&roots.etc),
            began: Instant::now(),
            budget: BUDGET,
            due_at: Duration::ZERO,
            before: None,
            look: None,
            found: None,
        }
    }

    /// Continues the look in progress, or begins one when it is time.
    fn read_at(&mut self, now: ClockPair) -> io::Result<()> {
        self.found = None;
        let mut look = match self.look.take() {
            Some(look) => look,
            None if now.awake < self.due_at => return Ok(()),
            None => {
                // If the look fails, the next sample does not repeat it.
                self.due_at = now.awake + LOOK_EVERY;
                self.begin(now)?
            }
        };
        if go_on(&mut look, self.before.as_ref(), now, self.budget) {
            self.finish(look);
        } else {
            self.look = Some(look);
        }
        Ok(())
    }

    fn begin(&mut self, now: ClockPair) -> io::Result<Look> {
        let proc = File::open(&self.proc)?;
        if read_line(&proc, "1/stat", &mut [0; LINE_BYTES]).is_none() {
            // The first process always exists. A list of only the agent's own processes would mislead.
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users' processes are hidden"));
        }
        let (mut pids, mut count) = (Vec::new(), 0);
        self.pids.list(&self.proc, |pid| {
            count += 1;
            if count <= MAX_PROCESSES {
                pids.push(pid);
            }
        })?;
        if count > MAX_PROCESSES {
            return Err(io::Error::other(format!("{count} processes are too many to rank")));
        }
        pids.sort_unstable_by(|one, other| other.cmp(one));
        let seen = Vec::with_capacity(pids.len());
        Ok(Look { at: now, proc, pids, seen, by_cpu: Ranking::default(), by_memory: Ranking::default() })
    }

    /// Makes the lists, if there is a previous look to compare with, and stores this one.
    fn finish(&mut self, look: Look) {
        let Look { at, seen, by_cpu, by_memory, .. } = look;
        if self.before.is_some() {
            self.users.refresh();
            let list = |ranking: Ranking| ranking.into_rows().map(|row| self.usage(row)).collect();
            self.found = Some(Lists { by_cpu: list(by_cpu), by_memory: list(by_memory) });
        } else {
            self.due_at = at.awake + FIRST_LOOK_AFTER;
        }
        self.before = Some(PreviousScan { at, seen });
    }

    fn usage(&self, row: RankedProcess) -> ProcessUsage {
        let RankedProcess { pid, uid, name, cpu_percent, memory_bytes } = row;
        ProcessUsage { pid, name, user: self.users.name(uid), cpu_percent, memory_bytes }
    }
}

impl Collector for TopProcesses {
    fn name(&self) -> &str {
        "top_processes"
    }

    fn read(&mut self) -> io::Result<()> {
        let boot = clock_gettime(ClockId::Boottime);
        let boot = Duration::from_secs(u64::try_from(boot.tv_sec).unwrap_or(0));
        self.read_at(ClockPair { awake: self.began.elapsed(), boot })
    }

    fn fill(&self, sample: &mut Sample) {
        sample.processes.clone_from(&self.found);
    }
}

/// Reads processes until the budget is used up. Returns whether those were all. It skips processes that have ended or may not
/// be read.
fn go_on(look: &mut Look, before: Option<&PreviousScan>, now: ClockPair, budget: Duration) -> bool {
    let started = Instant::now();
    let (mut path, mut buffer) = (String::new(), [0; LINE_BYTES]);
    loop {
        for _ in 0..AT_ONCE {
            let Some(pid) = look.pids.pop() else { return true };
            path.clear();
            // Writing to memory does not fail.
            let _ = write!(path, "{pid}/stat");
            if let Some(stat) = read_line(&look.proc, &path, &mut buffer).and_then(process_stat::parse) {
                look.note(pid, &stat, before, now);
            }
        }
        if started.elapsed() >= budget {
            return false;
        }
    }
}

impl Look {
    fn note(&mut self, pid: u32, stat: &Stat<'_>, before: Option<&PreviousScan>, now: ClockPair) {
        // The number wraps on purpose.
        let at_ms = now.awake.as_millis() as u32;
        let seen = Seen { pid, at_ms, started_at: stat.started_at, cpu_ticks: stat.cpu_ticks };
        let cpu_percent = before.map_or(0.0, |before| before.percent_until(seen));
        let memory_bytes = stat.pages.saturating_mul(page_size() as u64);
        self.seen.push(seen);
        let proc = &self.proc;
        let row = || {
            let mut name = String::from_utf8_lossy(stat.name).replace('\0', "");
            name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
            let uid = statat(proc, pid.to_string(), AtFlags::empty()).ok()?.st_uid;
            Some(RankedProcess { pid, uid, name, cpu_percent, memory_bytes })
        };
        self.by_cpu.offer(cpu_percent, pid, row);
        self.by_memory.offer(memory_bytes as f64, pid, row);
    }
}

impl PreviousScan {
    /// Percent of one core between this look and a later one. A process that did not exist yet is counted from its start, over
    /// the same time as the others, because it has used no other time.
    fn percent_until(&self, now: Seen) -> f64 {
        let known =
            self.seen.binary_search_by_key(&now.pid, |seen| seen.pid).ok().and_then(|place| self.seen.get(place));
        let (since_ms, ticks) = match known.filter(|seen| seen.started_at == now.started_at) {
            Some(seen) => (seen.at_ms, now.cpu_ticks.saturating_sub(seen.cpu_ticks)),
            None if self.was_running(now.started_at) => return 0.0,
            None => (self.at.awake.as_millis() as u32, now.cpu_ticks),
        };
        let elapsed_ms = f64::from(now.at_ms.wrapping_sub(since_ms).max(1));
        ticks as f64 / clock_ticks_per_second() as f64 / (elapsed_ms / 1000.0) * 100.0
    }

    /// Whether a process that this look did not see existed: it could not be read then, and its use in all its life is not that
    /// of this minute.
    fn was_running(&self, started_at: u64) -> bool {
        let started = Duration::from_secs(started_at / clock_ticks_per_second().max(1));
        started + START_TOLERANCE < self.at.boot
    }
}

/// The line in `path` under `proc`. None where the process has ended or its line may not be read.
fn read_line<'a>(proc: &File, path: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = File::from(file).read(buffer).ok()?;
    buffer.get(..length)
}

#[cfg(test)]
#[path = "top_processes_tests.rs"]
mod tests;
