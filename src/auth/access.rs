//! The only place that decides who may do what to which server, for REST and WebSockets alike.
//!
//! A server has one role today, its owner. Sharing would add roles to [`role`] and lines to [`allows`]; no other code
//! asks for rights.

use std::sync::Arc;

use dashmap::DashMap;
use uuid::Uuid;

use crate::store::{Caller, SharedWith, Store, StoreError, ViewReader};

/// What a caller wants to do to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read the record, metrics, logs and alerts.
    Read,
    /// Run commands, control containers, handle alerts.
    Operate,
    /// Change or delete the record, create and revoke keys.
    Manage,
}

/// The role of a caller for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Owner,
}

/// Proof that a caller may do the requested action to this server. Only [`Access::server`] creates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerAccess {
    server_id: Uuid,
    owner_id: Uuid,
}

impl ServerAccess {
    pub fn server_id(self) -> Uuid {
        self.server_id
    }

    pub fn owner_id(self) -> Uuid {
        self.owner_id
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The server does not exist, or belongs to another account: the two must look the same.
    #[error("no such server")]
    NotFound,
    /// The caller may see the server, but not do this.
    #[error("not allowed")]
    Forbidden,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Decides rights, mostly without the database: a server's owner never changes.
#[derive(Clone)]
pub struct Access {
    store: Store,
    owners: Arc<DashMap<Uuid, Uuid>>,
}

impl Access {
    pub fn new(store: Store) -> Self {
        Self { store, owners: Arc::default() }
    }

    /// Checks whether this caller may do this to this server.
    pub async fn server(&self, caller: &Caller, server_id: Uuid, action: Action) -> Result<ServerAccess, AccessError> {
        let (owner_id, role) = self.role(caller, server_id).await?.ok_or(AccessError::NotFound)?;
        if allows(role, action) { Ok(ServerAccess { server_id, owner_id }) } else { Err(AccessError::Forbidden) }
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
        if server_ids.is_empty() { Ok(Vec::new()) } else { self.store.owned_among(caller.user_id, server_ids).await }
    }

    /// Forgets a deleted server.
    pub fn forget(&self, server_id: Uuid) {
        self.owners.remove(&server_id);
    }

    /// The server's owner and the caller's role; `None` if the caller may not know of the server. Cached owners of
    /// other accounts are not used: a faster answer would reveal that the server exists.
    async fn role(&self, caller: &Caller, server_id: Uuid) -> Result<Option<(Uuid, Role)>, StoreError> {
        let known = self.owners.get(&server_id).map(|entry| *entry);
        if let Some((owner_id, role)) = known.and_then(|owner_id| Some((owner_id, role(caller, owner_id)?))) {
            return Ok(Some((owner_id, role)));
        }
        if !self.store.owns_server(caller.user_id, server_id).await? {
            return Ok(None);
        }
        self.owners.insert(server_id, caller.user_id);
        Ok(role(caller, caller.user_id).map(|role| (caller.user_id, role)))
    }
}

/// The caller's role for a server of this owner; `None` if the caller may not know of it.
fn role(caller: &Caller, owner_id: Uuid) -> Option<Role> {
    (caller.user_id == owner_id).then_some(Role::Owner)
}

fn allows(role: Role, action: Action) -> bool {
    match (role, action) {
        (Role::Owner, Action::Read | Action::Operate | Action::Manage) => true,
    }
}
