//! Watches how much memory the process uses. Over its budget expensive reads wait, agents catch up more slowly, and
//! caches are dropped; live samples and alerts are not affected.

use std::fs;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::periodic::every;

/// The lower bound of the default budget: with less than this the service does little but wait.
const LEAST_BUDGET: u64 = 128 * 1024 * 1024;

/// The default budget is this fraction of the memory of the machine or its cgroup.
const PART: u64 = 4;

/// How long an expensive read waits for memory by default. A page waits no longer for its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says whether there is memory for work that can wait. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Memory {
    budget: u64,
    patience: Duration,
    is_over: Arc<watch::Sender<bool>>,
}

/// The process was over its memory budget for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the service is short of memory: try again soon")]
pub struct OverBudget;

impl Memory {
    pub fn new(budget: u64) -> Self {
        Self { budget, patience: PATIENCE, is_over: Arc::new(watch::Sender::new(false)) }
    }

    /// Without a budget.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// The same, with another limit for how long a read waits.
    pub fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Whether the last check found the process over its budget.
    pub fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    /// Returns when there is memory for an expensive read, or an error after too long a wait.
    pub async fn room(&self) -> Result<(), OverBudget> {
        if !self.is_over() {
            return Ok(());
        }
        metrics::counter!("signalbox_memory_reads_waited_total").increment(1);
        let mut is_over = self.is_over.subscribe();
        let free = tokio::time::timeout(self.patience, is_over.wait_for(|is_over| !is_over));
        match free.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                metrics::counter!("signalbox_memory_reads_refused_total").increment(1);
                Err(OverBudget)
            }
        }
    }

    /// Checks now. Returns whether the process is over its budget, if that has changed.
    pub fn look(&self) -> Option<bool> {
        let resident = resident_bytes()?;
        metrics::gauge!("signalbox_memory_resident_bytes").set(resident as f64);
        metrics::gauge!("signalbox_memory_budget_bytes").set(self.budget as f64);
        self.found(resident)
    }

    fn found(&self, resident: u64) -> Option<bool> {
        let is_over = is_too_much(resident, self.budget, self.is_over());
        metrics::gauge!("signalbox_memory_over_budget").set(if is_over { 1.0 } else { 0.0 });
        let was_over = self.is_over.send_replace(is_over);
        let budget = self.budget;
        match (was_over, is_over) {
            (false, true) => {
                tracing::warn!(
                    resident,
                    budget,
                    "memory is above the budget: expensive reads wait, and agents catch up more slowly"
                );
            }
            (true, false) => tracing::info!(resident, budget, "memory is below the budget again"),
            _ => return None,
        }
        Some(is_over)
    }

    /// Checks periodically, and calls `changed` after each change.
    pub async fn watch(self, period: Duration, changed: impl Fn(bool)) {
        every(period, async || self.look().into_iter().for_each(&changed)).await;
    }
}

/// Once over the budget, memory use must fall to nine tenths of it, so that the state does not flap.
fn is_too_much(resident: u64, budget: u64, was_over: bool) -> bool {
    let most = if was_over { budget - budget / 10 } else { budget };
    resident > most
}

/// A quarter of the memory of the machine or its cgroup.
pub fn usual_budget() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| kibibytes(&text, "MemTotal:"));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = limit_of(&groups, Path::new("/sys/fs/cgroup"));
    let Some(available) = machine.into_iter().chain(limit).min() else {
        tracing::warn!(
            budget = LEAST_BUDGET,
            "the memory of this machine cannot be read in /proc/meminfo: set --memory-budget"
        );
        return LEAST_BUDGET;
    };
    (available / PART).max(LEAST_BUDGET)
}

/// The resident memory of the process now.
fn resident_bytes() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// The bytes of a line such as `VmRSS:    1234 kB`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The lowest memory limit of the process's cgroups. `groups` is its `/proc/self/cgroup`; `root` is where cgroups are
/// mounted, version 1 under `memory`.
fn limit_of(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let path = Path::new(path.trim_start_matches('/'));
        match controllers {
            "" => least_above(root, path, "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                least_above(&root.join("memory"), path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    limits.min()
}

/// The lowest limit of a group and its ancestors. In a container the group's own path may be missing; then the root's
/// limit is its own.
fn least_above(root: &Path, path: &Path, file: &str) -> Option<u64> {
    // The path of a group outside of what is mounted here begins with `..`.
    let path = if path.components().all(|part| matches!(part, Component::Normal(_))) { path } else { Path::new("") };
    let limits = path.ancestors().filter_map(|group| {
        let text = fs::read_to_string(root.join(group).join(file)).ok()?;
        // `max` means no limit, and so does a number that exceeds any machine.
        text.trim().parse::<u64>().ok().filter(|limit| *limit < 1 << 60)
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_counts_as_over_budget_until_well_below_it() {
        assert!(!is_too_much(100, 100, false));
        assert!(is_too_much(101, 100, false));
        assert!(is_too_much(91, 100, true));
        assert!(!is_too_much(90, 100, true));
    }

    #[test]
    fn the_kernels_figures_are_parsed() {
        assert_eq!(kibibytes("VmPeak:\t 9 kB\nVmRSS:\t  1234 kB\n", "VmRSS:"), Some(1234 * 1024));
        assert_eq!(kibibytes("VmRSS:\n", "VmRSS:"), None);
        assert!(resident_bytes().unwrap() > 0);
        assert!(usual_budget() >= LEAST_BUDGET);
    }

    #[test]
    fn the_lowest_limit_of_all_groups_counts() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = directory.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("system.slice/signalbox.service/memory.max", "max\n");
        write("system.slice/memory.max", "1000\n");
        write("memory/docker/abc/memory.limit_in_bytes", "500\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");

        assert_eq!(limit_of("0::/system.slice/signalbox.service\n", root), Some(1_000));
        assert_eq!(limit_of("5:cpu,memory:/docker/abc\n4:pids:/docker/abc\n0::/\n", root), Some(500));
        assert_eq!(limit_of("0::/../elsewhere\n", root), None);
        assert_eq!(limit_of("", root), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_for_memory_but_not_forever() {
        let memory = Memory::new(100).patient_for(Duration::from_secs(3));
        assert_eq!(memory.room().await, Ok(()));

        assert_eq!(memory.found(101), Some(true));
        assert_eq!(memory.room().await, Err(OverBudget));

        let waiting = memory.clone();
        let waiting = tokio::spawn(async move { waiting.room().await });
        tokio::task::yield_now().await;
        assert_eq!(memory.found(95), None, "not yet");
        assert_eq!(memory.found(80), Some(false));
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }
}
