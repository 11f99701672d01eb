//! Keeps what the stored commands of each account take within its quota: the oldest give way, so that no command is
//! refused for what was run before. Commands that have not ended give no room: where they fill the quota, the next one
//! is refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::store::{Quota, Store, StoreError, Trimmed};

/// A look at what an account has costs as much as its commands are many: so it is looked when this part of its quota was
/// written since the last time. By as much it may be exceeded for a moment.
const LOOK_AFTER_PART: u64 = 16;

/// How often it is looked whether a full account has room again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What was written since each account was last looked at.
#[derive(Clone, Default)]
struct Written {
    bytes: Arc<Mutex<HashMap<Uuid, u64>>>,
    /// Accounts whose unfinished commands fill their quota, and when that was last looked at.
    full: Arc<Mutex<HashMap<Uuid, Instant>>>,
    /// Two at once would both make the same room.
    trimming: Arc<tokio::sync::Mutex<()>>,
}

impl Written {
    /// Notes what was written. Gives whether it is time to look.
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

/// Whether an account has room for one more command, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Some,
    None,
    /// It had none a while ago.
    Unknown,
}

/// Keeps the commands of each account within its quota, behind cheap clones.
#[derive(Clone)]
pub(super) struct StorageQuota {
    store: Store,
    written: Written,
}

impl StorageQuota {
    pub fn new(store: Store) -> Self {
        Self { store, written: Written::default() }
    }

    /// Makes sure that an account may run one more command.
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

    /// So many bytes of commands of an account were stored.
    pub fn wrote(&self, owner_id: Uuid, bytes: usize) {
        let look_after = self.store.quotas().command_bytes / LOOK_AFTER_PART;
        if self.written.add(owner_id, bytes as u64, look_after) {
            let quota = self.clone();
            tokio::spawn(async move {
                if let Err(error) = quota.trim(owner_id).await {
                    tracing::warn!(%error, user.id = %owner_id, "old commands could not make room for new ones");
                }
            });
        }
    }

    /// Makes room for an account, if it has none left.
    async fn trim(&self, owner_id: Uuid) -> Result<(), StoreError> {
        let _alone = self.written.trimming.lock().await;
        let Trimmed { freed, is_full } = self.store.trim_commands(owner_id).await?;
        self.written.set_full(owner_id, is_full);
        if freed > 0 {
            metrics::counter!("signalbox_command_bytes_dropped_total").increment(freed);
            tracing::info!(user.id = %owner_id, bytes = freed, "the oldest commands made room for newer ones");
        }
        Ok(())
    }

    /// The same for everybody: what was written before a restart was not counted.
    pub async fn trim_all(&self) -> Result<(), StoreError> {
        for owner_id in self.store.owners_of_commands().await? {
            self.trim(owner_id).await?;
        }
        Ok(())
    }
}
