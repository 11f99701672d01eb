//! Moves all servers of an account to another one, with everything that belongs to a server.
//!
//! Keys, tags, events and history name only the server, so they need no change. Triggers move the counters of alerts with their
//! alerts. What belongs to the account stays there: thresholds for tags and for all servers, silences, channels, views.
//!
//! Alerts, commands, batches and notifications can be too many for one transaction. The one that moves the servers takes all
//! alerts along that may still change, and some of the rest. What is left of it follows in transactions of its own, and the
//! account last ([`Store::finish_deletion`]).

use entity::{Millis, alert, alert_threshold, command, command_batch, grant, notification, server, user};
use sea_orm::sea_query::{Expr, IntoCondition};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::silences::look_again;
use super::{Store, StoreError, User};

/// Rows of a table that one transaction moves or deletes, so that other writers get their turn.
const AT_ONCE: u64 = 500;

impl Store {
    /// Ends the deletion of an account whose history was too long for the transaction that moved its servers, in several
    /// transactions, so that others may write in between. After an interruption it may be repeated.
    ///
    /// # Errors
    ///
    /// [`StoreError::OwnsServers`] when the account has got a server in the meantime, and [`StoreError::EnabledAgain`] when
    /// somebody has enabled it.
    pub async fn finish_deletion(&self, user_id: Uuid) -> Result<(), StoreError> {
        while !self.retried(|| self.continue_deletion(user_id)).await? {}
        Ok(())
    }

    /// Returns whether the account is gone.
    async fn continue_deletion(&self, user_id: Uuid) -> Result<bool, StoreError> {
        let transaction = self.write.begin().await?;
        // Locked, so that nothing is added to the account.
        let found = user::Entity::find_by_id(user_id).lock_exclusive().one(&transaction).await?;
        // Another request may have deleted it by now.
        let Some(user) = found else { return Ok(true) };
        if owns_servers(&transaction, user_id).await? {
            return Err(StoreError::OwnsServers);
        }
        // It may be signed in, or be the last administrator.
        if user.disabled_at.is_none() {
            return Err(StoreError::EnabledAgain);
        }
        let is_gone = delete_user(&transaction, user_id).await?;
        transaction.commit().await?;
        Ok(is_gone)
    }
}

/// Moves the servers of `from` to `to`, whose rows are locked. Returns the ids and names of the servers.
pub(super) async fn move_servers(
    transaction: &impl ConnectionTrait,
    from: &User,
    to: &User,
    now: Timestamp,
) -> Result<Vec<(Uuid, String)>, StoreError> {
    let now = Millis::from(now);
    // Locked before their alerts, like everywhere. Who writes an alert has a lock on its server, so none is written in between.
    let servers: Vec<(Uuid, String)> = server::Entity::find()
        .select_only()
        .columns([server::Column::Id, server::Column::Name])
        .filter(server::Column::OwnerId.eq(from.id))
        .order_by_asc(server::Column::Id)
        .lock_exclusive()
        .into_tuple()
        .all(transaction)
        .await?;
    server::Entity::update_many()
        .col_expr(server::Column::OwnerId, Expr::value(to.id))
        .col_expr(server::Column::UpdatedAt, now.into())
        .filter(server::Column::OwnerId.eq(from.id))
        .exec(transaction)
        .await?;
    alert_threshold::Entity::update_many()
        .col_expr(alert_threshold::Column::OwnerId, Expr::value(to.id))
        .filter(alert_threshold::Column::OwnerId.eq(from.id))
        .filter(alert_threshold::Column::ServerId.is_not_null())
        .exec(transaction)
        .await?;
    // Those that may still change: few, however many there were.
    alert::Entity::update_many()
        .col_expr(alert::Column::OwnerId, Expr::value(to.id))
        .filter(alert::Column::OwnerId.eq(from.id))
        .filter(alert::Column::RearmedAt.is_null())
        .exec(transaction)
        .await?;
    // Grants on one server stay with it. Its new owner needs none; those for tags and for all servers end with the account.
    grant::Entity::delete_many()
        .filter(grant::Column::OwnerId.eq(from.id))
        .filter(grant::Column::ServerId.is_not_null())
        .filter(grant::Column::SubjectUserId.eq(to.id))
        .exec(transaction)
        .await?;
    grant::Entity::update_many()
        .col_expr(grant::Column::OwnerId, Expr::value(to.id))
        .filter(grant::Column::OwnerId.eq(from.id))
        .filter(grant::Column::ServerId.is_not_null())
        .exec(transaction)
        .await?;
    // The silences for which some of the alerts waited end with the account.
    look_again(transaction, to.id, now).await?;
    Ok(servers)
}

/// Whether an account has any server.
pub(super) async fn owns_servers(transaction: &impl ConnectionTrait, owner_id: Uuid) -> Result<bool, StoreError> {
    let owned = server::Entity::find().filter(server::Column::OwnerId.eq(owner_id)).select_only();
    Ok(owned.column(server::Column::Id).into_tuple::<Uuid>().one(transaction).await?.is_some())
}

/// Deletes a user who has no servers any more, unless there is too much history for one transaction; then it is shorter
/// afterwards. Returns whether the user is gone.
pub(super) async fn delete_user(transaction: &impl ConnectionTrait, user_id: Uuid) -> Result<bool, StoreError> {
    if shorten_history(transaction, user_id).await? {
        return Ok(false);
    }
    // Foreign keys delete the rest.
    user::Entity::delete_by_id(user_id).exec(transaction).await?;
    Ok(true)
}

/// Works off some of the history of a user without servers: alerts and commands go to the owners of their servers, commands
/// leave the user's batches, and these and notifications end. Returns whether there may be more.
async fn shorten_history(transaction: &impl ConnectionTrait, user_id: Uuid) -> Result<bool, StoreError> {
    let alerts = give::<alert::Entity>(transaction, alert::Column::Id, alert::Column::OwnerId, user_id).await?;
    let commands = give::<command::Entity>(transaction, command::Column::Id, command::Column::OwnerId, user_id).await?;
    // What has run is no part of a batch any more.
    let of_owner = command_batch::Column::OwnerId.eq(user_id);
    let batches = some::<command_batch::Entity>(transaction, command_batch::Column::Id, of_owner).await?;
    let in_batches = command::Column::BatchId.is_in(batches.iter().copied());
    let batched = some::<command::Entity>(transaction, command::Column::Id, in_batches).await?;
    command::Entity::update_many()
        .col_expr(command::Column::BatchId, Expr::value(None::<Uuid>))
        .filter(command::Column::Id.is_in(batched.iter().copied()))
        .exec(transaction)
        .await?;
    if (batched.len() as u64) < AT_ONCE {
        // They are empty now.
        command_batch::Entity::delete_many()
            .filter(command_batch::Column::Id.is_in(batches.iter().copied()))
            .exec(transaction)
            .await?;
    }
    let of_owner = notification::Column::OwnerId.eq(user_id);
    let notifications = some::<notification::Entity>(transaction, notification::Column::Id, of_owner).await?;
    notification::Entity::delete_many()
        .filter(notification::Column::Id.is_in(notifications.iter().copied()))
        .exec(transaction)
        .await?;
    Ok([alerts, commands, batches, batched, notifications].iter().any(|rows| rows.len() as u64 >= AT_ONCE))
}

/// Moves some rows of a user to the present owners of their servers. Returns the ids of the rows.
async fn give<E: EntityTrait>(
    transaction: &impl ConnectionTrait,
    id: E::Column,
    owner: E::Column,
    user_id: Uuid,
) -> Result<Vec<Uuid>, StoreError> {
    let rows = some::<E>(transaction, id, owner.eq(user_id)).await?;
    let entity = E::default();
    let table = entity.table_name();
    let owner_of_server = format!("(SELECT servers.owner_id FROM servers WHERE servers.id = {table}.server_id)");
    E::update_many()
        .col_expr(owner, Expr::cust(owner_of_server))
        .filter(id.is_in(rows.iter().copied()))
        .exec(transaction)
        .await?;
    Ok(rows)
}

/// The ids of some rows.
async fn some<E: EntityTrait>(
    transaction: &impl ConnectionTrait,
    id: E::Column,
    which: impl IntoCondition,
) -> Result<Vec<Uuid>, StoreError> {
    let rows = E::find().select_only().column(id).filter(which.into_condition()).limit(AT_ONCE);
    Ok(rows.into_tuple().all(transaction).await?)
}
