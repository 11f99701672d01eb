//! Watches the free space of the disk that the embedded database lies on. A database on a full disk cannot even delete.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::statvfs;

use crate::periodic::every;

/// Says whether there is room for samples, behind cheap clones.
#[derive(Debug, Clone)]
pub struct DiskGuard {
    /// What to look at; none where the data lies elsewhere.
    path: Option<PathBuf>,
    floor_bytes: u64,
    is_full: Arc<AtomicBool>,
}

impl DiskGuard {
    /// Guards the disk that `path` lies on: with less than `floor_bytes` free it counts as full.
    pub fn new(path: Option<PathBuf>, floor_bytes: u64) -> Self {
        Self { path, floor_bytes, is_full: Arc::default() }
    }

    /// Whether the last look found too little space.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Looks now.
    pub fn look(&self) {
        let Some(path) = &self.path else { return };
        let free_bytes = match statvfs(path) {
            Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
            Err(error) => return tracing::warn!(%error, "the free space of the disk cannot be told"),
        };
        metrics::gauge!("signalbox_disk_free_bytes").set(free_bytes as f64);
        let is_full = is_too_little(free_bytes, self.floor_bytes, self.is_full());
        let was_full = self.is_full.swap(is_full, Ordering::Relaxed);
        let (path, floor_bytes) = (path.display(), self.floor_bytes);
        match (was_full, is_full) {
            (false, true) => {
                tracing::error!(%path, free_bytes, floor_bytes, "the disk is nearly full: no samples are taken, agents keep theirs");
            }
            (true, false) => tracing::info!(%path, free_bytes, "there is room on the disk again: samples are taken"),
            _ => {}
        }
    }

    /// Looks again and again.
    pub async fn watch(self, period: Duration) {
        every(period, async || {
            let guard = self.clone();
            // A file system may take its time to answer.
            _ = tokio::task::spawn_blocking(move || guard.look()).await;
        })
        .await;
    }
}

/// A quarter more than the floor must be free before it is believed again, so that it does not go back and forth.
fn is_too_little(free_bytes: u64, floor_bytes: u64, was_full: bool) -> bool {
    let enough = if was_full { floor_bytes.saturating_add(floor_bytes / 4) } else { floor_bytes };
    free_bytes < enough
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_full_below_the_floor_and_until_well_above_it() {
        assert!(!is_too_little(100, 100, false));
        assert!(is_too_little(99, 100, false));
        assert!(is_too_little(124, 100, true));
        assert!(!is_too_little(125, 100, true));
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_full() {
        let guard = DiskGuard::new(Some("/nowhere/at/all".into()), u64::MAX);

        guard.look();

        assert!(!guard.is_full());
    }
}
