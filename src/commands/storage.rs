//! Keeps the stored commands of each account within its quota by removing the oldest, so that earlier commands never
//! prevent a new one. Unfinished commands are not removed: if they fill the quota, the next command is refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::store::{Quota, Store, StoreError, Trimmed};

/// The cost of adding up an account's commands grows with their number. So it is done when this fraction of the quota was
/// written since the last time, and the quota may be exceeded by as much for a moment.
const LOOK_AFTER_PART: u64 = 16;

/// How often to check whether a full account has room again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How much each account has written since its commands were last added up.
#[derive(Clone, Default)]
struct BytesWritten {
    bytes: Arc<Mutex<HashMap<Uuid, u64>>>,
    /// Accounts whose unfinished commands fill their quota, and when that was last checked.
    full: Arc<Mutex<HashMap<Uuid, Instant>>>,
    /// Held while trimming, because two at the same time would both remove the same excess.
    trimming: Arc<tokio::sync::Mutex<()>>,
}

impl BytesWritten {
    /// Adds what was written. Returns whether the account's commands have to be added up.
    fn add(&self, owner_id: Uuid, bytes: u64, look_after: u64) -> bool {
        let mut all = self.bytes.lock();
        let written = all.entry(owner_id).or_default();
        *written = written.saturating_add(bytes);
        let is_time = *written >= look_after;
        if is_time {
            all.remove(&owner_id);
        }
        is_time
    }

    fn room(&self, owner_id: Uuid) -> Room {
        match self.full.lock().get(&owner_id) {
            None => Room::Some,
            Some(looked) if looked.elapsed() < LOOK_AGAIN_AFTER => Room::None,
            Some(_) => Room::Unknown,
        }
    }

    fn set_full(&self, owner_id: Uuid, is_full: bool) {
        let mut full = self.full.lock();
        if is_full {
            full.insert(owner_id, Instant::now());
        } else {
            full.remove(&owner_id);
        }
    }
}

/// Whether an account has room for one more command, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Some,
    None,
    /// It had none when last checked, a while ago.
    Unknown,
}

/// Keeps the commands of each account within its quota; cheap to clone.
#[derive(Clone)]
pub(super) struct StorageQuota {
    store: Store,
    written: BytesWritten,
}

impl StorageQuota {
    pub fn new(store: Store) -> Self {
        Self { store, written: BytesWritten::default() }
    }

    /// Returns an error if an account may not run one more command.
    pub async fn expect_room(&self, owner_id: Uuid) -> Result<(), StoreError> {
        let limit = self.store.quotas().command_bytes;
        match self.written.room(owner_id) {
            Room::Some => Ok(()),
            Room::None => Err(StoreError::QuotaExceeded { quota: Quota::CommandStorage, limit }),
            Room::Unknown => {
                let outcome = self.store.expect_command_room(owner_id, limit / LOOK_AFTER_PART).await;
                match &outcome {
                    Ok(()) => self.written.set_full(owner_id, false),
                    Err(StoreError::QuotaExceeded { .. }) => self.written.set_full(owner_id, true),
                    Err(_) => {}
                }
                outcome
            }
        }
    }

    /// Takes in that this many bytes of an account's commands were stored.
    pub fn wrote(&self, owner_id: Uuid, bytes: usize) {
        let look_after = self.store.quotas().command_bytes / LOOK_AFTER_PART;
        if self.written.add(owner_id, bytes as u64, look_after) {
            let quota = self.clone();
            tokio::spawn(async move {
                if let Err(error) = quota.trim(owner_id).await {
                    tracing::warn!(%error, user.id = %owner_id, "old commands could not be removed");
                }
            });
        }
    }

    /// Removes an account's oldest commands if they exceed its quota.
    async fn trim(&self, owner_id: Uuid) -> Result<(), StoreError> {
        let _alone = self.written.trimming.lock().await;
        let Trimmed { freed, is_full } = self.store.trim_commands(owner_id).await?;
        self.written.set_full(owner_id, is_full);
        if freed > 0 {
            metrics::counter!("signalbox_command_bytes_dropped_total").increment(freed);
            tracing::info!(user.id = %owner_id, bytes = freed, "the oldest commands were removed to keep an account within its quota");
        }
        Ok(())
    }

    /// Trims all accounts, because bytes written before a restart are not counted.
    pub async fn trim_all(&self) -> Result<(), StoreError> {
        for owner_id in self.store.owners_of_commands().await? {
            self.trim(owner_id).await?;
        }
        Ok(())
    }
}
