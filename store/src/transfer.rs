//! Moves all servers of an account to another one, with everything that belongs to a server.
//!
//! Keys, tags, events and history name only the server, so they need no change. Triggers move the counters of alerts with their
//! alerts. What belongs to the account stays there: thresholds for tags and for all servers, silences, channels, views.

use entity::{Millis, alert, alert_threshold, command, grant, server};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::silences::look_again;
use super::{StoreError, User};

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
    alert::Entity::update_many()
        .col_expr(alert::Column::OwnerId, Expr::value(to.id))
        .filter(alert::Column::OwnerId.eq(from.id))
        .exec(transaction)
        .await?;
    command::Entity::update_many()
        .col_expr(command::Column::OwnerId, Expr::value(to.id))
        .filter(command::Column::OwnerId.eq(from.id))
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
