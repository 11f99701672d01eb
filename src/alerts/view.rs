//! An alert as people are told of it.

use signalbox_protocol::Timestamp;
use signalbox_protocol::alert::Alert;

use crate::store;

/// What dashboards, webhooks and the REST API show of an alert that is kept.
pub fn view(alert: &store::Alert) -> Alert {
    Alert {
        id: alert.id,
        threshold_id: alert.threshold_id,
        server_id: alert.server_id,
        metric_type: alert.metric_type.clone(),
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
