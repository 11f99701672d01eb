//! Looks at the clocks every second, asks the agents and the database for theirs, and remembers what has certainly come.

use std::time::Duration;

use super::Clock;
use super::database::Answer;
use crate::periodic::every;
use crate::store::{Store, StoreError};

/// A look that is late tells a pause.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often the database is asked for its time.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// In one go: the first question may have to wait for a connection.
const MAX_ASKED: u32 = 4;

/// Of these, every how many what has certainly come is written: a reboot forgets no more than a minute.
const ASKED_A_SAVE: u32 = 6;

/// Looks for as long as the service runs. `offsets` says how far the clocks of all agents that are here are ahead.
pub async fn keep(clock: Clock, offsets: impl Fn() -> Vec<i64>, store: Store) {
    tokio::join!(look(&clock, offsets), ask(&clock, &store));
}

async fn look(clock: &Clock, offsets: impl Fn() -> Vec<i64>) {
    every(LOOK_EVERY, async || {
        clock.tally(offsets());
        // Each time: at a start nobody counts yet.
        metrics::gauge!("signalbox_clock_doubted").set(if clock.doubt().is_some() { 1.0 } else { 0.0 });
    })
    .await;
}

async fn ask(clock: &Clock, store: &Store) {
    let mut asked = 0;
    every(ASK_EVERY, async || {
        if let Err(error) = clock.ask(store).await {
            tracing::warn!(%error, "the database could not be asked for its time, will try again");
        }
        asked = (asked + 1) % ASKED_A_SAVE;
        if asked == 1
            && let Err(error) = store.save_clock(&clock.save()).await
        {
            tracing::warn!(%error, "the time could not be remembered, will try again");
        }
    })
    .await;
}

impl Clock {
    /// Asks the database for its time, where it has a clock of its own: again where the answer took too long to say much.
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
