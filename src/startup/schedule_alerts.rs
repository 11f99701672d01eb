//! Connects schedules with alerts, which are modules of one layer.

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::alerts::Alerts;
use crate::commands::schedules::Alarms;
use crate::store::{Alert, AlertAudience, Schedule, StoreError};

impl Alarms for Alerts {
    async fn raise(
        &self,
        schedule: &Schedule,
        failures: &[(Uuid, String)],
        at: Timestamp,
    ) -> Result<Vec<(Alert, AlertAudience)>, StoreError> {
        self.of_failures(schedule, failures, at).await
    }

    async fn publish(&self, alerts: &[Alert]) {
        Self::publish(self, alerts).await;
    }
}
