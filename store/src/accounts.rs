//! What administrators do to accounts: list, change and delete them.
//!
//! Every transaction that may take away an administrator first locks the row that makes the first account the administrator.
//! So of two administrators who demote each other at the same moment, one remains.

use std::collections::{HashMap, HashSet};

use entity::{
    Millis, approval, claim, command_batch, grant, invitation, login, notification_channel, passkey, schedule, server,
    team_member, totp, user,
};
use sea_orm::sea_query::{Expr, ExprTrait, Func, LikeExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::enrolments::end_enrolments;
use super::grants::entries_of_ended;
use super::program_tokens::end_tokens;
use super::server_filter::escape_like;
use super::transfer::{delete_user, move_servers, owns_servers};
use super::users::ADMINISTRATOR;
use super::{Page, PageRequest, Store, StoreError, User};
use crate::audit::{Actor, Entry, action};

/// An account, as administrators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: User,
    /// How many servers they own.
    pub servers: u64,
    /// How many sessions they have.
    pub sessions: u64,
    /// Whether they have set up an authenticator app.
    pub totp: bool,
    /// How many passkeys they have.
    pub passkeys: u64,
}

/// What an administrator changes of an account; `None` leaves a field unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountPatch {
    /// Whether the user is an administrator.
    pub is_admin: Option<bool>,
    /// Whether the account is disabled.
    pub is_disabled: Option<bool>,
}

/// An account to delete.
#[derive(Debug, Clone, Copy)]
pub struct AccountDeletion<'a> {
    /// The user.
    pub user_id: Uuid,
    /// The account that gets the servers.
    pub servers_to: Option<Uuid>,
    /// If given, it must still be the hash of the user's password.
    pub verified_hash: Option<&'a str>,
    /// The present time.
    pub now: Timestamp,
}

/// What has ended with an account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedAccount {
    /// Batches that had not ended.
    pub batches: Vec<Uuid>,
    /// Whether the account is gone. If not, its history is too long for one transaction: it is disabled, and
    /// [`Store::finish_deletion`] deletes it.
    pub is_gone: bool,
}

impl Store {
    /// Lists accounts whose names or address contain `text`, newest first.
    pub async fn list_accounts(
        &self,
        text: Option<String>,
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Page<Account>, StoreError> {
        let query = user::Entity::find().filter(Condition::all().add_option(text.map(|text| contains(&text))));
        let total = query.clone().count(&self.read).await?;
        let users = query.order_by_desc(user::Column::Id).limit(page.limit).offset(page.offset).all(&self.read).await?;
        self.accounts_of(users, now).await.map(|items| Page { items, total })
    }

    /// An account.
    pub async fn find_account(&self, id: Uuid, now: Timestamp) -> Result<Option<Account>, StoreError> {
        let users = user::Entity::find_by_id(id).all(&self.read).await?;
        Ok(self.accounts_of(users, now).await?.pop())
    }

    async fn accounts_of(&self, users: Vec<User>, now: Timestamp) -> Result<Vec<Account>, StoreError> {
        let ids = || users.iter().map(|user| user.id);
        let servers = server::Entity::find()
            .select_only()
            .column(server::Column::OwnerId)
            .column_as(server::Column::Id.count(), "number")
            .filter(server::Column::OwnerId.is_in(ids()))
            .group_by(server::Column::OwnerId);
        let servers: HashMap<Uuid, i64> = servers.into_tuple().all(&self.read).await?.into_iter().collect();
        let sessions = login::Entity::find()
            .select_only()
            .column(login::Column::UserId)
            .column_as(login::Column::Id.count(), "number")
            .filter(login::Column::UserId.is_in(ids()))
            .filter(login::Column::ExpiresAt.gt(Millis::from(now)))
            .group_by(login::Column::UserId);
        let sessions: HashMap<Uuid, i64> = sessions.into_tuple().all(&self.read).await?.into_iter().collect();
        let passkeys = passkey::Entity::find()
            .select_only()
            .column(passkey::Column::UserId)
            .column_as(passkey::Column::Id.count(), "number")
            .filter(passkey::Column::UserId.is_in(ids()))
            .group_by(passkey::Column::UserId);
        let passkeys: HashMap<Uuid, i64> = passkeys.into_tuple().all(&self.read).await?.into_iter().collect();
        let totp = totp::Entity::find()
            .select_only()
            .column(totp::Column::UserId)
            .filter(totp::Column::UserId.is_in(ids()))
            .filter(totp::Column::ConfirmedAt.is_not_null());
        let totp: HashSet<Uuid> = totp.into_tuple().all(&self.read).await?.into_iter().collect();
        let number = |of: &HashMap<Uuid, i64>, id: Uuid| of.get(&id).copied().unwrap_or_default().unsigned_abs();
        let account = |user: User| Account {
            servers: number(&servers, user.id),
            sessions: number(&sessions, user.id),
            totp: totp.contains(&user.id),
            passkeys: number(&passkeys, user.id),
            user,
        };
        Ok(users.into_iter().map(account).collect())
    }

    /// Changes an account. Disabling it ends its logins, and the invitations of a former administrator end, too. None when there
    /// is no such user.
    ///
    /// # Errors
    ///
    /// [`StoreError::LastAdministrator`] when no enabled administrator would remain, and [`StoreError::NotAdministrator`] when
    /// the actor is none any more.
    pub async fn change_account(
        &self,
        id: Uuid,
        patch: AccountPatch,
        actor: Actor,
    ) -> Result<Option<User>, StoreError> {
        let now = Millis::from(Timestamp::now());
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock_administrators(&transaction).await?;
            expect_administrator(&transaction, &actor).await?;
            let Some(old) = user::Entity::find_by_id(id).lock_exclusive().one(&transaction).await? else {
                return Ok(None);
            };
            let new = patched(&old, patch, now);
            if new == old {
                return Ok(Some(new));
            }
            if administers(&old) && !administers(&new) {
                expect_another_administrator(&transaction, &old).await?;
                end_invitations(&transaction, id).await?;
            }
            user::Entity::update_many()
                .col_expr(user::Column::IsAdmin, Expr::value(new.is_admin))
                .col_expr(user::Column::DisabledAt, Expr::value(new.disabled_at.map(|Millis(at)| at)))
                .col_expr(user::Column::UpdatedAt, now.into())
                .filter(user::Column::Id.eq(id))
                .exec(&transaction)
                .await?;
            if new.disabled_at.is_some() {
                end_sign_ins(&transaction, id).await?;
            }
            for action in actions(&old, &new) {
                let entry = Entry::new(action, id, actor.clone()).target(id);
                record_in(&transaction, entry.detail(json!({ "username": old.username }))).await?;
            }
            transaction.commit().await?;
            Ok(Some(new))
        })
        .await
    }

    /// Deletes an account with everything that belongs to the account itself: logins, thresholds for tags and for all servers,
    /// silences, channels, views and batches. Its servers go to another account. One with a long history stays for now, but can do
    /// nothing ([`DeletedAccount::is_gone`]). None when there is no such user, or the password has changed.
    ///
    /// # Errors
    ///
    /// [`StoreError::LastAdministrator`] when no enabled administrator would remain, [`StoreError::OwnsServers`] when it has
    /// servers and nobody gets them, [`StoreError::NoRecipient`] when the account that should get them does not exist, and
    /// [`StoreError::NotAdministrator`] when the actor deletes another's account and is no administrator any more.
    pub async fn delete_account(
        &self,
        deletion: AccountDeletion<'_>,
        actor: Actor,
    ) -> Result<Option<DeletedAccount>, StoreError> {
        let AccountDeletion { user_id, servers_to, verified_hash, now } = deletion;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock_administrators(&transaction).await?;
            if actor.user_id != Some(user_id) {
                expect_administrator(&transaction, &actor).await?;
            }
            let mut both = lock_users(&transaction, [Some(user_id), servers_to]).await?;
            let Some(gone) = both.remove(&user_id) else { return Ok(None) };
            if verified_hash.is_some_and(|hash| hash != gone.password_hash) {
                return Ok(None);
            }
            let recipient = match servers_to {
                Some(id) => Some(both.remove(&id).ok_or(StoreError::NoRecipient)?),
                None => None,
            };
            if administers(&gone) {
                expect_another_administrator(&transaction, &gone).await?;
            }
            let batches = end_batches(&transaction, user_id).await?;
            let ended = entries_of_ended(&transaction, ends_with(user_id, servers_to), &actor).await?;
            let moved = match &recipient {
                Some(recipient) => move_servers(&transaction, &gone, recipient, now).await?,
                None if owns_servers(&transaction, user_id).await? => return Err(StoreError::OwnsServers),
                None => Vec::new(),
            };
            let is_gone = delete_user(&transaction, user_id).await?;
            if !is_gone {
                retire(&transaction, user_id, servers_to, now).await?;
            }
            let detail = json!({
                "username": gone.username, "email": gone.email, "servers": moved.len(), "servers_to": servers_to,
                "batches": batches,
            });
            for (server_id, name) in moved {
                let entry = Entry::new(action::SERVER_TRANSFER, servers_to.unwrap_or(user_id), actor.clone());
                let to = recipient.as_ref().map(|recipient| &recipient.username);
                let detail = json!({ "from": gone.username, "to": to });
                record_in(&transaction, entry.on_server_named(server_id, name).detail(detail)).await?;
            }
            for entry in ended {
                record_in(&transaction, entry).await?;
            }
            let entry = Entry::new(action::USER_DELETE, user_id, actor.clone()).target(user_id);
            record_in(&transaction, entry.detail(detail)).await?;
            transaction.commit().await?;
            Ok(Some(DeletedAccount { batches, is_gone }))
        })
        .await
    }
}

/// The grants that end with an account: those that are for it, and those that it gave, but for those on servers that somebody else
/// gets now, who needs none there.
fn ends_with(user_id: Uuid, servers_to: Option<Uuid>) -> Condition {
    use grant::Column;
    let given = Condition::any()
        .add(Column::ServerId.is_null())
        .add_option(servers_to.map(|recipient| Column::SubjectUserId.eq(recipient)));
    let given = Condition::all().add(Column::OwnerId.eq(user_id)).add(given);
    Condition::any().add(Column::SubjectUserId.eq(user_id)).add(given)
}

/// Ends what an account could still do, or would do by itself, while the rest of its history is worked off.
async fn retire(
    transaction: &impl ConnectionTrait,
    user_id: Uuid,
    servers_to: Option<Uuid>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let now = Millis::from(now);
    user::Entity::update_many()
        .col_expr(user::Column::DisabledAt, now.into())
        .col_expr(user::Column::UpdatedAt, now.into())
        .filter(user::Column::Id.eq(user_id))
        .filter(user::Column::DisabledAt.is_null())
        .exec(transaction)
        .await?;
    end_sign_ins(transaction, user_id).await?;
    end_invitations(transaction, user_id).await?;
    grant::Entity::delete_many().filter(ends_with(user_id, servers_to)).exec(transaction).await?;
    team_member::Entity::delete_many().filter(team_member::Column::UserId.eq(user_id)).exec(transaction).await?;
    schedule::Entity::delete_many().filter(schedule::Column::OwnerId.eq(user_id)).exec(transaction).await?;
    approval::Entity::delete_many().filter(approval::Column::UserId.eq(user_id)).exec(transaction).await?;
    // Deleting them would delete all their notifications at once.
    notification_channel::Entity::update_many()
        .col_expr(notification_channel::Column::IsEnabled, Expr::value(false))
        .filter(notification_channel::Column::OwnerId.eq(user_id))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Names and addresses are compared in lower case.
fn contains(text: &str) -> Condition {
    let pattern = || LikeExpr::new(format!("%{}%", escape_like(&text.to_lowercase()))).escape('\\');
    Condition::any()
        .add(user::Column::UsernameKey.like(pattern()))
        .add(user::Column::EmailKey.like(pattern()))
        .add(Expr::expr(Func::lower(Expr::col(user::Column::FullName))).like(pattern()))
}

fn patched(old: &User, patch: AccountPatch, now: Millis) -> User {
    let disabled_at = match patch.is_disabled {
        None => old.disabled_at,
        Some(true) => old.disabled_at.or(Some(now)),
        Some(false) => None,
    };
    let new = User { is_admin: patch.is_admin.unwrap_or(old.is_admin), disabled_at, ..old.clone() };
    if new == *old { new } else { User { updated_at: now, ..new } }
}

/// Whether the user can act as an administrator.
fn administers(user: &User) -> bool {
    user.is_admin && user.disabled_at.is_none()
}

/// The actions of the audit log that lead from `old` to `new`.
fn actions(old: &User, new: &User) -> impl Iterator<Item = &'static str> {
    let role = match (old.is_admin, new.is_admin) {
        (false, true) => Some(action::USER_PROMOTE),
        (true, false) => Some(action::USER_DEMOTE),
        (true, true) | (false, false) => None,
    };
    let state = match (old.disabled_at, new.disabled_at) {
        (None, Some(_)) => Some(action::USER_DISABLE),
        (Some(_), None) => Some(action::USER_ENABLE),
        (None, None) | (Some(_), Some(_)) => None,
    };
    role.into_iter().chain(state)
}

/// Serialises transactions that may take away an administrator. SQLite has one writer and needs no lock.
pub(super) async fn lock_administrators(transaction: &impl ConnectionTrait) -> Result<(), StoreError> {
    claim::Entity::find_by_id(ADMINISTRATOR.to_owned()).lock_exclusive().one(transaction).await?;
    Ok(())
}

/// Checks, under the lock, whether a user who acts is still an administrator: between the check of the request and this
/// transaction somebody may have disabled or demoted them, here or on another instance. An operator on the machine needs no account.
pub(super) async fn expect_administrator(transaction: &impl ConnectionTrait, actor: &Actor) -> Result<(), StoreError> {
    let Some(user_id) = actor.user_id else { return Ok(()) };
    let found = user::Entity::find_by_id(user_id).one(transaction).await?;
    if found.as_ref().is_some_and(administers) { Ok(()) } else { Err(StoreError::NotAdministrator) }
}

/// Somebody can administer the service without this administrator. Where they have a password, another one with a password: an
/// administrator of the identity provider cannot sign in while that is away.
async fn expect_another_administrator(transaction: &impl ConnectionTrait, than: &User) -> Result<(), StoreError> {
    let with_password = (!than.password_hash.is_empty()).then(|| user::Column::PasswordHash.ne(""));
    let others = user::Entity::find()
        .filter(user::Column::IsAdmin.eq(true))
        .filter(user::Column::DisabledAt.is_null())
        .filter(user::Column::Id.ne(than.id))
        .filter(Condition::all().add_option(with_password));
    if others.count(transaction).await? > 0 { Ok(()) } else { Err(StoreError::LastAdministrator) }
}

/// Ends the sessions of a user, and what programs and machines sign in with.
async fn end_sign_ins(transaction: &impl ConnectionTrait, user_id: Uuid) -> Result<(), StoreError> {
    login::Entity::delete_many().filter(login::Column::UserId.eq(user_id)).exec(transaction).await?;
    end_tokens(transaction, user_id).await?;
    end_enrolments(transaction, user_id).await
}

/// Invitations of an administrator who is none any more could let anybody in.
async fn end_invitations(transaction: &impl ConnectionTrait, owner_id: Uuid) -> Result<(), StoreError> {
    invitation::Entity::delete_many().filter(invitation::Column::OwnerId.eq(owner_id)).exec(transaction).await?;
    Ok(())
}

/// Locks these users in the order of their ids.
async fn lock_users(
    transaction: &impl ConnectionTrait,
    ids: [Option<Uuid>; 2],
) -> Result<HashMap<Uuid, User>, StoreError> {
    let query = user::Entity::find().filter(user::Column::Id.is_in(ids.into_iter().flatten()));
    let users = query.order_by_asc(user::Column::Id).lock_exclusive().all(transaction).await?;
    Ok(users.into_iter().map(|user| (user.id, user)).collect())
}

/// Ends the batches of an account: what waits in them never runs. Returns those that had not ended.
async fn end_batches(transaction: &impl ConnectionTrait, owner_id: Uuid) -> Result<Vec<Uuid>, StoreError> {
    use entity::command;
    let batches = || command_batch::Entity::find().select_only().column(command_batch::Column::Id);
    let own = || batches().filter(command_batch::Column::OwnerId.eq(owner_id));
    let unfinished = own().filter(command_batch::Column::FinishedAt.is_null());
    let unfinished: Vec<Uuid> = unfinished.into_tuple().all(transaction).await?;
    let in_these = command::Column::BatchId.in_subquery(sea_orm::QueryTrait::into_query(own()));
    command::Entity::update_many()
        .col_expr(command::Column::Status, Expr::value("cancelled"))
        .col_expr(command::Column::Stdin, Expr::value(None::<String>))
        .col_expr(command::Column::FinishedAt, Millis::from(Timestamp::now()).into())
        .filter(in_these)
        .filter(command::Column::Status.eq("queued"))
        .exec(transaction)
        .await?;
    Ok(unfinished)
}
