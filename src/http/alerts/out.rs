//! The alerts of responses.

use std::collections::BTreeMap;

use paperclip::actix::Apiv2Schema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::words::{AlertSourceOut, AlertStatusOut, ComparisonOut, SeverityOut};
use crate::alert_words::{Severity, Status};
use crate::http::extract::field::described;
use crate::http::field_out::{Id, TimeOut};
use crate::http::people_out::PersonOut;
use crate::store::alert_view;
use crate::store::{Alert, AlertCount, AlertEvent};

/// An alert: what the threshold required when it fired, and what has happened since.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AlertOut {
    id: Id,
    /// The threshold. For `schedule`, the schedule: only whose it is may read it.
    threshold_id: Id,
    server_id: Id,
    /// Who owns the server: others may share theirs with you.
    owner: PersonOut,
    metric_type: AlertSourceOut,
    /// For `series`: the name of the open series.
    series: Option<String>,
    /// For `series`: the unit of the values; for a counter, the unit of its rate.
    unit: Option<String>,
    /// The target that the threshold names; for `container_state`, the container; for `schedule`, its name. Null means the worst of all targets.
    target: Option<String>,
    /// The disk, interface, sensor or target of an open series that had the worst value.
    worst_target: Option<String>,
    threshold_value: f64,
    clear_value: Option<f64>,
    comparison: ComparisonOut,
    duration_seconds: i32,
    /// The value when it fired. For `schedule`, 1.
    value: f64,
    /// The worst value since. For `schedule`, how many runs failed since, or were missed.
    peak_value: f64,
    status: AlertStatusOut,
    severity: SeverityOut,
    message: String,
    /// A silence was active when it fired: it was recorded but not sent.
    silenced: bool,
    triggered_at: TimeOut,
    acknowledged_at: Option<TimeOut>,
    acknowledged_by: Option<Id>,
    resolved_at: Option<TimeOut>,
    /// `recovery`, `threshold_deleted` (also of a schedule that was deleted or paused, or does not run there any more), `target_gone`, or the id of the user who resolved it.
    resolved_by: Option<String>,
}

impl AlertOut {
    pub fn new(alert: &Alert, owner: PersonOut) -> Self {
        let alert = alert_view(alert);
        Self {
            id: Id(alert.id),
            threshold_id: Id(alert.threshold_id),
            server_id: Id(alert.server_id),
            owner,
            metric_type: AlertSourceOut(alert.metric_type),
            series: alert.series,
            unit: alert.unit,
            target: alert.target,
            worst_target: alert.worst_target,
            threshold_value: alert.threshold_value,
            clear_value: alert.clear_value,
            comparison: ComparisonOut(alert.comparison),
            duration_seconds: alert.duration_seconds,
            value: alert.value,
            peak_value: alert.peak_value,
            status: AlertStatusOut(alert.status),
            severity: SeverityOut(alert.severity),
            message: alert.message,
            silenced: alert.silenced,
            triggered_at: TimeOut(alert.triggered_at),
            acknowledged_at: alert.acknowledged_at.map(TimeOut),
            acknowledged_by: alert.acknowledged_by.map(Id),
            resolved_at: alert.resolved_at.map(TimeOut),
            resolved_by: alert.resolved_by,
        }
    }
}

/// An alert with its timeline.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AlertDetailOut {
    #[serde(flatten)]
    alert: AlertOut,
    /// Oldest first.
    timeline: Vec<AlertEventOut>,
}

impl AlertDetailOut {
    pub fn new(alert: AlertOut, timeline: Vec<AlertEvent>) -> Self {
        Self { alert, timeline: timeline.into_iter().map(AlertEventOut::from).collect() }
    }
}

/// An entry in the timeline of an alert.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AlertEventOut {
    at: TimeOut,
    kind: AlertEventKind,
    /// The user who did it, with the name at that time; null for the service.
    user_id: Option<Id>,
    username: Option<String>,
    /// For `triggered`, what was wrong; for `note`, its text; for `resolved`, the cause, or the name of the user who
    /// resolved it.
    detail: Option<String>,
}

/// The kind of an entry in an alert's timeline.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct AlertEventKind(String);

described!(
    AlertEventKind,
    json!({ "type": "string", "enum": ["triggered", "silenced", "acknowledged", "note", "resolved", "rearmed"] })
);

impl From<AlertEvent> for AlertEventOut {
    fn from(event: AlertEvent) -> Self {
        // Rows of earlier versions contain the user's id here.
        let has_id = event.detail.is_some() && event.detail == event.user_id.map(|id| id.to_string());
        Self {
            at: TimeOut(event.at.into()),
            kind: AlertEventKind(event.kind),
            user_id: event.user_id.map(Id),
            detail: if has_id { event.username.clone() } else { event.detail },
            username: event.username,
        }
    }
}

/// Counts of alerts.
#[derive(Debug, Default, Serialize, Apiv2Schema)]
pub struct AlertSummaryOut {
    total: u64,
    by_status: StatusCountsOut,
    /// Counts only alerts that are not resolved.
    by_severity: SeverityCountsOut,
    /// Servers with unresolved alerts, the worst first.
    servers: Vec<ServerAlertsOut>,
}

#[derive(Debug, Default, Serialize, Apiv2Schema)]
pub struct StatusCountsOut {
    active: u64,
    acknowledged: u64,
    resolved: u64,
}

#[derive(Debug, Default, Serialize, Apiv2Schema)]
pub struct SeverityCountsOut {
    info: u64,
    warning: u64,
    critical: u64,
}

/// The unresolved alerts of a server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ServerAlertsOut {
    server_id: Id,
    active: u64,
    acknowledged: u64,
    worst_severity: SeverityOut,
}

impl AlertSummaryOut {
    pub fn new(counts: Vec<AlertCount>) -> Self {
        let mut summary = Self::default();
        let mut servers: BTreeMap<Uuid, Unresolved> = BTreeMap::new();
        for row in counts {
            let count = u64::try_from(row.count).unwrap_or_default();
            summary.total += count;
            // The service writes no other words.
            let (Some(status), Some(severity)) = (Status::of(&row.status), Severity::of(&row.severity)) else {
                continue;
            };
            summary.by_status.add(status, count);
            if status != Status::Resolved {
                summary.by_severity.add(severity, count);
            }
            if let Some(server_id) = row.server_id.filter(|_| status != Status::Resolved) {
                servers.entry(server_id).or_default().add(status, severity, count);
            }
        }
        let mut servers: Vec<_> = servers.into_iter().collect();
        servers.sort_by_key(|(_, unresolved)| std::cmp::Reverse(unresolved.worst));
        summary.servers = servers.into_iter().map(|(server_id, unresolved)| unresolved.of(server_id)).collect();
        summary
    }
}

impl StatusCountsOut {
    fn add(&mut self, status: Status, count: u64) {
        match status {
            Status::Active => self.active += count,
            Status::Acknowledged => self.acknowledged += count,
            Status::Resolved => self.resolved += count,
        }
    }
}

impl SeverityCountsOut {
    fn add(&mut self, severity: Severity, count: u64) {
        match severity {
            Severity::Info => self.info += count,
            Severity::Warning => self.warning += count,
            Severity::Critical => self.critical += count,
        }
    }
}

/// The unresolved alerts of one server, counted.
struct Unresolved {
    counts: StatusCountsOut,
    worst: Severity,
}

impl Default for Unresolved {
    fn default() -> Self {
        Self { counts: StatusCountsOut::default(), worst: Severity::Info }
    }
}

impl Unresolved {
    fn add(&mut self, status: Status, severity: Severity, count: u64) {
        self.counts.add(status, count);
        self.worst = self.worst.max(severity);
    }

    fn of(self, server_id: Uuid) -> ServerAlertsOut {
        ServerAlertsOut {
            server_id: Id(server_id),
            active: self.counts.active,
            acknowledged: self.counts.acknowledged,
            worst_severity: SeverityOut(self.worst.word().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(server: u128, status: &str, severity: &str, count: i64) -> AlertCount {
        AlertCount {
            server_id: Some(Uuid::from_u128(server)),
            status: status.to_owned(),
            severity: severity.to_owned(),
            count,
        }
    }

    #[test]
    fn resolved_alerts_count_by_status_only() {
        let counts = vec![
            count(1, "active", "info", 1),
            count(1, "acknowledged", "warning", 2),
            count(2, "active", "critical", 3),
            count(3, "resolved", "critical", 4),
        ];

        let summary = serde_json::to_value(AlertSummaryOut::new(counts)).unwrap();

        let expected = json!({
            "total": 10,
            "by_status": { "active": 4, "acknowledged": 2, "resolved": 4 },
            "by_severity": { "info": 1, "warning": 2, "critical": 3 },
            "servers": [
                { "server_id": Uuid::from_u128(2), "active": 3, "acknowledged": 0, "worst_severity": "critical" },
                { "server_id": Uuid::from_u128(1), "active": 1, "acknowledged": 2, "worst_severity": "warning" },
            ],
        });
        assert_eq!(summary, expected);
    }
}
