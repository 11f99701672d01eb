//! Connects schedules with alerts, which are modules of one layer.

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::alerts::Alerts;
use crate::commands::schedules::{Alarms, Publishing, Raising};
use crate::store::{Alert, Schedule};

impl Alarms for Alerts {
    fn raise<'a>(&'a self, schedule: &'a Schedule, failures: &'a [(Uuid, String)], at: Timestamp) -> Raising<'a> {
        Box::pin(self.of_failures(schedule, failures, at))
    }

    fn publish<'a>(&'a self, alerts: &'a [Alert]) -> Publishing<'a> {
        Box::pin(Self::publish(self, alerts))
    }
}
