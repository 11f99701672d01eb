//! The grants that an invitation has for the account that it makes.

use entity::server;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::roles::StoredRole;
use super::{Grant, GrantScope, GrantSubject, Invitation, Quota, Rights, Role, Store, StoreError, User};
use crate::audit::{Actor, Entry, action};

/// What an invitation grants on the servers of the administrator who invites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitedGrant {
    /// To which servers.
    pub scope: GrantScope,
    /// Up to which role.
    pub role: Role,
    /// The rights of an operator.
    pub rights: Rights,
}

/// A grant, as an invitation stores it.
#[derive(Debug, Serialize, Deserialize)]
struct StoredGrant {
    scope: StoredScope,
    #[serde(flatten)]
    role: StoredRole,
}

/// Which servers: one of the fields.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredScope {
    #[serde(skip_serializing_if = "Option::is_none")]
    server_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    all: bool,
}

impl StoredGrant {
    /// None for a grant that only a later version understands: it grants nothing.
    fn read(self) -> Option<InvitedGrant> {
        let scope = match (self.scope.server_id, self.scope.tag, self.scope.all) {
            (Some(id), None, false) => GrantScope::Server(id),
            (None, Some(tag), false) => GrantScope::Tag(tag),
            (None, None, true) => GrantScope::All,
            _ => return None,
        };
        let (role, rights) = self.role.read()?;
        Some(InvitedGrant { scope, role, rights })
    }
}

impl InvitedGrant {
    /// The grants that an invitation stores.
    pub fn all_of(stored: &str) -> Vec<Self> {
        // Malformed only if someone changed the table outside of the service.
        let all: Vec<StoredGrant> = serde_json::from_str(stored).unwrap_or_default();
        all.into_iter().filter_map(StoredGrant::read).collect()
    }

    /// The form in which an invitation stores them.
    pub(super) fn stored(all: &[Self]) -> Value {
        let form = |grant: &Self| StoredGrant {
            scope: match &grant.scope {
                GrantScope::Server(id) => StoredScope { server_id: Some(*id), ..StoredScope::default() },
                GrantScope::Tag(tag) => StoredScope { tag: Some(tag.clone()), ..StoredScope::default() },
                GrantScope::All => StoredScope { all: true, ..StoredScope::default() },
            },
            role: StoredRole::new(grant.role, grant.rights),
        };
        json!(all.iter().map(form).collect::<Vec<_>>())
    }

    fn for_user(self, owner_id: Uuid, user_id: Uuid) -> Grant {
        Grant {
            id: Uuid::now_v7(),
            owner_id,
            giver_id: Some(owner_id),
            subject: GrantSubject::User(user_id),
            scope: self.scope,
            role: self.role,
            rights: self.rights,
            created_at: Timestamp::now(),
        }
    }
}

impl Store {
    /// Inserts the grants of an invitation for its new account. Left out is what its giver cannot give any more: a server that is no
    /// longer theirs, and grants beyond their quota. Registering does not fail because of that.
    /// Returns the entries, which the caller appends at the end: this may wait for the giver.
    pub(super) async fn give_invited(
        &self,
        transaction: &impl ConnectionTrait,
        invitation: &Invitation,
        user: &User,
        actor: &Actor,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        let Some(owner_id) = invitation.owner_id else { return Ok(entries) };
        let invited = InvitedGrant::all_of(&invitation.grants).into_iter();
        for grant in invited.map(|invited| invited.for_user(owner_id, user.id)) {
            if let GrantScope::Server(id) = grant.scope
                && !is_owned(transaction, owner_id, id).await?
            {
                continue;
            }
            match self.expect_room(transaction, owner_id, Quota::Grants).await {
                Ok(()) => {}
                Err(StoreError::QuotaExceeded { .. }) => {
                    tracing::warn!(user.id = %owner_id, "an invitation has more grants than the quota of its giver allows");
                    return Ok(entries);
                }
                Err(error) => return Err(error),
            }
            grant.insert(transaction).await?;
            let subject = json!({ "user": user.username, "user_id": user.id });
            entries.push(grant.entry(action::GRANT_CREATE, subject, actor.clone()));
        }
        Ok(entries)
    }
}

async fn is_owned(transaction: &impl ConnectionTrait, owner_id: Uuid, server_id: Uuid) -> Result<bool, StoreError> {
    let own = server::Entity::find_by_id(server_id).filter(server::Column::OwnerId.eq(owner_id));
    Ok(own.lock_shared().one(transaction).await?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Right;

    #[test]
    fn grants_are_read_as_they_were_stored() {
        let rights: Rights = [Right::Logs, Right::Commands].into_iter().collect();
        let all = [
            InvitedGrant { scope: GrantScope::Server(Uuid::from_u128(1)), role: Role::Viewer, rights: Rights::NONE },
            InvitedGrant { scope: GrantScope::Tag("db".to_owned()), role: Role::Operator, rights },
            InvitedGrant { scope: GrantScope::All, role: Role::Manager, rights: Rights::NONE },
        ];

        let stored = InvitedGrant::stored(&all);

        let text = concat!(
            r#"[{"rights":[],"role":"viewer","scope":{"server_id":"00000000-0000-0000-0000-000000000001"}},"#,
            r#"{"rights":["commands","logs"],"role":"operator","scope":{"tag":"db"}},"#,
            r#"{"rights":[],"role":"manager","scope":{"all":true}}]"#,
        );
        assert_eq!(stored.to_string(), text);
        assert_eq!(InvitedGrant::all_of(text), all);
    }

    #[test]
    fn a_grant_that_is_not_understood_grants_nothing() {
        let strange = json!([
            {"scope": {"tag": "db"}, "role": "owner"},
            {"scope": {"tag": "db", "all": true}, "role": "viewer"},
            {"scope": {}, "role": "viewer"},
        ]);

        assert_eq!(InvitedGrant::all_of(&strange.to_string()), []);
        assert_eq!(InvitedGrant::all_of("?"), []);
    }
}
