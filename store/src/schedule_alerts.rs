//! The alerts of schedules: a run that fails on a server opens one, and the next success there ends it. They are written in the
//! transaction that notes the run, so that each failure notifies people once, whichever instance noted it.

use std::collections::HashSet;

use entity::{alert, schedule};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::alerts::{lock, make};
use super::{Alert, AlertAudience, AlertChange, Store, StoreError};

/// The metric type of alerts whose threshold is a schedule.
pub const SCHEDULE: &str = "schedule";

/// Alerts that one transaction ends, so that other writers get their turn.
const ENDED_AT_ONCE: u64 = 500;

/// What a run means for the alerts of its schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleAlerts {
    /// The schedule.
    pub schedule_id: Uuid,
    /// The present time.
    pub at: Timestamp,
    /// The alerts of the servers on which it failed, and whose channels to notify. A server that has an open one keeps that.
    pub failed: Vec<(Alert, AlertAudience)>,
    /// The servers on which it succeeded.
    pub recovered: Vec<Uuid>,
    /// The servers about which it says nothing new. An alert of a server that is in none of these lists ends: the schedule does not
    /// run there any more.
    pub unchanged: Vec<Uuid>,
}

impl Store {
    /// Ends the alerts of schedules that are paused or deleted, and lets those that a user has resolved be opened again. Returns
    /// the alerts that it changed.
    pub async fn settle_schedule_alerts(&self, at: Timestamp) -> Result<Vec<Alert>, StoreError> {
        let active = schedule::Entity::find()
            .select_only()
            .column(schedule::Column::Id)
            .filter(schedule::Column::IsEnabled.eq(true));
        let is_over = Condition::any()
            .add(alert::Column::ResolvedAt.is_not_null())
            .add(alert::Column::ThresholdId.not_in_subquery(active.into_query()));
        let over = alert::Entity::find().filter(is_unsettled()).filter(is_over).limit(ENDED_AT_ONCE);
        let over = over.all(&self.read).await?;
        if over.is_empty() {
            return Ok(Vec::new());
        }
        let changes: Vec<AlertChange> = over.iter().map(|alert| ended(alert, "threshold_deleted", at)).collect();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock(&transaction, over.iter().map(|alert| alert.id)).await?;
            let changed = make(&transaction, &changes).await?;
            transaction.commit().await?;
            Ok(changed.into_iter().flatten().collect())
        })
        .await
    }
}

fn is_unsettled() -> Condition {
    Condition::all().add(alert::Column::MetricType.eq(SCHEDULE)).add(alert::Column::RearmedAt.is_null())
}

/// The servers whose alerts a run may change: those on which it failed, and those that have an alert.
pub(super) async fn concerned(
    connection: &impl ConnectionTrait,
    alerts: &ScheduleAlerts,
) -> Result<impl Iterator<Item = Uuid>, StoreError> {
    let before = alert::Entity::find()
        .select_only()
        .column(alert::Column::ServerId)
        .filter(is_unsettled())
        .filter(alert::Column::ThresholdId.eq(alerts.schedule_id));
    let before: Vec<Uuid> = before.into_tuple().all(connection).await?;
    Ok(alerts.failed.iter().map(|(alert, _)| alert.server_id).chain(before))
}

/// Opens and ends the alerts of servers that exist and are `held`. Returns those that it changed.
pub(super) async fn change(
    connection: &impl ConnectionTrait,
    alerts: &ScheduleAlerts,
    held: &[Uuid],
) -> Result<Vec<Alert>, StoreError> {
    let held: HashSet<Uuid> = held.iter().copied().collect();
    let failed: HashSet<Uuid> = alerts.failed.iter().map(|(alert, _)| alert.server_id).collect();
    let recovered: HashSet<Uuid> = alerts.recovered.iter().copied().collect();
    let unchanged: HashSet<Uuid> = alerts.unchanged.iter().copied().collect();
    // Locked as they are read, in order: what somebody resolves in the meantime is seen as resolved.
    let before = alert::Entity::find()
        .filter(is_unsettled())
        .filter(alert::Column::ThresholdId.eq(alerts.schedule_id))
        .order_by_asc(alert::Column::Id)
        .lock_exclusive()
        .all(connection)
        .await?;
    let mut changes = Vec::new();
    let mut open = HashSet::new();
    for alert in before.iter().filter(|alert| held.contains(&alert.server_id)) {
        let server_id = alert.server_id;
        if failed.contains(&server_id) && alert.resolved_at.is_none() {
            open.insert(server_id);
            changes.push(AlertChange::Worsened { id: alert.id, value: alert.peak_value + 1.0 });
        } else if failed.contains(&server_id) || recovered.contains(&server_id) {
            changes.push(ended(alert, "recovery", alerts.at));
        } else if !unchanged.contains(&server_id) {
            changes.push(ended(alert, "threshold_deleted", alerts.at));
        }
    }
    let new =
        alerts.failed.iter().filter(|(alert, _)| held.contains(&alert.server_id) && !open.contains(&alert.server_id));
    changes.extend(
        new.map(|(alert, audience)| AlertChange::Opened { alert: Box::new(alert.clone()), audience: audience.clone() }),
    );
    Ok(make(connection, &changes).await?.into_iter().flatten().collect())
}

/// The end of an alert; of one that a user has resolved, that it may be opened again.
fn ended(alert: &Alert, by: &'static str, at: Timestamp) -> AlertChange {
    match alert.resolved_at {
        Some(_) => AlertChange::Rearmed { id: alert.id, sample_at: at, at },
        None => AlertChange::Resolved { id: alert.id, by, sample_at: at, at },
    }
}
