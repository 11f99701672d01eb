//! Which logins live. An access token is good for as long as its login, not only until it expires.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use uuid::Uuid;

use crate::feeds::{Closing, Feeds, Topic};
use crate::store::{Caller, Store, StoreError};

/// How long a look into the database is believed. A login that ended here is known at once; one that ended on another
/// instance at the latest after this.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// Beyond this many remembered logins the old ones are swept out.
const MAX_REMEMBERED: usize = 10_000;

/// Answers whether a login lives, mostly without the database.
#[derive(Clone)]
pub struct Logins {
    store: Store,
    feeds: Feeds,
    known: Arc<DashMap<Uuid, Known>>,
}

/// What the database said of a login, and when it was asked.
#[derive(Clone)]
struct Known {
    /// None once the login has ended, which is for ever.
    caller: Option<Caller>,
    at: Instant,
}

impl Logins {
    pub fn new(store: Store, feeds: Feeds) -> Self {
        Self { store, feeds, known: Arc::default() }
    }

    /// The caller behind a login; none when it has ended.
    pub async fn caller(&self, login_id: Uuid) -> Result<Option<Caller>, StoreError> {
        if let Some(known) = self.known.get(&login_id).map(|entry| entry.clone())
            && (known.caller.is_none() || known.at.elapsed() < BELIEVED_FOR)
        {
            return Ok(known.caller);
        }
        // Taken before the question: the answer is as old as that.
        let at = Instant::now();
        match self.store.find_caller(login_id).await? {
            Some(caller) => Ok(self.remember(login_id, caller, at)),
            None => {
                self.ended(login_id);
                Ok(None)
            }
        }
    }

    /// Takes note that a login has ended, and closes its open sockets.
    pub fn ended(&self, login_id: Uuid) {
        self.make_room();
        self.known.insert(login_id, Known { caller: None, at: Instant::now() });
        self.feeds.close(Topic::Login(login_id), Closing::Unauthorized);
    }

    /// Takes note that a user is called something else now.
    pub fn renamed(&self, user_id: Uuid) {
        self.known.retain(|_, known| known.caller.as_ref().is_none_or(|caller| caller.user_id != user_id));
    }

    /// Keeps the answer, unless the login ended while the answer was on its way.
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
