//! The one place that decides who may do what to which server, for REST and WebSockets alike.
//!
//! Today a server has one role, its owner. Sharing adds roles in [`role`] and lines in [`allows`]; nothing else asks.

use std::sync::Arc;

use dashmap::DashMap;
use uuid::Uuid;

use crate::store::{Caller, Store, StoreError};

/// What somebody wants to do to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// See the record, metrics, logs and alerts.
    Read,
    /// Run commands, control containers, handle alerts.
    Operate,
    /// Change or delete the record, make and revoke keys.
    Manage,
}

/// What somebody is to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Owner,
}

/// Proof that a caller may do what they asked to do to this server. Only [`Access::server`] makes one.
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
    /// Does not exist, or is somebody else's: the two must look the same.
    #[error("no such server")]
    NotFound,
    /// The caller may see it, but not do this.
    #[error("not allowed")]
    Forbidden,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Decides, mostly without the database: a server's owner never changes.
#[derive(Clone)]
pub struct Access {
    store: Store,
    owners: Arc<DashMap<Uuid, Uuid>>,
}

impl Access {
    pub fn new(store: Store) -> Self {
        Self { store, owners: Arc::default() }
    }

    /// May this caller do this to this server?
    pub async fn server(&self, caller: &Caller, server_id: Uuid, action: Action) -> Result<ServerAccess, AccessError> {
        let (owner_id, role) = self.role(caller, server_id).await?.ok_or(AccessError::NotFound)?;
        if allows(role, action) { Ok(ServerAccess { server_id, owner_id }) } else { Err(AccessError::Forbidden) }
    }

    /// Forgets a server that was deleted.
    pub fn forget(&self, server_id: Uuid) {
        self.owners.remove(&server_id);
    }

    /// What the caller is to a server, and whose it is; none when it is not theirs to know of. What is remembered of
    /// others is not used: an answer that came faster would say that there is such a server.
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

/// What the caller is to a server of this owner; none when it is not theirs to know of.
fn role(caller: &Caller, owner_id: Uuid) -> Option<Role> {
    (caller.user_id == owner_id).then_some(Role::Owner)
}

fn allows(role: Role, action: Action) -> bool {
    match (role, action) {
        (Role::Owner, Action::Read | Action::Operate | Action::Manage) => true,
    }
}
