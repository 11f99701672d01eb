//! The grants that an invitation has for the account that it makes.

use entity::{grant, server};
use sea_orm::{ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect};
use serde::Deserialize;
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::{Grant, GrantScope, GrantSubject, Invitation, Quota, Right, Rights, Role, Store, StoreError, User};
use crate::audit::{Actor, action};

/// A grant, as an invitation stores it.
#[derive(Debug, Deserialize)]
struct InvitedGrant {
    scope: InvitedScope,
    role: String,
    #[serde(default)]
    rights: Vec<String>,
}

/// Which of the inviting administrator's servers: one of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InvitedScope {
    server_id: Option<Uuid>,
    tag: Option<String>,
    all: bool,
}

impl InvitedGrant {
    /// None for a grant that only a later version understands: it grants nothing.
    fn for_user(self, owner_id: Uuid, user_id: Uuid) -> Option<Grant> {
        let scope = match (self.scope.server_id, self.scope.tag, self.scope.all) {
            (Some(id), None, false) => GrantScope::Server(id),
            (None, Some(tag), false) => GrantScope::Tag(tag),
            (None, None, true) => GrantScope::All,
            _ => return None,
        };
        let role = Role::of_word(&self.role).filter(|role| Role::GRANTED.contains(role))?;
        let rights: Rights = self.rights.iter().filter_map(|word| Right::of_word(word)).collect();
        Some(Grant {
            id: Uuid::now_v7(),
            owner_id,
            giver_id: Some(owner_id),
            subject: GrantSubject::User(user_id),
            scope,
            role,
            rights,
            created_at: Timestamp::now(),
        })
    }
}

impl Store {
    /// Inserts the grants of an invitation for its new account. Left out is what its giver cannot give any more: a server that is no
    /// longer theirs, and grants beyond their quota. Registering does not fail because of that.
    pub(super) async fn give_invited(
        &self,
        transaction: &impl ConnectionTrait,
        invitation: &Invitation,
        user: &User,
        actor: &Actor,
    ) -> Result<(), StoreError> {
        let Some(owner_id) = invitation.owner_id else { return Ok(()) };
        // Malformed only if someone changed the table outside of the service.
        let invited: Vec<InvitedGrant> = serde_json::from_str(&invitation.grants).unwrap_or_default();
        for grant in invited.into_iter().filter_map(|invited| invited.for_user(owner_id, user.id)) {
            if let GrantScope::Server(id) = grant.scope
                && !is_owned(transaction, owner_id, id).await?
            {
                continue;
            }
            match self.expect_room(transaction, owner_id, Quota::Grants).await {
                Ok(()) => {}
                Err(StoreError::QuotaExceeded { .. }) => {
                    tracing::warn!(user.id = %owner_id, "an invitation has more grants than the quota of its giver allows");
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            let row = grant.row().into_active_model().reset_all();
            grant::Entity::insert(row).exec_without_returning(transaction).await?;
            let subject = json!({ "user": user.username, "user_id": user.id });
            record_in(transaction, grant.entry(action::GRANT_CREATE, subject, actor.clone())).await?;
        }
        Ok(())
    }
}

async fn is_owned(transaction: &impl ConnectionTrait, owner_id: Uuid, server_id: Uuid) -> Result<bool, StoreError> {
    let own = server::Entity::find_by_id(server_id).filter(server::Column::OwnerId.eq(owner_id));
    Ok(own.lock_shared().one(transaction).await?.is_some())
}
