//! Notifications, from the change that causes them until they are sent.

use std::collections::{HashMap, HashSet};

use entity::{Millis, alert, notification, notification_channel, server, user};
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect,
};
use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use signalbox_protocol::alert::{Alert as AlertView, Owner as AlertOwner};
use uuid::Uuid;

use super::advisory_lock::{LockKey, try_lock};
use super::claims::{OVERTAKEN, SENDING};
use super::routing::{repetition, wants};
use super::servers::tags_of;
use super::{Alert, Channel, Notification, Page, PageRequest, Store, StoreError};

/// The values of `event`.
pub(super) const TRIGGERED: &str = "triggered";
pub(super) const REMINDER: &str = "reminder";
pub(super) const RESOLVED: &str = "resolved";
pub(super) const TEST: &str = "test";

/// The values of `status`.
pub(super) const PENDING: &str = "pending";
pub(super) const SENT: &str = "sent";
pub(super) const FAILED: &str = "failed";

/// Rows of one statement: PostgreSQL accepts 65,535 values, and a row has seventeen.
const ROWS_AT_ONCE: usize = 1_000;

/// Rows that one transaction removes.
const FORGOTTEN_AT_ONCE: u64 = 1_000;

/// No message is in transit for this long.
const LONGEST_CLAIM_MS: i64 = 2 * 3_600_000;

/// The content of a notification, from the time when it was queued: every attempt says the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotificationContent {
    /// The alert.
    pub alert: AlertView,
    /// The server's name.
    pub server_name: String,
    /// The server's tags.
    pub server_tags: Vec<String>,
}

impl NotificationContent {
    /// The content of a notification; none for a test.
    pub fn of(notification: &Notification) -> Option<Self> {
        let content = notification.content.as_deref()?;
        serde_json::from_str(content)
            .inspect_err(
                |error| tracing::error!(notification.id = %notification.id, %error, "a notification is unreadable"),
            )
            .ok()
    }
}

/// Whom an alert concerns, when it begins or is repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertAudience {
    /// The tags of the alert's server, because some channels are for some tags.
    pub tags: Vec<String>,
    /// The accounts that may see the server. The owner always may.
    pub viewers: Vec<Uuid>,
}

/// What notifications say about an alert.
pub(super) enum Told<'a> {
    /// It has begun.
    Triggered(&'a AlertAudience),
    /// It is over.
    Resolved,
}

/// Which notifications a list contains; a field that is none filters nothing.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// Notifications on this channel.
    pub channel_id: Option<Uuid>,
    /// Notifications about this alert.
    pub alert_id: Option<Uuid>,
    /// `pending`, `sent` or `failed`.
    pub status: Option<&'static str>,
}

/// A notification and the name of its channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The notification.
    pub notification: Notification,
    /// The channel's name.
    pub channel_name: String,
}

impl Store {
    /// Lists an owner's notifications, sent or not, newest first.
    pub async fn list_deliveries(
        &self,
        owner_id: Uuid,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<Delivery>, StoreError> {
        use notification::Column;
        let condition = Condition::all()
            .add(Column::OwnerId.eq(owner_id))
            .add_option(filter.channel_id.map(|id| Column::ChannelId.eq(id)))
            .add_option(filter.alert_id.map(|id| Column::AlertId.eq(id)))
            .add_option(filter.status.map(|status| Column::Status.eq(status)));
        let query = notification::Entity::find().filter(condition);
        let total = query.clone().count(&self.read).await?;
        let rows = query.order_by_desc(Column::Id).limit(page.limit).offset(page.offset).all(&self.read).await?;
        let channels: HashSet<Uuid> = rows.iter().map(|row| row.channel_id).collect();
        let names: Vec<(Uuid, String)> = notification_channel::Entity::find()
            .select_only()
            .columns([notification_channel::Column::Id, notification_channel::Column::Name])
            .filter(notification_channel::Column::Id.is_in(channels))
            .into_tuple()
            .all(&self.read)
            .await?;
        let names: HashMap<Uuid, String> = names.into_iter().collect();
        let items = rows.into_iter().map(|notification| {
            // The channel was deleted between the two queries.
            let channel_name = names.get(&notification.channel_id).cloned().unwrap_or_default();
            Delivery { notification, channel_name }
        });
        Ok(Page { items: items.collect(), total })
    }

    /// Removes some of the finished notifications from before `before`. Of those about an alert that is open, each channel's last
    /// one stays: it says who hears of the end, who has heard of the beginning, and when that is to be repeated. Returns how many.
    pub async fn forget_notifications(&self, before: Timestamp) -> Result<u64, StoreError> {
        use notification::Column;
        let open = sea_orm::sea_query::Query::select()
            .column(alert::Column::Id)
            .from(alert::Entity)
            .and_where(alert::Column::ResolvedAt.is_null())
            .to_owned();
        let is_repeated = format!(
            "EXISTS (SELECT 1 FROM notifications later WHERE later.alert_id = notifications.alert_id \
             AND later.channel_id = notifications.channel_id AND later.event = '{REMINDER}' AND later.status = '{SENT}' \
             AND later.created_at > notifications.created_at)"
        );
        let is_dispensable = Condition::any()
            .add(Column::AlertId.is_null())
            .add(Column::AlertId.not_in_subquery(open))
            .add(Expr::cust(is_repeated));
        let old = notification::Entity::find()
            .select_only()
            .column(Column::Id)
            .filter(Column::FinishedAt.lt(Millis::from(before)))
            .filter(is_dispensable)
            .limit(FORGOTTEN_AT_ONCE);
        let ids: Vec<Uuid> = old.into_tuple().all(&self.read).await?;
        if ids.is_empty() {
            return Ok(0);
        }
        let forgotten = notification::Entity::delete_many().filter(Column::Id.is_in(ids));
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !try_lock(&transaction, LockKey::Notifications).await? {
                return Ok(0);
            }
            let forgotten = forgotten.clone().exec(&transaction).await?.rows_affected;
            transaction.commit().await?;
            Ok(forgotten)
        })
        .await
    }

    /// Makes messages due now that wait until after `latest`, because a clock that was ahead put them off. A message in transit
    /// stays claimed, unless no claim lasts that long.
    pub async fn hasten_notifications(&self, latest: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        use notification::Column;
        let is_claimed = Condition::any().add(Column::Hold.eq(SENDING)).add(Column::Hold.eq(OVERTAKEN));
        let no_claim = now.plus_millis(LONGEST_CLAIM_MS).max(latest);
        let put_off = notification::Entity::update_many()
            .col_expr(Column::NextAttemptAt, Millis::from(now).into())
            .filter(Column::Status.eq(PENDING))
            .filter(Column::NextAttemptAt.gt(Millis::from(latest)))
            .filter(
                Condition::any()
                    .add(Column::Hold.is_null())
                    .add(is_claimed.not())
                    .add(Column::NextAttemptAt.gt(Millis::from(no_claim))),
            );
        self.retried(|| async { Ok(put_off.clone().exec(&self.write).await?.rows_affected) }).await
    }

    /// Gives up notifications that were queued before `before` on disabled channels, and tests that nobody finished. Returns
    /// how many.
    pub async fn give_up_notifications(&self, before: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        use notification::Column;
        let disabled = sea_orm::sea_query::Query::select()
            .column(notification_channel::Column::Id)
            .from(notification_channel::Entity)
            .and_where(notification_channel::Column::IsEnabled.eq(false))
            .to_owned();
        let abandoned = Condition::any().add(Column::ChannelId.in_subquery(disabled)).add(Column::Event.eq(TEST));
        let given_up = notification::Entity::update_many()
            .col_expr(Column::Status, Expr::value(FAILED))
            .col_expr(Column::NextAttemptAt, Expr::value(None::<i64>))
            .col_expr(Column::Hold, Expr::value(None::<String>))
            .col_expr(Column::Error, Expr::value("was not sent in time"))
            .col_expr(Column::FinishedAt, Millis::from(now).into())
            .filter(Column::Status.eq(PENDING))
            .filter(Column::CreatedAt.lt(Millis::from(before)))
            .filter(abandoned);
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !try_lock(&transaction, LockKey::Notifications).await? {
                return Ok(0);
            }
            let given_up = given_up.clone().exec(&transaction).await?.rows_affected;
            transaction.commit().await?;
            Ok(given_up)
        })
        .await
    }
}

/// Queues a notification about an alert on every channel that wants it, inside the transaction that changes the alert. `event`
/// is the beginning or the end; a recovery is sent where the beginning was. Returns when to check whether to repeat it, if ever.
pub(super) async fn queue_in(
    connection: &impl ConnectionTrait,
    alert: &Alert,
    event: Told<'_>,
    at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    match event {
        Told::Triggered(audience) => {
            let channels = channels_for(connection, alert, audience).await?;
            let begun = channels.iter().map(|channel| (channel, TRIGGERED)).collect::<Vec<_>>();
            queue(connection, alert, &begun, at).await?;
            Ok(channels.iter().filter_map(|channel| repetition(channel, at)).min())
        }
        Told::Resolved => {
            let channels = told_of(connection, alert.id).await?;
            let channels = channels.into_iter().filter(|channel| channel.tells_recovery).collect::<Vec<_>>();
            let channels = channels.iter().map(|channel| (channel, RESOLVED)).collect::<Vec<_>>();
            queue(connection, alert, &channels, at).await?;
            Ok(None)
        }
    }
}

/// The channels that want this alert: of the server's owner, and of the others who may see the server and can sign in.
pub(super) async fn channels_for(
    connection: &impl ConnectionTrait,
    alert: &Alert,
    audience: &AlertAudience,
) -> Result<Vec<Channel>, StoreError> {
    use notification_channel::Column;
    let enabled = |of: SimpleExpr| {
        notification_channel::Entity::find().filter(of).filter(Column::IsEnabled.eq(true)).all(connection)
    };
    let mut channels = enabled(Column::OwnerId.eq(alert.owner_id)).await?;
    let others: Vec<Uuid> = audience.viewers.iter().copied().filter(|id| *id != alert.owner_id).collect();
    for some in others.chunks(ROWS_AT_ONCE) {
        let active = sea_orm::sea_query::Query::select()
            .column(user::Column::Id)
            .from(user::Entity)
            .and_where(user::Column::Id.is_in(some.iter().copied()))
            .and_where(user::Column::DisabledAt.is_null())
            .to_owned();
        channels.extend(enabled(Column::OwnerId.in_subquery(active)).await?);
    }
    Ok(channels.into_iter().filter(|channel| wants(channel, &alert.severity, &audience.tags)).collect())
}

/// The channels that received this alert, or are about to.
async fn told_of(connection: &impl ConnectionTrait, alert_id: Uuid) -> Result<Vec<Channel>, StoreError> {
    let told = sea_orm::sea_query::Query::select()
        .column(notification::Column::ChannelId)
        .from(notification::Entity)
        .and_where(notification::Column::AlertId.eq(alert_id))
        .and_where(notification::Column::Event.is_in([TRIGGERED, REMINDER]))
        .and_where(notification::Column::Status.ne(FAILED))
        .to_owned();
    let channels = notification_channel::Entity::find().filter(notification_channel::Column::Id.in_subquery(told));
    Ok(channels.all(connection).await?)
}

/// Adds a row for each channel. A channel never receives the same event twice.
pub(super) async fn queue(
    connection: &impl ConnectionTrait,
    alert: &Alert,
    channels: &[(&Channel, &'static str)],
    at: Timestamp,
) -> Result<(), StoreError> {
    if channels.is_empty() {
        return Ok(());
    }
    let content = content(connection, alert).await?;
    for some in channels.chunks(ROWS_AT_ONCE) {
        let rows = some.iter().map(|(channel, event)| {
            let about = About { alert_id: Some(alert.id), event, subject: &alert.message, content: Some(&content) };
            row(channel, about, at).into_active_model().reset_all()
        });
        notification::Entity::insert_many(rows).on_conflict_do_nothing().exec_without_returning(connection).await?;
    }
    Ok(())
}

/// The content of a row.
pub(super) struct About<'a> {
    /// The alert; none for a test.
    pub alert_id: Option<Uuid>,
    /// What happened.
    pub event: &'static str,
    /// One line for people.
    pub subject: &'a str,
    /// The content as JSON; none for a test.
    pub content: Option<&'a str>,
}

/// A row that waits to be sent.
pub(super) fn row(channel: &Channel, about: About<'_>, at: Timestamp) -> Notification {
    let id = Uuid::now_v7();
    Notification {
        id,
        owner_id: channel.owner_id,
        channel_id: channel.id,
        alert_id: about.alert_id,
        event: about.event.to_owned(),
        subject: about.subject.to_owned(),
        content: about.content.map(str::to_owned),
        status: PENDING.to_owned(),
        message_id: id,
        attempts: 0,
        next_attempt_at: Some(at.into()),
        hold: None,
        recipients: None,
        error: None,
        created_at: at.into(),
        attempted_at: None,
        finished_at: None,
    }
}

async fn content(connection: &impl ConnectionTrait, alert: &Alert) -> Result<String, StoreError> {
    let name = server::Entity::find_by_id(alert.server_id).select_only().column(server::Column::Name);
    let server_name: Option<String> = name.into_tuple().one(connection).await?;
    let mut tags = tags_of(connection, &[alert.server_id]).await?;
    let username = user::Entity::find_by_id(alert.owner_id).select_only().column(user::Column::Username);
    let username: Option<String> = username.into_tuple().one(connection).await?;
    let owner = username.map(|username| AlertOwner { id: alert.owner_id, username });
    let told = NotificationContent {
        alert: AlertView { owner, ..alert_view(alert) },
        server_name: server_name.unwrap_or_default(),
        server_tags: tags.remove(&alert.server_id).unwrap_or_default(),
    };
    serde_json::to_string(&told).map_err(|error| sea_orm::DbErr::Json(error.to_string()).into())
}

/// An alert as dashboards and notifications show it, without the owner's name.
pub fn alert_view(alert: &Alert) -> AlertView {
    AlertView {
        id: alert.id,
        threshold_id: alert.threshold_id,
        server_id: alert.server_id,
        owner: None,
        metric_type: alert.metric_type.clone(),
        series: alert.series.clone(),
        unit: alert.unit.clone(),
        target: alert.target.clone(),
        worst_target: alert.worst_target.clone(),
        threshold_value: alert.threshold_value,
        clear_value: alert.clear_value,
        comparison: alert.comparison.clone(),
        duration_seconds: alert.duration_seconds,
        value: alert.value,
        peak_value: alert.peak_value,
        status: alert.status.clone(),
        severity: alert.severity.clone(),
        message: alert.message.clone(),
        silenced: alert.is_silenced,
        triggered_at: alert.triggered_at.into(),
        acknowledged_at: alert.acknowledged_at.map(Timestamp::from),
        acknowledged_by: alert.acknowledged_by,
        resolved_at: alert.resolved_at.map(Timestamp::from),
        resolved_by: alert.resolved_by.clone(),
    }
}
