//! tmp
use crate::store;
use signalbox_protocol::alert::Alert;
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
        acknowledged_at: alert.acknowledged_at.map(Into::into),
        acknowledged_by: alert.acknowledged_by,
        resolved_at: alert.resolved_at.map(Into::into),
        resolved_by: alert.resolved_by.clone(),
    }
}
