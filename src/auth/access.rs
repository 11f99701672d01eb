//! The only place that decides who may do what to which server, for REST and WebSockets alike.
//!
//! A server belongs to one account, which may grant roles on it to users and teams. All grants are in memory, the same on every
//! instance ([`sharing`]); a change of them is read again before its request is answered, and on other instances as soon as they
//! read the audit log.
//!
//! A program with a token of its own may do what both its user and the token may do, on the servers for which the token is.

pub mod sharing;
mod standing;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::RwLock;
use signalbox_protocol::agent::Asker;
use tokio::sync::Mutex;
use uuid::Uuid;

use self::sharing::{Facts, Sharing};
pub use self::standing::{Action, Standing};
use self::standing::{allows, bounded, standing_of};
use crate::audit::Actor;
use crate::feeds::{FeedFrame, Feeds, Topic};
use crate::store::{
    Caller, Grant, Server, SharedWith, Store, StoreError, TokenLimits, TokenScope, ViewReader, Visibility,
};
pub use crate::store::{Right, Rights, Role};

/// The pause before grants are read again from a database that was away.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

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
    /// The caller is a program whose token does not allow this, whatever its user may do.
    #[error("not allowed with this token")]
    TokenNotAllowed,
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

    /// Whether a server of this owner with these tags is shared because of them.
    pub fn is_shared_by_tag(&self, owner_id: Uuid, tags: &[String]) -> bool {
        self.sharing().names_tag(owner_id, tags)
    }

    /// Checks whether this caller may do this to this server.
    pub async fn server(&self, caller: &Caller, server_id: Uuid, action: Action) -> Result<ServerAccess, AccessError> {
        let found = self.find(caller.user_id, caller.token.as_deref(), server_id).await?;
        let (owner_id, standing) = found.ok_or(AccessError::NotFound)?;
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
        bounded(self.sharing().visible(caller.user_id, action), caller, action)
    }

    /// The servers that belong to a caller's account.
    pub fn owned(&self, caller: &Caller) -> Visibility {
        bounded(Visibility::of_owner(caller.user_id), caller, Action::See)
    }

    /// Checks whether a caller may do this to what belongs to their account and is not for one server: with a tag it is for the
    /// account's servers that have it, otherwise for all of them, or for none. People may; a token must be for as many servers.
    pub fn account(&self, caller: &Caller, tag: Option<&str>, action: Action) -> Result<(), AccessError> {
        let Some(token) = &caller.token else { return Ok(()) };
        let is_in_scope = match &token.scope {
            TokenScope::All => true,
            TokenScope::Tag(own) => tag == Some(own.as_str()),
            TokenScope::ServerIds(_) => false,
        };
        if is_in_scope && allows(Standing::of_token(token), action) {
            Ok(())
        } else {
            Err(AccessError::TokenNotAllowed)
        }
    }

    /// What a caller is for a server that was read; `None` if they may not know of it.
    pub fn standing(&self, caller: &Caller, server: &Server) -> Option<Standing> {
        let Server { record, tags } = server;
        let facts = Facts { server_id: record.id, owner_id: record.owner_id, tags };
        standing_of(&self.sharing(), (caller.user_id, caller.token.as_deref()), &facts)
    }

    /// Who asks an agent for something, in the agent's words; none for what no account asks for.
    pub fn asker(&self, actor: &Actor) -> Option<Asker> {
        let user_id = actor.user_id?;
        Some(Asker { user: actor.username.to_string(), teams: self.sharing().teams_of(user_id).to_vec() })
    }

    /// Everybody who may see a server, the owner first. Others whose accounts are disabled are left out: nobody is notified there.
    pub fn viewers(&self, owner_id: Uuid, server_id: Uuid, tags: &[String]) -> Vec<Uuid> {
        let sharing = self.sharing();
        let people = sharing.people(&Facts { server_id, owner_id, tags });
        let people = people.into_iter().map(|person| person.user_id);
        people.filter(|user_id| *user_id == owner_id || !sharing.is_disabled(*user_id)).collect()
    }

    /// Whether a user who asked for something earlier, maybe with a token, may still do it: their grant may have ended since, their
    /// account may be disabled, or the token may be revoked.
    pub async fn may_still(
        &self,
        (user_id, token_id): (Uuid, Option<Uuid>),
        server_id: Uuid,
        action: Action,
    ) -> Result<bool, StoreError> {
        if self.sharing().is_disabled(user_id) {
            return Ok(false);
        }
        let token = match token_id {
            None => None,
            Some(id) => match self.store.find_token_caller(id).await? {
                None => return Ok(false),
                Some(caller) => caller.token,
            },
        };
        let found = self.find(user_id, token.as_deref(), server_id).await?;
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

    /// Whether `GET /servers/{id}/access` shows a caller this grant, which is neither theirs nor on their own servers.
    pub async fn shows(&self, caller: &Caller, grant: &Grant) -> Result<bool, StoreError> {
        let shares = self.sharing().where_shown(caller.user_id, grant);
        self.store.have_a_server_in_common(&shares).await
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

    /// Reads the rights to these servers again: another instance may have changed them, and this one not know of it yet.
    pub async fn read_anew(&self, server_ids: impl Iterator<Item = Uuid>) -> Result<(), StoreError> {
        server_ids.for_each(|server_id| self.forget(server_id));
        let change = self.changes.fetch_add(1, Ordering::SeqCst) + 1;
        self.read_again(change).await
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
        self.feeds.deliver(Topic::Scope(owner_id), FeedFrame::Rights);
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

    /// Notes that the database has lost changes: servers and grants are read again, and the rights of all sockets are checked.
    pub async fn rewound(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.servers.clear();
        self.changed().await;
        let is_of_rights = |topic: &Topic| matches!(topic, Topic::Access(_) | Topic::Scope(_));
        self.feeds.deliver_where(is_of_rights, &FeedFrame::Rights);
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

    /// The server's owner, and what the user is for it, maybe with a token; `None` if they may not know of it. What is known of
    /// servers that they may not see is not used: a faster answer would reveal that the server exists.
    async fn find(
        &self,
        user_id: Uuid,
        token: Option<&TokenLimits>,
        server_id: Uuid,
    ) -> Result<Option<(Uuid, Standing)>, StoreError> {
        let sharing = self.sharing();
        let standing = |known: &Known| {
            let standing = standing_of(&sharing, (user_id, token), &known.facts(server_id))?;
            Some((known.owner_id, standing))
        };
        let known = self.servers.get(&server_id).map(|entry| entry.clone());
        if let Some(found) = known.and_then(|known| standing(&known)) {
            return Ok(Some(found));
        }
        let visible = sharing.visible(user_id, Action::See);
        let visible = match token {
            None => visible,
            Some(token) => visible.within(&token.scope),
        };
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
