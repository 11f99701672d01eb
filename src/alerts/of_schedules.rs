//! The alerts of schedules. No evaluator opens them: a run that failed does, in the transaction that notes how it ended.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Alerts, text};
use crate::alert_words::{Comparison, Status};
use crate::store::{Alert, AlertAudience, RuleScope, SCHEDULE, Schedule, StoreError};

impl Alerts {
    /// The alerts of servers on which a run failed, each with what happened there, and whose channels to notify.
    pub async fn of_failures(
        &self,
        schedule: &Schedule,
        failures: &[(Uuid, String)],
        at: Timestamp,
    ) -> Result<Vec<(Alert, AlertAudience)>, StoreError> {
        let ids: Vec<Uuid> = failures.iter().map(|(server_id, _)| *server_id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let failures: HashMap<Uuid, &str> = failures.iter().map(|(id, what)| (*id, what.as_str())).collect();
        let mut silences = HashMap::new();
        let mut alerts = Vec::new();
        for server in self.writer.store.watched_servers(RuleScope::Servers(&ids)).await? {
            let what = failures.get(&server.server_id).copied().unwrap_or_default();
            let message = text::of_schedule(&schedule.name, &server.name, what);
            let mut alert = new_alert(schedule, (server.server_id, server.owner_id), message, at);
            let silences = match silences.entry(server.owner_id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(self.writer.store.silences_of(server.owner_id, at).await?),
            };
            let audience = self.writer.prepare(&mut alert, silences, server.tags);
            alerts.push((alert, audience));
        }
        Ok(alerts)
    }

    /// Publishes alerts that were opened or ended, and wakes the notifier.
    pub async fn publish(&self, alerts: &[Alert]) {
        for alert in alerts {
            self.writer.tell(alert).await;
        }
        if !alerts.is_empty() {
            self.writer.notifier.nudge();
        }
    }
}

/// Its value is one failure, and its worst value counts those that follow.
fn new_alert(schedule: &Schedule, (server_id, owner_id): (Uuid, Uuid), message: String, at: Timestamp) -> Alert {
    Alert {
        id: Uuid::now_v7(),
        owner_id,
        server_id,
        threshold_id: schedule.id,
        threshold_revision: 0,
        metric_type: SCHEDULE.to_owned(),
        series: None,
        unit: None,
        target: Some(schedule.name.clone()),
        worst_target: None,
        threshold_value: 1.0,
        clear_value: None,
        comparison: Comparison::Gte.word().to_owned(),
        duration_seconds: 0,
        severity: schedule.severity.clone(),
        status: Status::Active.word().to_owned(),
        value: 1.0,
        peak_value: 1.0,
        message,
        is_silenced: false,
        sample_at: at.into(),
        notify_at: None,
        triggered_at: at.into(),
        acknowledged_at: None,
        acknowledged_by: None,
        resolved_at: None,
        resolved_by: None,
        rearmed_at: None,
    }
}
