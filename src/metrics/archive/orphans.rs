//! Finishes what deleting a server began, wherever it was broken off.

use std::collections::VecDeque;

use uuid::Uuid;

use crate::shards::Shards;
use crate::store::history::HistoryTable;
use crate::store::{Store, StoreError};

/// Parts of histories that are removed in one look, some 10 MB each: what else is to be done waits for it.
const MOST_PARTS: usize = 32;

/// Servers that wait for being removed; more are found the next time.
const MOST_WAITING: usize = 1_024;

/// Where the search for histories of servers that are gone has come to.
pub struct Orphanage {
    store: Store,
    shards: Shards,
    table: usize,
    after: Uuid,
    /// Whether every table has been looked through since the start.
    has_seen_all: bool,
    waiting: VecDeque<Uuid>,
    /// Parts that may still be removed in this look.
    left: usize,
}

impl Orphanage {
    pub fn new(store: Store, shards: Shards) -> Self {
        Self { store, shards, table: 0, after: Uuid::nil(), has_seen_all: false, waiting: VecDeque::new(), left: 0 }
    }

    /// Looks for some; through everything the first time, and where `all` is asked for.
    pub async fn look(&mut self, all: bool) {
        self.left = if all { usize::MAX } else { MOST_PARTS };
        let wants_all = all || !self.has_seen_all;
        loop {
            let Some(is_round) = heard(self.search().await) else { return };
            self.has_seen_all |= is_round;
            if is_round || !wants_all || self.waiting.len() >= MOST_WAITING {
                return;
            }
        }
    }

    /// Looks through some servers. Gives whether it has come to the end of the last table.
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

    /// Removes a part of what was found. Gives whether there may be more.
    pub async fn remove_some(&mut self) -> bool {
        let Some(server_id) = self.waiting.front().copied().filter(|_| self.left > 0) else { return false };
        self.left -= 1;
        let Some(has_more) = heard(self.store.delete_part_of_history(server_id).await) else {
            // Found again, behind the others.
            self.waiting.pop_front();
            return false;
        };
        if !has_more {
            self.waiting.pop_front();
            metrics::counter!("signalbox_history_orphans_removed_total").increment(1);
            tracing::info!(server.id = %server_id, "the history of a server that was deleted is gone");
        }
        true
    }
}

/// What the database said. Where it failed the next look goes on; everything else that the archive does is none the worse.
fn heard<T>(said: Result<T, StoreError>) -> Option<T> {
    said.inspect_err(|error| {
        tracing::error!(%error, "the history of deleted servers could not be removed, will try again");
    })
    .ok()
}
