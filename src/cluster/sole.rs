//! Keeps a PostgreSQL database to the one instance that is alone with it: without a message bus two would know nothing of
//! each other, and each would call the other's servers offline.
//!
//! It is a row of the instances as others have, by the database's clock: a lock of a session would not last behind a
//! pooler that lends connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use super::members::EnterError;
use crate::periodic::ticks;
use crate::store::{Store, StoreError};

/// How often it says that it is alive: well within [`crate::store::SOLE_DEAD_AFTER_MS`].
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// How often it looks whether the instance that was there before has died.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The place of the only instance, behind cheap clones.
#[derive(Clone)]
pub struct Sole {
    store: Store,
    id: Uuid,
    state: Arc<watch::Sender<State>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    /// Another instance has taken it, because this one was silent for too long.
    Lost,
    Left,
}

impl Sole {
    /// Takes the place. Where somebody else has it, waits until it is known whether they live: one that has died leaves
    /// its row behind for some seconds.
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

    /// Comes back when another instance has taken the place.
    pub async fn lost(&self) {
        // Fails only without a sender, and this is one.
        _ = self.state.subscribe().wait_for(|state| *state == State::Lost).await;
    }

    pub fn is_lost(&self) -> bool {
        *self.state.borrow() == State::Lost
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Gives the place up.
    pub async fn give_up(&self) {
        self.state.send_if_modified(|state| std::mem::replace(state, State::Left) == State::Held);
        if let Err(error) = self.store.leave(self.id).await {
            tracing::warn!(%error, "the next instance has to wait until it knows that this one has ended");
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
                    tracing::error!("another instance has taken the database over");
                    self.state.send_if_modified(|state| {
                        let is_held = *state == State::Held;
                        if is_held {
                            *state = State::Lost;
                        }
                        is_held
                    });
                }
                // The store tells of a database that is away.
                Err(error) if error.is_busy() => tracing::debug!(%error, "the place in the database was not renewed"),
                Err(error) => tracing::error!(%error, "the place in the database was not renewed"),
            }
        }
    }

    /// Gives whether the place is held still.
    async fn beat(&self) -> Result<bool, StoreError> {
        if self.store.beat_alone(self.id).await? || *self.state.borrow() != State::Held {
            return Ok(true);
        }
        // Taken for dead, and swept. Nobody may have come since.
        Ok(self.store.enter_alone(self.id, env!("CARGO_PKG_VERSION")).await?.is_empty())
    }
}
