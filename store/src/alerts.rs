//! Alerts as they come, change and go. Each change is written with its line in the alert's timeline and with what
//! people are to be told of it, so that none of the three is there without the others.

use entity::{Millis, alert, alert_event};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseBackend, EntityTrait, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait, TryInsertResult,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::fence::{self, Fence};
use super::outbox::queue_in;
use super::turn::{Work, takes_turn};
use super::{Alert, AlertEvent, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// A change of an alert that nobody asked for: what was measured brought it about.
#[derive(Debug, Clone, PartialEq)]
pub enum AlertChange {
    Opened {
        alert: Box<Alert>,
        /// Of its server: some channels are for some tags.
        tags: Vec<String>,
    },
    /// It has never been so bad.
    Worsened {
        id: Uuid,
        value: f64,
    },
    Resolved {
        id: Uuid,
        by: &'static str,
        sample_at: Timestamp,
        at: Timestamp,
    },
    /// What was resolved by hand has recovered.
    Rearmed {
        id: Uuid,
        sample_at: Timestamp,
        at: Timestamp,
    },
}

impl AlertChange {
    /// The alert that is there already, if it is about one.
    fn changes(&self) -> Option<Uuid> {
        match self {
            Self::Opened { .. } => None,
            Self::Worsened { id, .. } | Self::Resolved { id, .. } | Self::Rearmed { id, .. } => Some(*id),
        }
    }
}

/// What was measured on one server brought these about, and by what right whoever measured it may write them.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertChanges {
    pub server_id: Uuid,
    pub fence: Fence,
    pub changes: Vec<AlertChange>,
}

/// Rows that one transaction removes, so that others get their turn.
const FORGOTTEN_AT_ONCE: u64 = 500;

impl Store {
    /// Makes these changes, all or none. Gives each alert as it is then; none where there was nothing to change, as when
    /// somebody else was faster. Opening what is open already gives that: so it may be tried again.
    pub async fn change_alerts(&self, changes: &[AlertChange]) -> Result<Vec<Option<Alert>>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let changed = make(&transaction, changes).await?;
            transaction.commit().await?;
            Ok(changed)
        })
        .await
    }

    /// The same for several servers at once. Gives nothing for those whose fence does not let them through: none of their
    /// changes was made.
    pub async fn change_alerts_of(
        &self,
        servers: &[AlertChanges],
    ) -> Result<Vec<Option<Vec<Option<Alert>>>>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Servers before alerts, and both in order, as everybody does who locks several.
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

    /// Removes some of those that were resolved before this, with all that was told of them. Gives how many.
    pub async fn forget_alerts(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !takes_turn(&transaction, Work::Alerts).await? {
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

    /// An alert, whoever's it is.
    pub async fn alert(&self, id: Uuid) -> Result<Option<Alert>, StoreError> {
        Ok(alert::Entity::find_by_id(id).one(&self.read).await?)
    }

    /// An alert of an owner.
    pub async fn find_alert(&self, owner_id: Uuid, id: Uuid) -> Result<Option<Alert>, StoreError> {
        let found = alert::Entity::find_by_id(id).filter(alert::Column::OwnerId.eq(owner_id));
        Ok(found.one(&self.read).await?)
    }

    /// Somebody looks after it. Gives it as it is then, and whether that is new.
    pub async fn acknowledge_alert(
        &self,
        owner_id: Uuid,
        id: Uuid,
        actor: &Actor,
    ) -> Result<Option<(Alert, bool)>, StoreError> {
        let now = Timestamp::now();
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
                return Ok(self.find_alert(owner_id, id).await?.map(|alert| (alert, false)));
            };
            tell(&transaction, id, "acknowledged", now, Some(actor), None).await?;
            let entry = Entry::new(action::ALERT_ACKNOWLEDGE, owner_id, actor.clone());
            record_in(&transaction, entry.on_server(alert.server_id).target(id)).await?;
            transaction.commit().await?;
            Ok(Some((alert, true)))
        })
        .await
    }

    /// Somebody resolves it by hand: it does not fire again until the metric has recovered. Gives it as it is then,
    /// and whether that is new.
    pub async fn resolve_alert(
        &self,
        owner_id: Uuid,
        id: Uuid,
        actor: &Actor,
    ) -> Result<Option<(Alert, bool)>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let owned = alert::Entity::find_by_id(id).filter(alert::Column::OwnerId.eq(owner_id));
            let Some(found) = owned.lock_exclusive().one(&transaction).await? else { return Ok(None) };
            let by = actor.user_id.map(|id| id.to_string()).unwrap_or_default();
            let resolution = Resolution { by, at: Timestamp::now(), sample_at: None, user: Some(actor) };
            let Some(alert) = resolve(&transaction, id, resolution).await? else { return Ok(Some((found, false))) };
            let entry = Entry::new(action::ALERT_RESOLVE, owner_id, actor.clone());
            record_in(&transaction, entry.on_server(alert.server_id).target(id)).await?;
            transaction.commit().await?;
            Ok(Some((alert, true)))
        })
        .await
    }
}

async fn make(connection: &impl ConnectionTrait, changes: &[AlertChange]) -> Result<Vec<Option<Alert>>, StoreError> {
    let mut changed = Vec::with_capacity(changes.len());
    for change in changes {
        changed.push(match change {
            AlertChange::Opened { alert, tags } => open(connection, alert, tags).await?,
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

/// Locks alerts in order. SQLite has one writer.
async fn lock(connection: &impl ConnectionTrait, ids: impl Iterator<Item = Uuid>) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = ids.collect();
    // One alone is in order.
    if ids.len() < 2 || connection.get_database_backend() != DatabaseBackend::Postgres {
        return Ok(());
    }
    let query = alert::Entity::find().select_only().column(alert::Column::Id).filter(alert::Column::Id.is_in(ids));
    query.order_by_asc(alert::Column::Id).lock_exclusive().into_tuple::<Uuid>().all(connection).await?;
    Ok(())
}

async fn open(connection: &impl ConnectionTrait, alert: &Alert, tags: &[String]) -> Result<Option<Alert>, StoreError> {
    // One that was resolved by hand keeps its place until the metric has recovered.
    if let Some(unsettled) = unsettled(connection, alert).await? {
        return Ok(Some(unsettled));
    }
    let row = alert.clone().into_active_model().reset_all();
    let inserted = alert::Entity::insert(row).on_conflict_do_nothing().exec_without_returning(connection).await?;
    if !matches!(inserted, TryInsertResult::Inserted(1..)) {
        // The same once more, or another that was opened a moment ago.
        return unsettled(connection, alert).await;
    }
    let at = Timestamp::from(alert.triggered_at);
    tell(connection, alert.id, "triggered", at, None, Some(alert.message.clone())).await?;
    if alert.is_silenced {
        tell(connection, alert.id, "silenced", at, None, None).await?;
        return Ok(Some(alert.clone()));
    }
    let notify_at = queue_in(connection, alert, "triggered", tags, at).await?.map(Millis::from);
    let alert = alert::Model { notify_at, ..alert.clone() };
    if notify_at.is_some() {
        let later = [(alert::Column::NotifyAt, Expr::value(notify_at.map(|Millis(at)| at)))];
        update(connection, alert::Column::Id.eq(alert.id), later).await?;
    }
    Ok(Some(alert))
}

/// The alert of the same threshold, server and target that is open, or was resolved by hand and has not recovered.
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
        // What recovered by itself may fire again at once.
        change.push((alert::Column::RearmedAt, Expr::value(at.as_millis())));
    }
    if let Some(sample_at) = sample_at {
        change.push((alert::Column::SampleAt, Expr::value(sample_at.as_millis())));
    }
    let which = alert::Column::Id.eq(id).and(alert::Column::ResolvedAt.is_null());
    let Some(alert) = update(connection, which, change).await? else { return Ok(None) };
    // The row's own column has the id.
    let detail = user.map_or(by, |actor| actor.username.to_string());
    tell(connection, id, "resolved", at, user, Some(detail)).await?;
    queue_in(connection, &alert, "resolved", &[], at).await?;
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

/// Changes one alert. Gives it as it is then; none where the condition holds for none.
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
async fn tell(
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
