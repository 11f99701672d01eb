//! The life of alerts. Each change, its line in the alert's timeline and the notifications about it are written in one
//! transaction, so that none exists without the others.

use entity::{Millis, alert, alert_event, server};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseBackend, EntityTrait, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait, TryInsertResult,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::advisory_lock::{LockKey, try_lock};
use super::audit_log::record_in;
use super::fence::{self, Fence};
use super::outbox::{Told, queue_in};
use super::{Alert, AlertAudience, AlertEvent, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// A change of an alert that follows from a measurement, not from a user.
#[derive(Debug, Clone, PartialEq)]
pub enum AlertChange {
    /// A threshold was crossed.
    Opened {
        /// The alert to insert.
        alert: Box<Alert>,
        /// Whose channels to notify.
        audience: AlertAudience,
    },
    /// The value is worse than any before.
    Worsened {
        /// The alert.
        id: Uuid,
        /// The new peak value.
        value: f64,
    },
    /// The alert ended.
    Resolved {
        /// The alert.
        id: Uuid,
        /// Why it ended: `recovery` or `threshold_deleted`.
        by: &'static str,
        /// The time of the sample that ended it.
        sample_at: Timestamp,
        /// When the service wrote it.
        at: Timestamp,
    },
    /// The metric recovered after a user had resolved the alert, so that the threshold may fire again.
    Rearmed {
        /// The alert.
        id: Uuid,
        /// The time of the sample that recovered.
        sample_at: Timestamp,
        /// When the service wrote it.
        at: Timestamp,
    },
}

impl AlertChange {
    /// The existing alert that the change is about; none for a new one.
    fn changes(&self) -> Option<Uuid> {
        match self {
            Self::Opened { .. } => None,
            Self::Worsened { id, .. } | Self::Resolved { id, .. } | Self::Rearmed { id, .. } => Some(*id),
        }
    }
}

/// Changes that follow from measurements on one server, and the condition under which they may be written.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertChanges {
    /// The server.
    pub server_id: Uuid,
    /// The condition.
    pub fence: Fence,
    /// The changes, in order.
    pub changes: Vec<AlertChange>,
}

/// Rows that one transaction removes, so that other writers get their turn.
const FORGOTTEN_AT_ONCE: u64 = 500;

impl Store {
    /// Makes these changes, all or none. Returns each alert after its change; none where there was nothing to change, for
    /// example because another writer was faster. Opening an alert that is already open returns that one, so the call may be
    /// repeated.
    pub async fn change_alerts(&self, changes: &[AlertChange]) -> Result<Vec<Option<Alert>>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let changed = make(&transaction, changes).await?;
            transaction.commit().await?;
            Ok(changed)
        })
        .await
    }

    /// The same for several servers at once. Returns nothing for a server whose fence refuses it; none of its changes was made.
    pub async fn change_alerts_of(
        &self,
        servers: &[AlertChanges],
    ) -> Result<Vec<Option<Vec<Option<Alert>>>>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Locks servers before alerts, and both in order, like every transaction that locks several.
            let open = fence::pass(&transaction, servers.iter().map(|it| (it.server_id, it.fence))).await?;
            let passed = || servers.iter().zip(&open).filter(|(_, is_open)| **is_open).map(|(server, _)| server);
            lock(&transaction, passed().flat_map(|server| &server.changes).filter_map(AlertChange::changes)).await?;
            let mut changed = Vec::with_capacity(servers.len());
            for (server, is_open) in servers.iter().zip(&open) {
                changed.push(if *is_open { Some(make(&transaction, &server.changes).await?) } else { None });
            }
            transaction.commit().await?;
            Ok(changed)
        })
        .await
    }

    /// Removes some of the alerts that were resolved before this, with their notifications. Returns how many.
    pub async fn forget_alerts(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !try_lock(&transaction, LockKey::Alerts).await? {
                return Ok(0);
            }
            let old = alert::Entity::find()
                .select_only()
                .column(alert::Column::Id)
                .filter(alert::Column::Status.eq("resolved"))
                .filter(alert::Column::ResolvedAt.lt(before.as_millis()))
                .filter(alert::Column::RearmedAt.is_not_null())
                .limit(FORGOTTEN_AT_ONCE);
            let gone = alert::Entity::delete_many().filter(alert::Column::Id.in_subquery(old.into_query()));
            let gone = gone.exec(&transaction).await?.rows_affected;
            transaction.commit().await?;
            Ok(gone)
        })
        .await
    }

    /// Finds an alert of any owner: its server decides who may see it.
    pub async fn find_alert(&self, id: Uuid) -> Result<Option<Alert>, StoreError> {
        Ok(alert::Entity::find_by_id(id).one(&self.read).await?)
    }

    /// Records that a user looks after an alert. Returns the alert, also where the call changed nothing.
    pub async fn acknowledge_alert(
        &self,
        owner_id: Uuid,
        id: Uuid,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Option<Alert>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let which = alert::Column::Id
                .eq(id)
                .and(alert::Column::OwnerId.eq(owner_id))
                .and(alert::Column::Status.eq("active"));
            let change = [
                (alert::Column::Status, Expr::value("acknowledged")),
                (alert::Column::AcknowledgedAt, Expr::value(now.as_millis())),
                (alert::Column::AcknowledgedBy, Expr::value(actor.user_id)),
                (alert::Column::NotifyAt, Expr::value(None::<i64>)),
            ];
            let Some(alert) = update(&transaction, which, change).await? else {
                transaction.rollback().await?;
                return Ok(self.find_alert(id).await?.filter(|alert| alert.owner_id == owner_id));
            };
            tell(&transaction, id, "acknowledged", now, Some(actor), None).await?;
            let entry = Entry::new(action::ALERT_ACKNOWLEDGE, owner_id, actor.clone());
            record_in(&transaction, entry.on_server(alert.server_id).target(id)).await?;
            transaction.commit().await?;
            Ok(Some(alert))
        })
        .await
    }

    /// Resolves an alert by hand: its threshold does not fire again until the metric has recovered. Returns the alert, also where
    /// the call changed nothing.
    pub async fn resolve_alert(
        &self,
        owner_id: Uuid,
        id: Uuid,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Option<Alert>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let owned = alert::Entity::find_by_id(id).filter(alert::Column::OwnerId.eq(owner_id));
            let Some(found) = owned.lock_exclusive().one(&transaction).await? else { return Ok(None) };
            let by = actor.user_id.map(|id| id.to_string()).unwrap_or_default();
            let resolution = Resolution { by, at: now, sample_at: None, user: Some(actor) };
            let Some(alert) = resolve(&transaction, id, resolution).await? else { return Ok(Some(found)) };
            let entry = Entry::new(action::ALERT_RESOLVE, owner_id, actor.clone());
            record_in(&transaction, entry.on_server(alert.server_id).target(id)).await?;
            transaction.commit().await?;
            Ok(Some(alert))
        })
        .await
    }
}

pub(super) async fn make(
    connection: &impl ConnectionTrait,
    changes: &[AlertChange],
) -> Result<Vec<Option<Alert>>, StoreError> {
    let mut changed = Vec::with_capacity(changes.len());
    for change in changes {
        changed.push(match change {
            AlertChange::Opened { alert, audience } => open(connection, alert, audience).await?,
            AlertChange::Worsened { id, value } => {
                let worse = [(alert::Column::PeakValue, Expr::value(*value))];
                update(connection, alert::Column::Id.eq(*id), worse).await?
            }
            AlertChange::Resolved { id, by, sample_at, at } => {
                let resolution = Resolution { by: (*by).to_owned(), at: *at, sample_at: Some(*sample_at), user: None };
                resolve(connection, *id, resolution).await?
            }
            AlertChange::Rearmed { id, sample_at, at } => rearm(connection, *id, *sample_at, *at).await?,
        });
    }
    Ok(changed)
}

/// Locks alerts in order. SQLite has one writer and needs no locks.
pub(super) async fn lock(connection: &impl ConnectionTrait, ids: impl Iterator<Item = Uuid>) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = ids.collect();
    // A single one is always in order.
    if ids.len() < 2 || connection.get_database_backend() != DatabaseBackend::Postgres {
        return Ok(());
    }
    let query = alert::Entity::find().select_only().column(alert::Column::Id).filter(alert::Column::Id.is_in(ids));
    query.order_by_asc(alert::Column::Id).lock_exclusive().into_tuple::<Uuid>().all(connection).await?;
    Ok(())
}

async fn open(
    connection: &impl ConnectionTrait,
    alert: &Alert,
    audience: &AlertAudience,
) -> Result<Option<Alert>, StoreError> {
    // An alert that a user resolved blocks a new one until the metric has recovered.
    if let Some(unsettled) = unsettled(connection, alert).await? {
        return Ok(Some(unsettled));
    }
    // The server may have got another owner since it was measured.
    let owner_id = owner_of(connection, alert.server_id).await?.unwrap_or(alert.owner_id);
    let alert = &Alert { owner_id, ..alert.clone() };
    let row = alert.clone().into_active_model().reset_all();
    let inserted = alert::Entity::insert(row).on_conflict_do_nothing().exec_without_returning(connection).await?;
    if !matches!(inserted, TryInsertResult::Inserted(1..)) {
        // A repetition of this change, or another alert that was opened a moment ago.
        return unsettled(connection, alert).await;
    }
    let at = Timestamp::from(alert.triggered_at);
    tell(connection, alert.id, "triggered", at, None, Some(alert.message.clone())).await?;
    if alert.is_silenced {
        tell(connection, alert.id, "silenced", at, None, None).await?;
        return Ok(Some(alert.clone()));
    }
    let notify_at = queue_in(connection, alert, Told::Triggered(audience), at).await?.map(Millis::from);
    let alert = alert::Model { notify_at, ..alert.clone() };
    if notify_at.is_some() {
        let later = [(alert::Column::NotifyAt, Expr::value(notify_at.map(|Millis(at)| at)))];
        update(connection, alert::Column::Id.eq(alert.id), later).await?;
    }
    Ok(Some(alert))
}

async fn owner_of(connection: &impl ConnectionTrait, server_id: Uuid) -> Result<Option<Uuid>, StoreError> {
    let owner = server::Entity::find_by_id(server_id).select_only().column(server::Column::OwnerId);
    Ok(owner.into_tuple().one(connection).await?)
}

/// The alert of the same threshold, server and target that is open, or that a user resolved and that has not recovered.
async fn unsettled(connection: &impl ConnectionTrait, like: &Alert) -> Result<Option<Alert>, StoreError> {
    let target = match &like.target {
        Some(target) => alert::Column::Target.eq(target),
        None => alert::Column::Target.is_null(),
    };
    let found = alert::Entity::find()
        .filter(alert::Column::ServerId.eq(like.server_id))
        .filter(alert::Column::ThresholdId.eq(like.threshold_id))
        .filter(target)
        .filter(alert::Column::RearmedAt.is_null());
    Ok(found.one(connection).await?)
}

struct Resolution<'a> {
    by: String,
    at: Timestamp,
    /// None where nothing was measured.
    sample_at: Option<Timestamp>,
    user: Option<&'a Actor>,
}

async fn resolve(
    connection: &impl ConnectionTrait,
    id: Uuid,
    resolution: Resolution<'_>,
) -> Result<Option<Alert>, StoreError> {
    let Resolution { by, at, sample_at, user } = resolution;
    let mut change = vec![
        (alert::Column::Status, Expr::value("resolved")),
        (alert::Column::ResolvedAt, Expr::value(at.as_millis())),
        (alert::Column::ResolvedBy, Expr::value(by.as_str())),
        (alert::Column::NotifyAt, Expr::value(None::<i64>)),
    ];
    if user.is_none() {
        // After a recovery the threshold may fire again at once.
        change.push((alert::Column::RearmedAt, Expr::value(at.as_millis())));
    }
    if let Some(sample_at) = sample_at {
        change.push((alert::Column::SampleAt, Expr::value(sample_at.as_millis())));
    }
    let which = alert::Column::Id.eq(id).and(alert::Column::ResolvedAt.is_null());
    let Some(alert) = update(connection, which, change).await? else { return Ok(None) };
    // The id has a column of its own.
    let detail = user.map_or(by, |actor| actor.username.to_string());
    tell(connection, id, "resolved", at, user, Some(detail)).await?;
    queue_in(connection, &alert, Told::Resolved, at).await?;
    Ok(Some(alert))
}

async fn rearm(
    connection: &impl ConnectionTrait,
    id: Uuid,
    sample_at: Timestamp,
    at: Timestamp,
) -> Result<Option<Alert>, StoreError> {
    let which = alert::Column::Id.eq(id).and(alert::Column::RearmedAt.is_null());
    let change = [
        (alert::Column::RearmedAt, Expr::value(at.as_millis())),
        (alert::Column::SampleAt, Expr::value(sample_at.as_millis())),
    ];
    let Some(alert) = update(connection, which, change).await? else { return Ok(None) };
    tell(connection, id, "rearmed", at, None, None).await?;
    Ok(Some(alert))
}

/// Changes one alert. Returns it after the change; none where the condition does not hold.
async fn update(
    connection: &impl ConnectionTrait,
    which: impl sea_orm::sea_query::IntoCondition,
    change: impl IntoIterator<Item = (alert::Column, Expr)>,
) -> Result<Option<Alert>, StoreError> {
    let mut update = alert::Entity::update_many().filter(which);
    for (column, value) in change {
        update = update.col_expr(column, value);
    }
    Ok(update.exec_with_returning(connection).await?.pop())
}

/// Adds a line to an alert's timeline.
pub(super) async fn tell(
    connection: &impl ConnectionTrait,
    alert_id: Uuid,
    kind: &str,
    at: Timestamp,
    by: Option<&Actor>,
    detail: Option<String>,
) -> Result<(), StoreError> {
    let event = AlertEvent {
        id: Uuid::now_v7(),
        alert_id,
        at: at.into(),
        kind: kind.to_owned(),
        user_id: by.and_then(|actor| actor.user_id),
        username: by.map(|actor| actor.username.to_string()),
        detail,
    };
    let row = event.into_active_model().reset_all();
    alert_event::Entity::insert(row).exec_without_returning(connection).await?;
    Ok(())
}
