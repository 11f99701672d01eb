//! The filter of a list of alerts.

use entity::{Millis, alert, alert_bucket, alert_count};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, Select};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::alert_span::{Buckets, Span};

pub(super) const RESOLVED: &str = "resolved";

/// Which alerts a list contains; a field that is none filters nothing.
#[derive(Debug, Clone, Default)]
pub struct AlertFilter {
    /// `active`, `acknowledged` or `resolved`.
    pub status: Option<&'static str>,
    /// Alerts of this server.
    pub server_id: Option<Uuid>,
    /// Alerts of this severity.
    pub severity: Option<&'static str>,
    /// Alerts about this metric.
    pub metric_type: Option<&'static str>,
    /// Alerts of this threshold.
    pub threshold_id: Option<Uuid>,
    /// Alerts that were not resolved before this.
    pub since: Option<Timestamp>,
    /// Alerts that were triggered before this.
    pub until: Option<Timestamp>,
}

impl AlertFilter {
    /// The range of ids that the filter's times allow; none without times.
    pub(super) fn span(&self) -> Option<Span> {
        (self.since.is_some() || self.until.is_some()).then(|| Span::new(self.since, self.until))
    }

    /// Whether the filter selects only unresolved alerts, which are few.
    pub(super) fn is_of_unresolved(&self) -> bool {
        self.status.is_some_and(|status| status != RESOLVED)
    }

    /// Whether the filter excludes kinds of alerts.
    pub(super) fn is_selective(&self) -> bool {
        self.server_id.is_some() || self.severity.is_some() || self.metric_type.is_some() || self.threshold_id.is_some()
    }

    /// The condition on the table of alerts.
    pub(super) fn condition(&self, owner_id: Uuid) -> Condition {
        self.in_time(self.kinds(owner_id))
    }

    /// The condition on the table of alerts of all owners.
    pub(super) fn matching(&self) -> Condition {
        self.in_time(self.kinds_of(Condition::all()))
    }

    /// Adds status and times to a condition on the table of alerts.
    fn in_time(&self, condition: Condition) -> Condition {
        use alert::Column;
        let unresolved_at =
            |since| Condition::any().add(Column::ResolvedAt.is_null()).add(Column::ResolvedAt.gte(Millis::from(since)));
        // No alert with another status has been resolved; saying so makes the database use the index of unresolved alerts.
        let unresolved = self.is_of_unresolved().then(|| Column::ResolvedAt.is_null());
        condition
            .add_option(self.status.map(|status| Column::Status.eq(status)))
            .add_option(unresolved)
            .add_option(self.since.map(unresolved_at))
            .add_option(self.until.map(|until| Column::TriggeredAt.lt(Millis::from(until))))
    }

    /// The condition on the table of alerts, without status and times.
    pub(super) fn kinds(&self, owner_id: Uuid) -> Condition {
        self.kinds_of(Condition::all().add(alert::Column::OwnerId.eq(owner_id)))
    }

    fn kinds_of(&self, condition: Condition) -> Condition {
        use alert::Column;
        condition
            .add_option(self.server_id.map(|id| Column::ServerId.eq(id)))
            .add_option(self.severity.map(|severity| Column::Severity.eq(severity)))
            .add_option(self.metric_type.map(|metric| Column::MetricType.eq(metric)))
            .add_option(self.threshold_id.map(|id| Column::ThresholdId.eq(id)))
    }

    /// Selects from the counts of alerts, ignoring times.
    pub(super) fn counted(&self, owner_id: Uuid) -> Select<alert_count::Entity> {
        use alert_count::Column;
        let kinds = Condition::all()
            .add(Column::OwnerId.eq(owner_id))
            .add_option(self.status.map(|status| Column::Status.eq(status)))
            .add(self.counted_kinds());
        alert_count::Entity::find().filter(kinds)
    }

    /// The condition on the counts of alerts, ignoring status and times.
    pub(super) fn counted_kinds(&self) -> Condition {
        use alert_count::Column;
        Condition::all()
            .add_option(self.server_id.map(|id| Column::ServerId.eq(id)))
            .add_option(self.severity.map(|severity| Column::Severity.eq(severity)))
            .add_option(self.metric_type.map(|metric| Column::MetricType.eq(metric)))
            .add_option(self.threshold_id.map(|id| Column::ThresholdId.eq(id)))
    }

    /// The condition on the counts of these buckets, ignoring status. None where the filter names a server and a threshold,
    /// which are counted separately.
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
