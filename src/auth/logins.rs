//! Which logins are active. An access token is valid as long as its login, not just until it expires. A token of a program is a
//! login of its own, which ends when the token is revoked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use uuid::Uuid;

use crate::feeds::{Closing, Feeds, Topic};
use crate::store::{Caller, Store, StoreError};

/// How long the database's answer is valid. A login that ended here is known immediately, one that ended on another
/// instance after this time at most.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// The pause before the logins are read again from a database that was away.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Above this number of cached logins, old ones are removed.
const MAX_REMEMBERED: usize = 10_000;

/// Says whether a login is active, mostly without the database.
#[derive(Clone)]
pub struct Logins {
    store: Store,
    feeds: Feeds,
    known: Arc<DashMap<Uuid, Known>>,
}

/// The database's answer about a login, and when it was queried.
#[derive(Clone)]
struct Known {
    /// `None` once the login has ended, which is final.
    caller: Option<Caller>,
    at: Instant,
}

impl Logins {
    pub fn new(store: Store, feeds: Feeds) -> Self {
        Self { store, feeds, known: Arc::default() }
    }

    /// Returns the user of a login, or `None` if the login has ended.
    pub async fn caller(&self, login_id: Uuid) -> Result<Option<Caller>, StoreError> {
        if let Some(known) = self.known.get(&login_id).map(|entry| entry.clone())
            && (known.caller.is_none() || known.at.elapsed() < BELIEVED_FOR)
        {
            return Ok(known.caller);
        }
        // Taken before the query: the answer is as old as that.
        let at = Instant::now();
        match self.store.find_caller(login_id).await? {
            Some(caller) => Ok(self.remember(login_id, caller, at)),
            None => {
                self.ended(login_id);
                Ok(None)
            }
        }
    }

    /// Notes that a login has ended, and closes its open sockets.
    pub fn ended(&self, login_id: Uuid) {
        self.make_room();
        self.known.insert(login_id, Known { caller: None, at: Instant::now() });
        self.feeds.close(Topic::Login(login_id), Closing::Unauthorized);
    }

    /// Checks which of a user's logins have ended on any instance. If the database is away, cached answers stay valid
    /// for at most a second, but open sockets stay open until a retry succeeds.
    pub async fn look_at(&self, user_id: Uuid) {
        if let Err(error) = self.end_what_ended(user_id).await {
            tracing::warn!(%error, user.id = %user_id, "cannot read a user's logins, will retry");
            let logins = self.clone();
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(LOOK_AGAIN_AFTER).await;
                    match logins.end_what_ended(user_id).await {
                        Ok(()) => break,
                        Err(error) if error.is_busy() => {}
                        Err(error) => tracing::error!(%error, "cannot read a user's logins, will retry"),
                    }
                }
            });
        }
    }

    async fn end_what_ended(&self, user_id: Uuid) -> Result<(), StoreError> {
        let is_theirs = |known: &Known| known.caller.as_ref().is_some_and(|caller| caller.user_id == user_id);
        let mut ids = self.feeds.watched_logins();
        ids.extend(self.known.iter().filter(|known| is_theirs(known)).map(|known| *known.key()));
        let alive = self.store.logins_among(&ids).await?;
        ids.into_iter().filter(|id| !alive.contains(id)).for_each(|id| self.ended(id));
        Ok(())
    }

    /// Forgets what is cached of a user who was renamed, or whose proofs of identity changed.
    pub fn forget(&self, user_id: Uuid) {
        self.known.retain(|_, known| known.caller.as_ref().is_none_or(|caller| caller.user_id != user_id));
    }

    /// Caches the answer, unless the login ended during the query.
    fn remember(&self, login_id: Uuid, caller: Caller, at: Instant) -> Option<Caller> {
        self.make_room();
        let mut entry = self.known.entry(login_id).or_insert_with(|| Known { caller: Some(caller.clone()), at });
        if entry.caller.is_some() {
            *entry = Known { caller: Some(caller), at };
        }
        entry.caller.clone()
    }

    fn make_room(&self) {
        if self.known.len() >= MAX_REMEMBERED {
            self.known.retain(|_, old| old.at.elapsed() < BELIEVED_FOR);
        }
    }
}
