//! The memory of the samples that wait for evaluators. While the database is away all evaluators wait for it, so their inboxes
//! are bounded together, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signalbox_protocol::sample::{ProcessUsage, Unread};

use super::Beside;
use crate::fleet::Snapshot;

/// Some 50,000 ordinary samples.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The memory that the samples of all evaluators may take together.
#[derive(Debug)]
pub(super) struct SampleBudget {
    max_bytes: usize,
    used_bytes: AtomicUsize,
}

/// The memory of one sample; dropping it gives the memory back.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<SampleBudget>,
    bytes: usize,
}

impl Default for SampleBudget {
    fn default() -> Self {
        Self::new(MAX_BYTES)
    }
}

impl SampleBudget {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, used_bytes: AtomicUsize::new(0) }
    }

    /// Returns whether this much more is within the budget.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.used_bytes.load(Ordering::Relaxed).saturating_add(bytes) <= self.max_bytes
    }
}

impl Reservation {
    /// Takes memory from the budget, also beyond its end.
    pub fn new(budget: &Arc<SampleBudget>, bytes: usize) -> Self {
        budget.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        Self { budget: budget.clone(), bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Returns about how much memory a sample takes while it waits.
pub(super) fn bytes_of(snapshot: &Snapshot, beside: &Beside) -> usize {
    let of_process = |process: &ProcessUsage| size_of::<ProcessUsage>() + process.name.len() + process.user.len();
    let processes = beside.processes.iter().flat_map(|top| top.by_cpu.iter().chain(&top.by_memory));
    let of_unread =
        |unread: &Unread| size_of::<Unread>() + unread.list.len() + unread.name.as_ref().map_or(0, String::len);
    let unread = beside.unread.iter().map(of_unread);
    snapshot.bytes() + processes.map(of_process).sum::<usize>() + unread.sum::<usize>()
}
