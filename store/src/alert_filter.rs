//! Which alerts a list has.

use entity::{Millis, alert, alert_bucket, alert_count};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, Select};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::alert_span::{Buckets, Span};

pub(super) const RESOLVED: &str = "resolved";

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

impl AlertFilter {
    /// Where they are, if the filter has times.
    pub(super) fn span(&self) -> Option<Span> {
        (self.since.is_some() || self.until.is_some()).then(|| Span::new(self.since, self.until))
    }

    /// Whether it asks for those alone that are not resolved, which are few.
    pub(super) fn is_of_unresolved(&self) -> bool {
        self.status.is_some_and(|status| status != RESOLVED)
    }

    /// Whether it leaves out kinds of alerts.
    pub(super) fn is_selective(&self) -> bool {
        self.server_id.is_some() || self.severity.is_some() || self.metric_type.is_some() || self.threshold_id.is_some()
    }

    /// The alerts themselves.
    pub(super) fn condition(&self, owner_id: Uuid) -> Condition {
        use alert::Column;
        let unresolved_at =
            |since| Condition::any().add(Column::ResolvedAt.is_null()).add(Column::ResolvedAt.gte(Millis::from(since)));
        // Nobody has resolved what has another status: said so that the index of those few is used.
        let unresolved = self.is_of_unresolved().then(|| Column::ResolvedAt.is_null());
        self.kinds(owner_id)
            .add_option(self.status.map(|status| Column::Status.eq(status)))
            .add_option(unresolved)
            .add_option(self.since.map(unresolved_at))
            .add_option(self.until.map(|until| Column::TriggeredAt.lt(Millis::from(until))))
    }

    /// The alerts themselves, whatever their status and whenever they were.
    pub(super) fn kinds(&self, owner_id: Uuid) -> Condition {
        use alert::Column;
        Condition::all()
            .add(Column::OwnerId.eq(owner_id))
            .add_option(self.server_id.map(|id| Column::ServerId.eq(id)))
            .add_option(self.severity.map(|severity| Column::Severity.eq(severity)))
            .add_option(self.metric_type.map(|metric| Column::MetricType.eq(metric)))
            .add_option(self.threshold_id.map(|id| Column::ThresholdId.eq(id)))
    }

    /// What is known of how many there are, but for times.
    pub(super) fn counted(&self, owner_id: Uuid) -> Select<alert_count::Entity> {
        use alert_count::Column;
        let kinds = Condition::all()
            .add(Column::OwnerId.eq(owner_id))
            .add_option(self.status.map(|status| Column::Status.eq(status)))
            .add_option(self.server_id.map(|id| Column::ServerId.eq(id)))
            .add_option(self.severity.map(|severity| Column::Severity.eq(severity)))
            .add_option(self.metric_type.map(|metric| Column::MetricType.eq(metric)))
            .add_option(self.threshold_id.map(|id| Column::ThresholdId.eq(id)));
        alert_count::Entity::find().filter(kinds)
    }

    /// What is counted of these buckets, whatever the alerts' status. None where a server and a threshold are asked for at
    /// once, which are counted apart.
    pub(super) fn counted_in(&self, owner_id: Uuid, buckets: Buckets) -> Option<Condition> {
        use alert_bucket::Column;
        let (scope, scope_id) = match (self.server_id, self.threshold_id) {
            (None, None) => ("owner", owner_id),
            (Some(id), None) => ("server", id),
            (None, Some(id)) => ("threshold", id),
            (Some(_), Some(_)) => return None,
        };
        let counted = buckets
            .condition()
            .add(Column::OwnerId.eq(owner_id))
            .add(Column::Scope.eq(scope))
            .add(Column::ScopeId.eq(scope_id))
            .add_option(self.metric_type.map(|metric| Column::MetricType.eq(metric)))
            .add_option(self.severity.map(|severity| Column::Severity.eq(severity)));
        Some(counted)
    }
}
