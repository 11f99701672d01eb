//! Invitations to make an account. Each works once: registering deletes it in the transaction that makes the account.

use entity::{Millis, invitation, user};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect,
};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::accounts::{expect_administrator, lock_administrators};
use super::audit_log::record_in;
use super::{Invitation, InvitedGrant, Page, PageRequest, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// Open invitations of the whole service: more than a team sends at once, and few enough to look through.
pub const MAX_INVITATIONS: u64 = 100;

/// An invitation to insert.
#[derive(Debug, Clone)]
pub struct NewInvitation {
    /// The administrator who invites; none for the operator on the command line.
    pub owner_id: Option<Uuid>,
    /// SHA-256 of the token.
    pub digest: Vec<u8>,
    /// The only address that may register with it.
    pub email: Option<String>,
    /// The grants that the new account gets.
    pub grants: Vec<InvitedGrant>,
    /// The present time.
    pub now: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// An open invitation, and who invites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenInvitation {
    /// The row.
    pub invitation: Invitation,
    /// The name of the administrator who invites; none for the operator on the command line.
    pub invited_by: Option<String>,
}

impl Store {
    /// Inserts an invitation.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooManyInvitations`] when [`MAX_INVITATIONS`] are open, and [`StoreError::NotAdministrator`] when the actor
    /// is none any more.
    pub async fn create_invitation(&self, new: NewInvitation, actor: Actor) -> Result<Invitation, StoreError> {
        let grants = InvitedGrant::stored(&new.grants);
        let row = Invitation {
            id: Uuid::now_v7(),
            owner_id: new.owner_id,
            digest: new.digest,
            email: new.email,
            grants: grants.to_string(),
            created_at: new.now.into(),
            expires_at: new.expires_at.into(),
        };
        let detail = json!({ "email": row.email, "expires_at": new.expires_at, "grants": grants });
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // One at a time, so that several cannot exceed the limit together.
            lock_administrators(&transaction).await?;
            expect_administrator(&transaction, &actor).await?;
            let expired = invitation::Column::ExpiresAt.lte(row.created_at);
            invitation::Entity::delete_many().filter(expired).exec(&transaction).await?;
            if invitation::Entity::find().count(&transaction).await? >= MAX_INVITATIONS {
                return Err(StoreError::TooManyInvitations);
            }
            let new = row.clone().into_active_model().reset_all();
            invitation::Entity::insert(new).exec_without_returning(&transaction).await?;
            let entry = entry(action::INVITATION_CREATE, &row, actor.clone());
            record_in(&transaction, entry.detail(detail.clone())).await?;
            transaction.commit().await?;
            Ok(row.clone())
        })
        .await
    }

    /// Lists the invitations that are open at this time, newest first.
    pub async fn list_invitations(
        &self,
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Page<OpenInvitation>, StoreError> {
        let query = invitation::Entity::find().filter(invitation::Column::ExpiresAt.gt(Millis::from(now)));
        let total = query.clone().count(&self.read).await?;
        let rows =
            query.order_by_desc(invitation::Column::Id).limit(page.limit).offset(page.offset).all(&self.read).await?;
        let inviters: Vec<(Uuid, String)> = user::Entity::find()
            .select_only()
            .columns([user::Column::Id, user::Column::Username])
            .filter(user::Column::Id.is_in(rows.iter().filter_map(|row| row.owner_id)))
            .into_tuple()
            .all(&self.read)
            .await?;
        let name = |row: &Invitation| inviters.iter().find(|(id, _)| Some(*id) == row.owner_id);
        let open = |invitation: Invitation| OpenInvitation {
            invited_by: name(&invitation).map(|(_, name)| name.clone()),
            invitation,
        };
        Ok(Page { items: rows.into_iter().map(open).collect(), total })
    }

    /// Ends an invitation, also one that has expired. Returns whether it still existed.
    pub async fn delete_invitation(&self, id: Uuid, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let found = invitation::Entity::find_by_id(id).lock_exclusive().one(&transaction).await?;
            let Some(row) = found else { return Ok(false) };
            if invitation::Entity::delete_by_id(id).exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            let entry = entry(action::INVITATION_REVOKE, &row, actor.clone());
            record_in(&transaction, entry.detail(json!({ "email": row.email }))).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Whether an invitation lets this address register at this time. Registering checks it again.
    pub async fn admits(&self, digest: &[u8], email: &str, now: Timestamp) -> Result<bool, StoreError> {
        let found = invitation::Entity::find().filter(usable(digest, now)).one(&self.read).await?;
        Ok(found.is_some_and(|row| is_for(&row, email)))
    }
}

/// Uses an invitation up. Of several registrations with the same one, one gets past this.
pub(super) async fn redeem(
    transaction: &impl ConnectionTrait,
    digest: &[u8],
    email: &str,
    now: Timestamp,
) -> Result<Invitation, StoreError> {
    let found = invitation::Entity::find().filter(usable(digest, now)).lock_exclusive().one(transaction).await?;
    let row = found.filter(|row| is_for(row, email)).ok_or(StoreError::InvitationInvalid)?;
    let used = invitation::Entity::delete_by_id(row.id).exec(transaction).await?;
    if used.rows_affected == 1 { Ok(row) } else { Err(StoreError::InvitationInvalid) }
}

fn usable(digest: &[u8], now: Timestamp) -> Condition {
    Condition::all().add(invitation::Column::Digest.eq(digest)).add(invitation::Column::ExpiresAt.gt(Millis::from(now)))
}

fn is_for(row: &Invitation, email: &str) -> bool {
    row.email.as_ref().is_none_or(|only| only.to_lowercase() == email.to_lowercase())
}

/// The operator has no account that could read the entry, so it concerns nobody's: administrators see it among all.
fn entry(action: &'static str, row: &Invitation, actor: Actor) -> Entry {
    Entry::new(action, row.owner_id.unwrap_or_default(), actor).target(row.id)
}
