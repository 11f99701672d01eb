//! Watches the free space of the disk with the embedded database. On a full disk the database cannot even delete.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::statvfs;

use crate::periodic::every;

/// Says whether the disk has room for samples. Clones are cheap.
#[derive(Debug, Clone)]
pub struct DiskGuard {
    /// A path on the disk to watch; `None` if the data is elsewhere.
    path: Option<PathBuf>,
    floor_bytes: u64,
    is_full: Arc<AtomicBool>,
}

impl DiskGuard {
    /// Guards the disk of `path`: it counts as full with less than `floor_bytes` free.
    pub fn new(path: Option<PathBuf>, floor_bytes: u64) -> Self {
        Self { path, floor_bytes, is_full: Arc::default() }
    }

    /// Whether the last check found too little space.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Checks now.
    pub fn look(&self) {
        let Some(path) = &self.path else { return };
        let free_bytes = match statvfs(path) {
            Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
            Err(error) => return tracing::warn!(%error, "cannot determine the free space of the disk"),
        };
        metrics::gauge!("signalbox_disk_free_bytes").set(free_bytes as f64);
        let is_full = is_too_little(free_bytes, self.floor_bytes, self.is_full());
        let was_full = self.is_full.swap(is_full, Ordering::Relaxed);
        let (path, floor_bytes) = (path.display(), self.floor_bytes);
        match (was_full, is_full) {
            (false, true) => {
                tracing::error!(%path, free_bytes, floor_bytes, "the disk is nearly full: no samples are stored, agents keep theirs");
            }
            (true, false) => tracing::info!(%path, free_bytes, "the disk has room again: samples are stored"),
            _ => {}
        }
    }

    /// Checks periodically.
    pub async fn watch(self, period: Duration) {
        every(period, async || {
            let guard = self.clone();
            // A file system may take a while to answer.
            _ = tokio::task::spawn_blocking(move || guard.look()).await;
        })
        .await;
    }
}

/// Once full, the disk must have a quarter more than the floor free, so that the state does not flap.
fn is_too_little(free_bytes: u64, floor_bytes: u64, was_full: bool) -> bool {
    let enough = if was_full { floor_bytes.saturating_add(floor_bytes / 4) } else { floor_bytes };
    free_bytes < enough
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_counts_as_full_until_well_above_the_floor() {
        assert!(!is_too_little(100, 100, false));
        assert!(is_too_little(99, 100, false));
        assert!(is_too_little(124, 100, true));
        assert!(!is_too_little(125, 100, true));
    }

    #[test]
    fn a_disk_that_cannot_be_checked_is_not_full() {
        let guard = DiskGuard::new(Some("/nowhere/at/all".into()), u64::MAX);

        guard.look();

        assert!(!guard.is_full());
    }
}
