//! The resources that a process has used, from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::Context;

/// CPU time of a process since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cpu {
    pub user: Duration,
    pub system: Duration,
}

/// Physical memory of a process in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    pub rss: u64,
    /// RSS with every shared page divided by the number of its users.
    pub pss: u64,
}

/// How many files a process has open, sockets among them.
pub fn open_files(pid: u32) -> anyhow::Result<usize> {
    let path = format!("/proc/{pid}/fd");
    Ok(fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?.count())
}

/// How many threads a process has.
pub fn threads(pid: u32) -> anyhow::Result<usize> {
    let path = format!("/proc/{pid}/task");
    Ok(fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?.count())
}

/// The highest RSS that a process ever had, in bytes.
pub fn peak_rss(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    kibibytes(&status, "VmHWM:").with_context(|| format!("{path} has another shape"))
}

impl Cpu {
    /// Only the process itself.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        Self::read(pid, UTIME)
    }

    /// With that of the children that it has waited for.
    pub fn with_children(pid: u32) -> anyhow::Result<Self> {
        let (own, children) = (Self::read(pid, UTIME)?, Self::read(pid, CUTIME)?);
        Ok(Self { user: own.user + children.user, system: own.system + children.system })
    }

    /// Including its children, both those that it has waited for and living ones.
    pub fn with_living_children(pid: u32) -> anyhow::Result<Self> {
        let mut all = Self::with_children(pid)?;
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // One that ends this moment is counted with those that were waited for the next time.
            if parent(child) == Some(pid)
                && let Ok(cpu) = Self::of(child)
            {
                all = Self { user: all.user + cpu.user, system: all.system + cpu.system };
            }
        }
        Ok(all)
    }

    fn read(pid: u32, field: usize) -> anyhow::Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        parse_stat(&stat, field, ticks_per_second).with_context(|| format!("{path} has another shape"))
    }

    pub fn total(self) -> Duration {
        self.user + self.system
    }

    pub fn since(self, earlier: Self) -> Self {
        Self { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }
}

impl Memory {
    /// From `smaps_rollup`, which counts pages; the RSS of `status` may lag by some pages per thread.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let rollup = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        parse_rollup(&rollup).with_context(|| format!("{path} has another shape"))
    }
}

/// The parent of a process; none when the process has ended.
fn parent(pid: u32) -> Option<u32> {
    parse_parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(PPID)?.parse().ok()
}

/// The index of the parent in `stat`, counted after the name.
const PPID: usize = 1;
/// The index of user time in `stat`, counted after the name; system time follows it.
const UTIME: usize = 11;
/// The same of children that were waited for.
const CUTIME: usize = 13;

/// User and system time from `field` on. The name before the fields is in parentheses and may itself contain spaces and
/// parentheses, so the fields are counted after the last one.
fn parse_stat(stat: &str, field: usize, ticks_per_second: u64) -> Option<Cpu> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_ascii_whitespace().skip(field).map(str::parse::<u64>);
    let mut time = || {
        let ticks = ticks.next()?.ok()?;
        Some(Duration::from_millis(ticks * 1000 / ticks_per_second.max(1)))
    };
    Some(Cpu { user: time()?, system: time()? })
}

fn parse_rollup(rollup: &str) -> Option<Memory> {
    Some(Memory { rss: kibibytes(rollup, "Rss:")?, pss: kibibytes(rollup, "Pss:")? })
}

/// A size in kB, converted to bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes = value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_stands_behind_the_state() {
        let stat = "4242 (postgres: a) b) S 17 4242 4242 0 -1 4194560 0 0 0 0 150 50 0 0 20 0 1 0 0 0 0";

        assert_eq!(parse_parent(stat), Some(17));
        assert_eq!(parse_parent("4242 (x"), None);
    }

    #[test]
    fn cpu_is_read_behind_a_hostile_process_name() {
        let stat = "4242 (a) R (b) S 1 4242 4242 0 -1 4194560 511 9 3 4 250 75 1 2 20 0 4 0 900 1 2 3\n";

        let (own, children) = (parse_stat(stat, UTIME, 100), parse_stat(stat, CUTIME, 100));

        assert_eq!(own, Some(Cpu { user: Duration::from_millis(2500), system: Duration::from_millis(750) }));
        assert_eq!(children, Some(Cpu { user: Duration::from_millis(10), system: Duration::from_millis(20) }));
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let rollup = "55d0-7ffc ---p 00000000 00:00 0  [rollup]\nRss:    2048 kB\nPss:    1536 kB\nPss_Anon:  12 kB\n";

        assert_eq!(parse_rollup(rollup), Some(Memory { rss: 2048 * 1024, pss: 1536 * 1024 }));
    }

    #[test]
    fn another_shape_is_refused() {
        assert_eq!(parse_stat("4242 (a) S 1 2", UTIME, 100), None);
        assert_eq!(parse_rollup("Rss: 12 pages\n"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = std::process::id();

        assert!(Memory::of(pid).unwrap().rss > 0);
        assert!(peak_rss(pid).unwrap() > 0);
        assert!(Cpu::of(pid).is_ok());
    }
}
