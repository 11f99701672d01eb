//! Channels whose receiver has ended for good, such as a browser that withdrew its subscription.

use entity::{Millis, notification, notification_channel};
use sea_orm::sea_query::ExprTrait;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect, Set,
};
use serde_json::json;
use signalbox_protocol::Timestamp;

use super::audit_log::{changed, record_in};
use super::claims::{Attempt, Claim, OVERTAKEN, SENDING, finished, written};
use super::outbox::PENDING;
use super::{Progress, Store, StoreError};
use crate::audit::{Actor, Entry, action};

impl Store {
    /// Records that the receiver of a claimed message is gone. If the channel has got other settings since, the message is
    /// due there at once.
    pub(super) async fn end_channel(
        &self,
        claim: &Claim,
        error: &str,
        progress: &Progress,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let error = error.to_owned();
            let attempt = if disable(&transaction, claim, &error, now).await? {
                Attempt::Ended { error }
            } else {
                Attempt::Failed { error, again_at: now, holds_others: false }
            };
            let update = written(&attempt, progress, now)
                .filter(notification::Column::MessageId.eq(claim.message_id))
                .filter(notification::Column::ChannelId.eq(claim.channel.id))
                .filter(notification::Column::Attempts.eq(claim.attempts()))
                .filter(notification::Column::Status.eq(PENDING));
            update.exec(&transaction).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }
}

/// Disables the channel of a claim, and gives up what waits for it: by the time somebody enables it again, that is no news.
/// Returns false, and changes nothing, if the channel has other settings than at the claim.
pub(super) async fn disable(
    connection: &impl ConnectionTrait,
    claim: &Claim,
    error: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let found = notification_channel::Entity::find_by_id(claim.channel.id).lock_exclusive().one(connection).await?;
    let Some(channel) = found.filter(|found| found.settings == claim.channel.settings) else { return Ok(false) };
    let waiting = finished(&Attempt::Ended { error: error.to_owned() }, now)
        .filter(notification::Column::ChannelId.eq(channel.id))
        .filter(notification::Column::MessageId.ne(claim.message_id))
        .filter(notification::Column::Status.eq(PENDING))
        // What is on its way ends by itself.
        .filter(notification::Column::Hold.is_null().or(notification::Column::Hold.is_not_in([SENDING, OVERTAKEN])));
    waiting.exec(connection).await?;
    if !channel.is_enabled {
        return Ok(true);
    }
    let detail = json!({ "enabled": changed(&true, Some(&false)), "reason": error });
    let entry = Entry::new(action::CHANNEL_UPDATE, channel.owner_id, Actor::service("")).target(channel.id);
    let mut row = channel.into_active_model();
    row.is_enabled = Set(false);
    row.updated_at = Set(Millis::from(now));
    row.update(connection).await?;
    record_in(connection, entry.detail(detail)).await?;
    Ok(true)
}
