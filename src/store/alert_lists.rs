//! What is read of alerts: lists, timelines and counts.

use entity::{Millis, alert, alert_event};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, FromQueryResult, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Alert, AlertEvent, Page, PageRequest, Store, StoreError};

/// Which alerts.
#[derive(Debug, Clone, Default)]
pub struct AlertFilter {
    pub status: Option<&'static str>,
    pub server_id: Option<Uuid>,
    pub severity: Option<&'static str>,
    pub metric_type: Option<&'static str>,
    pub threshold_id: Option<Uuid>,
    /// Not resolved before this.
    pub since: Option<Timestamp>,
    /// Triggered before this.
    pub until: Option<Timestamp>,
}

/// How many alerts of a server have this status and severity.
#[derive(Debug, Clone, PartialEq, Eq, FromQueryResult)]
pub struct AlertCount {
    pub server_id: Uuid,
    pub status: String,
    pub severity: String,
    pub count: i64,
}

impl Store {
    /// The alerts of an owner, newest first.
    pub async fn list_alerts(
        &self,
        owner_id: Uuid,
        filter: AlertFilter,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        use alert::Column;
        let unresolved_at =
            |since| Condition::any().add(Column::ResolvedAt.is_null()).add(Column::ResolvedAt.gte(Millis::from(since)));
        let condition = Condition::all()
            .add(Column::OwnerId.eq(owner_id))
            .add_option(filter.status.map(|status| Column::Status.eq(status)))
            .add_option(filter.server_id.map(|id| Column::ServerId.eq(id)))
            .add_option(filter.severity.map(|severity| Column::Severity.eq(severity)))
            .add_option(filter.metric_type.map(|metric| Column::MetricType.eq(metric)))
            .add_option(filter.threshold_id.map(|id| Column::ThresholdId.eq(id)))
            .add_option(filter.since.map(unresolved_at))
            .add_option(filter.until.map(|until| Column::TriggeredAt.lt(Millis::from(until))));
        let query = alert::Entity::find().filter(condition);
        let total = query.clone().count(&self.read).await?;
        let items = query.order_by_desc(Column::Id).limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items, total })
    }

    /// The newest alerts of an owner that are not resolved, oldest first.
    pub async fn unresolved_alerts(&self, owner_id: Uuid, most: u64) -> Result<Vec<Alert>, StoreError> {
        let mut alerts = alert::Entity::find()
            .filter(alert::Column::OwnerId.eq(owner_id))
            .filter(alert::Column::ResolvedAt.is_null())
            .order_by_desc(alert::Column::Id)
            .limit(most)
            .all(&self.read)
            .await?;
        alerts.reverse();
        Ok(alerts)
    }

    /// What happened to an alert, in order.
    pub async fn alert_timeline(&self, alert_id: Uuid) -> Result<Vec<AlertEvent>, StoreError> {
        let events = alert_event::Entity::find()
            .filter(alert_event::Column::AlertId.eq(alert_id))
            .order_by_asc(alert_event::Column::Id);
        Ok(events.all(&self.read).await?)
    }

    /// How many alerts an owner has, by server, status and severity. One statement, so that the counts belong together.
    pub async fn count_alerts(&self, owner_id: Uuid) -> Result<Vec<AlertCount>, StoreError> {
        use alert::Column;
        let counts = alert::Entity::find()
            .select_only()
            .columns([Column::ServerId, Column::Status, Column::Severity])
            .column_as(Column::Id.count(), "count")
            .filter(Column::OwnerId.eq(owner_id))
            .group_by(Column::ServerId)
            .group_by(Column::Status)
            .group_by(Column::Severity);
        Ok(counts.into_model().all(&self.read).await?)
    }
}
