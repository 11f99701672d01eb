//! Checks the clocks every second, asks the agents and the database for theirs, and stores the time that has certainly
//! come.

use std::time::Duration;

use super::Clock;
use super::database::Answer;
use crate::periodic::every;
use crate::store::{Store, StoreError};

/// The interval of the checks. A late check reveals a pause.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often the database is asked for its time.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// Queries in a row: the first one may have to wait for a connection.
const MAX_ASKED: u32 = 4;

/// After this many queries the certain time is stored: a reboot loses at most a minute.
const ASKED_A_SAVE: u32 = 6;

/// Checks for as long as the service runs. `offsets` returns how far the clocks of all agents on this instance are
/// ahead.
pub async fn keep(clock: Clock, offsets: impl Fn() -> Vec<i64>, store: Store) {
    tokio::join!(look(&clock, offsets), ask(&clock, &store));
}

async fn look(clock: &Clock, offsets: impl Fn() -> Vec<i64>) {
    every(LOOK_EVERY, async || {
        clock.tally(offsets());
        // Set each time, because at the start no recorder exists yet.
        metrics::gauge!("signalbox_clock_doubted").set(if clock.doubt().is_some() { 1.0 } else { 0.0 });
    })
    .await;
}

async fn ask(clock: &Clock, store: &Store) {
    let mut asked = 0;
    every(ASK_EVERY, async || {
        if let Err(error) = clock.ask(store).await {
            tracing::warn!(%error, "cannot read the database's time, will retry");
        }
        asked = (asked + 1) % ASKED_A_SAVE;
        if asked == 1
            && let Err(error) = store.save_clock(&clock.save()).await
        {
            tracing::warn!(%error, "cannot store the time, will retry");
        }
    })
    .await;
}

impl Clock {
    /// Asks the database for its time, if it has a clock of its own, and again if the answer was too slow to be
    /// precise.
    pub async fn ask(&self, store: &Store) -> Result<(), StoreError> {
        for _ in 0..MAX_ASKED {
            let asked_ms = self.boot_ms();
            let Some(database_ms) = store.database_now_ms().await? else { return Ok(()) };
            if self.heard_database(Answer { database_ms, asked_ms, answered_ms: self.boot_ms() }) {
                break;
            }
        }
        Ok(())
    }
}
