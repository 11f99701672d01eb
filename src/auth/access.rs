//! The only place that decides who may do what to which server, for REST and WebSockets alike.
//!
//! A server belongs to one account, which may grant roles on it to users and teams. All grants are in memory, the same on every
//! instance ([`sharing`]); a change of them is read again before its request is answered, and on other instances as soon as they
//! read the audit log.

pub mod sharing;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::RwLock;
use tokio::sync::Mutex;
use uuid::Uuid;

use self::sharing::{Facts, Sharing};
use crate::feeds::{FeedFrame, Feeds, Topic};
use crate::store::{Caller, Server, SharedWith, Store, StoreError, ViewReader, Visibility};
pub use crate::store::{Right, Rights, Role};

/// The pause before grants are read again from a database that was away.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What a caller wants to do to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read the record, metrics, events, containers and alerts.
    See,
    /// Acknowledge, resolve and silence its alerts, and write notes about them.
    Respond,
    /// What needs one of the rights of an operator.
    Use(Right),
    /// Change the record, its keys, thresholds and grants.
    Manage,
    /// Delete it.
    Own,
}

/// What somebody is for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub role: Role,
    pub rights: Rights,
}

impl Standing {
    pub const OWNER: Self = Self { role: Role::Owner, rights: Rights::ALL };

    /// What a grant gives. Only operators have some of the rights; managers have all.
    pub fn granted(role: Role, rights: Rights) -> Self {
        let rights = match role {
            Role::Viewer | Role::Responder => Rights::NONE,
            Role::Operator => rights,
            Role::Manager | Role::Owner => Rights::ALL,
        };
        Self { role, rights }
    }

    /// What two grants give together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { role: self.role.max(other.role), rights: self.rights.union(other.rights) }
    }
}

/// Proof that a caller may do the requested action to this server. Only [`Access::server`] creates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerAccess {
    server_id: Uuid,
    owner_id: Uuid,
    standing: Standing,
}

impl ServerAccess {
    pub fn server_id(self) -> Uuid {
        self.server_id
    }

    pub fn owner_id(self) -> Uuid {
        self.owner_id
    }

    pub fn role(self) -> Role {
        self.standing.role
    }

    pub fn rights(self) -> Rights {
        self.standing.rights
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The server does not exist, or the caller may not know of it: the two must look the same.
    #[error("no such server")]
    NotFound,
    /// The caller may see the server, but not do this.
    #[error("not allowed")]
    Forbidden,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A server's owner and tags.
#[derive(Debug)]
struct Known {
    owner_id: Uuid,
    tags: Vec<String>,
}

impl Known {
    fn facts(&self, server_id: Uuid) -> Facts<'_> {
        Facts { server_id, owner_id: self.owner_id, tags: &self.tags }
    }
}

/// Decides rights, mostly without the database. Clones are cheap.
#[derive(Clone)]
pub struct Access {
    store: Store,
    feeds: Feeds,
    servers: Arc<DashMap<Uuid, Arc<Known>>>,
    /// Counts servers that were forgotten.
    forgotten: Arc<AtomicU64>,
    sharing: Arc<RwLock<Arc<Sharing>>>,
    /// How many changes of the grants there were.
    changes: Arc<AtomicU64>,
    /// One read of the grants at a time, so that an older one never replaces a newer one: how many changes it contains.
    reading: Arc<Mutex<u64>>,
}

impl Access {
    /// Knows no grants: everybody has their own servers alone.
    pub fn without_grants(store: Store, feeds: Feeds) -> Self {
        Self {
            store,
            feeds,
            servers: Arc::default(),
            forgotten: Arc::default(),
            sharing: Arc::default(),
            changes: Arc::default(),
            reading: Arc::default(),
        }
    }

    /// Reads all grants.
    pub async fn start(store: Store, feeds: Feeds) -> Result<Self, StoreError> {
        let sharing = Sharing::new(store.grants_and_members().await?);
        Ok(Self { sharing: Arc::new(RwLock::new(Arc::new(sharing))), ..Self::without_grants(store, feeds) })
    }

    /// Checks whether this caller may do this to this server.
    pub async fn server(&self, caller: &Caller, server_id: Uuid, action: Action) -> Result<ServerAccess, AccessError> {
        let (owner_id, standing) = self.find(caller.user_id, server_id).await?.ok_or(AccessError::NotFound)?;
        if allows(standing, action) {
            Ok(ServerAccess { server_id, owner_id, standing })
        } else {
            Err(AccessError::Forbidden)
        }
    }

    /// The servers that a caller may see.
    pub fn visible(&self, caller: &Caller) -> Visibility {
        self.where_allowed(caller, Action::See)
    }

    /// The servers that the person with this account may see, for what the service does without a request of theirs.
    pub fn visible_to(&self, user_id: Uuid) -> Visibility {
        self.sharing().visible(user_id, Action::See)
    }

    /// The servers to which the person with this account may do this, for what the service does without a request of theirs.
    pub fn usable_by(&self, user_id: Uuid, action: Action) -> Visibility {
        self.sharing().visible(user_id, action)
    }

    /// The servers to which a caller may do this.
    pub fn where_allowed(&self, caller: &Caller, action: Action) -> Visibility {
        self.sharing().visible(caller.user_id, action)
    }

    /// What a caller is for a server that was read; `None` if they may not know of it.
    pub fn standing(&self, caller: &Caller, server: &Server) -> Option<Standing> {
        let Server { record, tags } = server;
        let facts = Facts { server_id: record.id, owner_id: record.owner_id, tags };
        self.sharing().standing(caller.user_id, &facts)
    }

    /// Everybody who may see a server, the owner first. Others whose accounts are disabled are left out: nobody is notified there.
    pub fn viewers(&self, owner_id: Uuid, server_id: Uuid, tags: &[String]) -> Vec<Uuid> {
        let sharing = self.sharing();
        let people = sharing.people(&Facts { server_id, owner_id, tags });
        let people = people.into_iter().map(|person| person.user_id);
        people.filter(|user_id| *user_id == owner_id || !sharing.is_disabled(*user_id)).collect()
    }

    /// Whether a user who asked for something earlier may still do it: their grant may have ended since, or their account may be
    /// disabled.
    pub async fn may_still(&self, user_id: Uuid, server_id: Uuid, action: Action) -> Result<bool, StoreError> {
        if self.sharing().is_disabled(user_id) {
            return Ok(false);
        }
        let found = self.find(user_id, server_id).await?;
        Ok(found.is_some_and(|(_, standing)| allows(standing, action)))
    }

    /// Everybody who may see a server of which only the id is known, the owner among them; nobody if it does not exist.
    pub async fn viewers_of(&self, server_id: Uuid) -> Result<Vec<Uuid>, StoreError> {
        let cached = self.servers.get(&server_id).map(|entry| entry.clone());
        let known = match cached {
            Some(known) => known,
            None => match self.store.owner_of_server(server_id).await? {
                Some(owner_id) => self.learn(server_id, owner_id).await?,
                None => return Ok(Vec::new()),
            },
        };
        Ok(self.viewers(known.owner_id, server_id, &known.tags))
    }

    /// The accounts that own servers that a caller can see, the caller's own first.
    pub fn owners_seen(&self, caller: &Caller) -> Vec<Uuid> {
        self.sharing().owners_seen(caller.user_id)
    }

    /// All grants at this moment.
    pub fn sharing(&self) -> Arc<Sharing> {
        self.sharing.read().clone()
    }

    /// Returns which views and dashboards this caller may read: their own, and those that are shared with their role in the
    /// service. Only the owner may change them, whatever the role.
    pub fn views(&self, caller: &Caller) -> ViewReader {
        let mut audiences = vec![SharedWith::Everyone];
        if caller.is_admin {
            audiences.push(SharedWith::Administrators);
        }
        ViewReader { user_id: caller.user_id, audiences }
    }

    /// Returns those of these servers that this caller may read. What others share may name servers that are not the caller's.
    pub async fn readable(&self, caller: &Caller, server_ids: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
        if server_ids.is_empty() {
            Ok(Vec::new())
        } else {
            self.store.visible_among(&self.visible(caller), server_ids).await
        }
    }

    /// Notes that grants or teams have changed, or that an account was disabled or enabled. Everybody whose rights are others now
    /// gets a notice, so that their sockets are checked again. If the database is away, the previous grants stay in force until a retry succeeds.
    pub async fn changed(&self) {
        let change = self.changes.fetch_add(1, Ordering::SeqCst) + 1;
        if let Err(error) = self.read_again(change).await {
            tracing::warn!(%error, "cannot read the grants, will retry");
            let access = self.clone();
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(READ_AGAIN_AFTER).await;
                    match access.read_again(change).await {
                        Ok(()) => break,
                        Err(error) if error.is_busy() => {}
                        Err(error) => tracing::error!(%error, "cannot read the grants, will retry"),
                    }
                }
            });
        }
    }

    /// Reads all grants, unless a read that began after this change has ended by now: one serves all who waited for it.
    async fn read_again(&self, change: u64) -> Result<(), StoreError> {
        let mut contained = self.reading.lock().await;
        if *contained >= change {
            return Ok(());
        }
        let changes = self.changes.load(Ordering::SeqCst);
        let sharing = Arc::new(Sharing::new(self.store.grants_and_members().await?));
        let before = std::mem::replace(&mut *self.sharing.write(), sharing.clone());
        *contained = changes;
        self.tell(sharing.changed_since(&before));
        Ok(())
    }

    /// Notes that a server has changed: its tags may decide who sees it.
    pub fn server_changed(&self, server_id: Uuid, owner_id: Uuid) {
        self.forget(server_id);
        self.tell(self.sharing().guests(owner_id));
    }

    /// Notes that a server was deleted, and the grants on it with it.
    pub async fn server_deleted(&self, server_id: Uuid, owner_id: Uuid) {
        self.server_changed(server_id, owner_id);
        if self.sharing().names_server(owner_id, server_id) {
            self.changed().await;
        }
    }

    /// Notes that an account was deleted: its servers may have another owner now, and its grants and teams have changed.
    pub async fn account_deleted(&self, user_id: Uuid) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.servers.retain(|_, known| known.owner_id != user_id);
        self.changed().await;
    }

    /// Tells the sockets of these users on this instance that rights may have changed.
    fn tell(&self, users: impl IntoIterator<Item = Uuid>) {
        for user_id in users {
            self.feeds.deliver(Topic::Access(user_id), FeedFrame::Rights);
        }
    }

    fn forget(&self, server_id: Uuid) {
        // Counted first: a read that began before this then does not keep what it found.
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.servers.remove(&server_id);
    }

    /// The server's owner, and what the user is for it; `None` if the user may not know of it. What is known of servers
    /// that the user may not see is not used: a faster answer would reveal that the server exists.
    async fn find(&self, user_id: Uuid, server_id: Uuid) -> Result<Option<(Uuid, Standing)>, StoreError> {
        let sharing = self.sharing();
        let standing = |known: &Known| {
            let standing = sharing.standing(user_id, &known.facts(server_id))?;
            Some((known.owner_id, standing))
        };
        let known = self.servers.get(&server_id).map(|entry| entry.clone());
        if let Some(found) = known.and_then(|known| standing(&known)) {
            return Ok(Some(found));
        }
        let visible = sharing.visible(user_id, Action::See);
        let Some(owner_id) = self.store.find_visible(&visible, server_id).await? else { return Ok(None) };
        let known = self.learn(server_id, owner_id).await?;
        Ok(standing(&known))
    }

    /// Reads the tags of a server, and keeps them if nothing has changed in between.
    async fn learn(&self, server_id: Uuid, owner_id: Uuid) -> Result<Arc<Known>, StoreError> {
        let before = self.forgotten.load(Ordering::SeqCst);
        let known = Arc::new(Known { owner_id, tags: self.store.tags_of_server(server_id).await? });
        self.servers.insert(server_id, known.clone());
        if self.forgotten.load(Ordering::SeqCst) != before {
            self.servers.remove(&server_id);
        }
        Ok(known)
    }
}

/// Whether this is enough for an action.
fn allows(standing: Standing, action: Action) -> bool {
    match action {
        Action::See => true,
        Action::Respond => standing.role >= Role::Responder,
        Action::Use(right) => standing.rights.contains(right),
        Action::Manage => standing.role >= Role::Manager,
        Action::Own => standing.role == Role::Owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_do_what_the_ones_before_it_may() {
        let allowed = |role, rights: &[Right]| {
            let standing = Standing::granted(role, rights.iter().copied().collect());
            let actions = [Action::See, Action::Respond, Action::Use(Right::Logs), Action::Manage, Action::Own];
            actions.map(|action| allows(standing, action))
        };

        assert_eq!(allowed(Role::Viewer, &Right::ALL), [true, false, false, false, false]);
        assert_eq!(allowed(Role::Responder, &Right::ALL), [true, true, false, false, false]);
        assert_eq!(allowed(Role::Operator, &[Right::Logs]), [true, true, true, false, false]);
        assert_eq!(allowed(Role::Operator, &[Right::Commands]), [true, true, false, false, false]);
        assert_eq!(allowed(Role::Manager, &[]), [true, true, true, true, false]);
        assert_eq!(allowed(Role::Owner, &[]), [true; 5]);
    }
}
