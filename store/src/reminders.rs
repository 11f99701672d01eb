//! Repeats notifications of alerts, and sends those that a silence held back.

use std::collections::HashMap;

use entity::{Millis, alert, notification};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::outbox::{PENDING, REMINDER, TRIGGERED, channels_for, queue};
use super::routing::repetition;
use super::servers::tags_of;
use super::{Alert, AlertAudience, Channel, Share, Store, StoreError};

/// Clocks of instances differ by less than this.
const CLOCKS_AGREE_MS: i64 = 60_000;

/// An alert of which a channel may have to be notified.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertToNotify {
    /// The alert.
    pub alert: Alert,
    /// Whose channels to notify. The store fills in the tags, the caller the viewers.
    pub audience: AlertAudience,
}

/// What a channel last received about an alert.
struct LastNotice {
    at: Timestamp,
    /// It is not sent yet.
    is_pending: bool,
}

impl Store {
    /// The alerts of a share that are due for a check, those that have waited longest first.
    pub async fn alerts_to_notify(
        &self,
        share: &Share,
        now: Timestamp,
        limit: u64,
    ) -> Result<Vec<AlertToNotify>, StoreError> {
        let alerts = alert::Entity::find()
            .filter(alert::Column::NotifyAt.lte(Millis::from(now)))
            .filter(of(share))
            .order_by_asc(alert::Column::NotifyAt)
            .limit(limit)
            .all(&self.read)
            .await?;
        let servers: Vec<Uuid> = alerts.iter().map(|alert| alert.server_id).collect();
        let tags = tags_of(&self.read, &servers).await?;
        let with_tags = alerts.into_iter().map(|alert| {
            let tags = tags.get(&alert.server_id).cloned().unwrap_or_default();
            AlertToNotify { alert, audience: AlertAudience { tags, viewers: Vec::new() } }
        });
        Ok(with_tags.collect())
    }

    /// When the next alert of a share is due for a check.
    pub async fn next_alert_to_notify(&self, share: &Share) -> Result<Option<Timestamp>, StoreError> {
        let next = alert::Entity::find()
            .select_only()
            .column(alert::Column::NotifyAt)
            .filter(alert::Column::NotifyAt.is_not_null())
            .filter(of(share))
            .order_by_asc(alert::Column::NotifyAt)
            .limit(1);
        let next: Option<Millis> = next.into_tuple().one(&self.read).await?;
        Ok(next.map(Timestamp::from))
    }

    /// Makes alerts due now that are not to be checked until after `latest`, because a clock that was ahead put them off. A check
    /// that comes too early changes nothing.
    pub async fn hasten_alerts(&self, latest: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        let put_off = alert::Entity::update_many()
            .col_expr(alert::Column::NotifyAt, Millis::from(now).into())
            .filter(alert::Column::NotifyAt.gt(Millis::from(latest)));
        self.retried(|| async { Ok(put_off.clone().exec(&self.write).await?.rows_affected) }).await
    }

    /// Queues notifications of an alert that nobody has acknowledged: to channels that want it and never received it, and again
    /// to those whose repetition is due. While a silence applies, which lasts until `held_until`, it notifies nobody. It
    /// records in the same transaction when to check again.
    pub async fn remind(
        &self,
        wanted: &AlertToNotify,
        held_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let due = alert::Entity::find_by_id(wanted.alert.id)
                .filter(alert::Column::NotifyAt.eq(wanted.alert.notify_at))
                .filter(alert::Column::NotifyAt.lte(Millis::from(now)));
            // Another instance was faster, a silence or a tag has changed since, or the alert is over.
            let Some(alert) = due.lock_exclusive().one(&transaction).await? else { return Ok(()) };
            let next = match held_until.filter(|until| *until > now) {
                _ if alert.status != "active" => None,
                Some(until) => Some(until),
                None => tell_again(&transaction, &alert, &wanted.audience, now).await?,
            };
            alert::Entity::update_many()
                .col_expr(alert::Column::NotifyAt, Expr::value(next.map(Timestamp::as_millis)))
                .filter(alert::Column::Id.eq(alert.id))
                .exec(&transaction)
                .await?;
            Ok(transaction.commit().await?)
        })
        .await
    }
}

fn of(share: &Share) -> Condition {
    Condition::all().add_option(share.condition("alerts.id"))
}

/// Returns when the next repetition is due.
async fn tell_again(
    connection: &impl ConnectionTrait,
    alert: &Alert,
    audience: &AlertAudience,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let channels = channels_for(connection, alert, audience).await?;
    let before = told_before(connection, alert.id, now).await?;
    let mut told: Vec<(&Channel, &'static str)> = Vec::new();
    let mut next = Vec::new();
    for channel in &channels {
        let told_at = match before.get(&channel.id) {
            None => {
                told.push((channel, TRIGGERED));
                now
            }
            Some(before) if repetition(channel, before.at).is_none_or(|due| due > now) => before.at,
            // A destination that was away does not receive the same several times when it is back.
            Some(before) if before.is_pending => now,
            Some(_) => {
                told.push((channel, REMINDER));
                now
            }
        };
        next.extend(repetition(channel, told_at));
    }
    queue(connection, alert, &told, now).await?;
    Ok(next.into_iter().min())
}

/// What each channel last received about an alert.
async fn told_before(
    connection: &impl ConnectionTrait,
    alert_id: Uuid,
    now: Timestamp,
) -> Result<HashMap<Uuid, LastNotice>, StoreError> {
    let rows = notification::Entity::find()
        .select_only()
        .columns([notification::Column::ChannelId, notification::Column::CreatedAt, notification::Column::Status])
        .filter(notification::Column::AlertId.eq(alert_id))
        .filter(notification::Column::Event.is_in([TRIGGERED, REMINDER]))
        .order_by_asc(notification::Column::Id)
        .into_tuple::<(Uuid, Millis, String)>()
        .all(connection)
        .await?;
    let mut notices: Vec<(Uuid, LastNotice)> = rows
        .into_iter()
        .map(|(channel_id, at, status)| {
            // When it was sent is unknown if a clock that was ahead has dated it: a repetition counts as due.
            let at = Some(Timestamp::from(at)).filter(|at| at.millis_since(now) <= CLOCKS_AGREE_MS);
            (channel_id, LastNotice { at: at.unwrap_or_default(), is_pending: status == PENDING })
        })
        .collect();
    notices.sort_by_key(|(_, notice)| notice.at);
    Ok(notices.into_iter().collect())
}
