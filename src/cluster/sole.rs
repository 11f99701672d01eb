//! Reserves a PostgreSQL database for one instance. Without a message bus two instances would know nothing of each
//! other, and each would mark the other's servers as offline.
//!
//! The claim is a row of the instances table, judged by the database's clock. A session lock would not survive a pooler
//! that lends connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use super::members::EnterError;
use crate::periodic::ticks;
use crate::store::{Store, StoreError};

/// How often this instance renews its claim: well within [`crate::store::SOLE_DEAD_AFTER_MS`].
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// How often the start checks whether the previous instance has died.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The claim of the only instance. Clones are cheap.
#[derive(Clone)]
pub struct Sole {
    store: Store,
    id: Uuid,
    state: Arc<watch::Sender<State>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    /// Another instance has taken the claim, because this one was silent for too long.
    Lost,
    Left,
}

impl Sole {
    /// Takes the claim. If another instance has it, waits until it is known whether that one lives: one that died
    /// leaves its row for some seconds.
    pub async fn take(store: Store, id: Uuid) -> Result<Self, EnterError> {
        let mut before: HashMap<Uuid, i64> = HashMap::new();
        loop {
            let others = store.enter_alone(id, env!("CARGO_PKG_VERSION")).await?;
            if others.is_empty() {
                break;
            }
            let has_said_so = |(other, seen_at): &(Uuid, i64)| before.get(other).is_some_and(|before| before < seen_at);
            if others.iter().any(has_said_so) {
                return Err(EnterError::NotAlone);
            }
            others.into_iter().for_each(|(other, seen_at)| _ = before.entry(other).or_insert(seen_at));
            sleep(LOOK_EVERY).await;
        }
        let sole = Self { store, id, state: Arc::new(watch::Sender::new(State::Held)) };
        actix::spawn(sole.clone().keep());
        Ok(sole)
    }

    /// Returns when another instance has taken the claim.
    pub async fn lost(&self) {
        // Fails only without a sender, and `self` holds one.
        _ = self.state.subscribe().wait_for(|state| *state == State::Lost).await;
    }

    pub fn is_lost(&self) -> bool {
        *self.state.borrow() == State::Lost
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Gives up the claim.
    pub async fn give_up(&self) {
        self.state.send_if_modified(|state| std::mem::replace(state, State::Left) == State::Held);
        if let Err(error) = self.store.leave(self.id).await {
            tracing::warn!(%error, "cannot give up the claim on the database: the next instance waits until it expires");
        }
    }

    async fn keep(self) {
        let mut ticks = ticks(BEAT_EVERY);
        loop {
            ticks.tick().await;
            if *self.state.borrow() != State::Held {
                return;
            }
            match self.beat().await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::error!("another instance has taken over the database");
                    self.state.send_if_modified(|state| {
                        let is_held = *state == State::Held;
                        if is_held {
                            *state = State::Lost;
                        }
                        is_held
                    });
                }
                // The store reports a database that is away.
                Err(error) if error.is_busy() => tracing::debug!(%error, "cannot renew the claim on the database"),
                Err(error) => tracing::error!(%error, "cannot renew the claim on the database"),
            }
        }
    }

    /// Returns whether this instance still has the claim.
    async fn beat(&self) -> Result<bool, StoreError> {
        if self.store.beat_alone(self.id).await? || *self.state.borrow() != State::Held {
            return Ok(true);
        }
        // This instance counted as dead and its row was removed, but no other may have come since.
        Ok(self.store.enter_alone(self.id, env!("CARGO_PKG_VERSION")).await?.is_empty())
    }
}
