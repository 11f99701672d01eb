//! Removes the history of deleted servers, also after an interruption.

use std::collections::VecDeque;

use uuid::Uuid;

use crate::shards::Shards;
use crate::store::history::HistoryTable;
use crate::store::{Store, StoreError};

/// Parts of histories that are removed in one step, about 10 MB each: the other steps wait for it.
const MAX_PARTS: usize = 32;

/// Servers that wait to be removed; the next search finds more.
const MAX_WAITING: usize = 1_024;

/// The position of the search for histories of deleted servers.
pub struct Orphanage {
    store: Store,
    shards: Shards,
    table: usize,
    after: Uuid,
    /// Whether every table has been searched since the start.
    has_seen_all: bool,
    waiting: VecDeque<Uuid>,
    /// Parts that may still be removed in this step.
    left: usize,
}

impl Orphanage {
    pub fn new(store: Store, shards: Shards) -> Self {
        Self { store, shards, table: 0, after: Uuid::nil(), has_seen_all: false, waiting: VecDeque::new(), left: 0 }
    }

    /// Searches a part of the tables; all of them the first time, and if `all`.
    pub async fn look(&mut self, all: bool) {
        self.left = if all { usize::MAX } else { MAX_PARTS };
        let wants_all = all || !self.has_seen_all;
        loop {
            let Some(is_round) = heard(self.search().await) else { return };
            self.has_seen_all |= is_round;
            if is_round || !wants_all || self.waiting.len() >= MAX_WAITING {
                return;
            }
        }
    }

    /// Searches some servers. Returns whether it has reached the end of the last table.
    async fn search(&mut self) -> Result<bool, StoreError> {
        let Some(table) = HistoryTable::ALL.get(self.table) else {
            (self.table, self.after) = (0, Uuid::nil());
            return Ok(true);
        };
        let found = self.store.orphans(*table, self.after).await?;
        let waiting = &mut self.waiting;
        let new = found.server_ids.into_iter().filter(|id| self.shards.holds(*id));
        for server_id in new {
            if !waiting.contains(&server_id) {
                waiting.push_back(server_id);
            }
        }
        match found.after {
            Some(after) => self.after = after,
            None => (self.table, self.after) = (self.table + 1, Uuid::nil()),
        }
        Ok(false)
    }

    /// Removes a part of a history that was found. Returns whether there may be more.
    pub async fn remove_some(&mut self) -> bool {
        let Some(server_id) = self.waiting.front().copied().filter(|_| self.left > 0) else { return false };
        self.left -= 1;
        let Some(has_more) = heard(self.store.delete_part_of_history(server_id).await) else {
            // The next round finds it again, after the others.
            self.waiting.pop_front();
            return false;
        };
        if !has_more {
            self.waiting.pop_front();
            metrics::counter!("signalbox_history_orphans_removed_total").increment(1);
            tracing::info!(server.id = %server_id, "the history of a deleted server was removed");
        }
        true
    }
}

/// Logs a database error. The next step retries, and the other work of the archive continues.
fn heard<T>(said: Result<T, StoreError>) -> Option<T> {
    said.inspect_err(|error| {
        tracing::error!(%error, "the history of deleted servers could not be removed, will try again");
    })
    .ok()
}
