//! Builds an alert that is being opened.

use std::sync::Arc;

use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::TopProcesses;
use uuid::Uuid;

use super::measurement::Unit;
use super::text::{self, AlertSubject, Measured};
use super::threshold_state::{SampleTime, ThresholdState, TrackedAlert};
use super::watch::Server;
use crate::alert_words::{Status, Trouble};
use crate::store::{Alert, AlertAudience, AlertChange};

/// How old a list of top processes may be. Agents send one every minute, so this allows for a missing one.
const PROCESSES_FOR_MS: i64 = 150 * 1000;

/// Why a threshold fires.
pub(super) struct Fired<'a> {
    pub value: f64,
    /// Since when the value has crossed, in milliseconds of the clock that measures the duration.
    pub since: i64,
    /// The disk, interface or sensor with the worst value, if the threshold has no target.
    pub worst: Option<&'a str>,
    /// The unit of an open series.
    pub unit: Option<Unit<'a>>,
    pub processes: Option<&'a TopProcesses>,
    /// The container, for a container threshold.
    pub container: Option<InTrouble<'a>>,
}

/// A container that is in trouble.
pub(super) struct InTrouble<'a> {
    pub name: &'a str,
    pub trouble: Trouble,
    pub exit_code: Option<i64>,
}

impl<'a> Fired<'a> {
    pub fn of(value: f64, since: i64) -> Self {
        Self { value, since, worst: None, unit: None, processes: None, container: None }
    }

    /// Returns the change that opens the alert, and makes the threshold hold it.
    pub fn open(self, server: &Server, watched: &mut ThresholdState, moment: SampleTime) -> AlertChange {
        let SampleTime { sample_at, now } = moment;
        let container = self.container.as_ref().map(|it| it.name);
        let what = AlertSubject {
            metric: watched.metric,
            series: watched.threshold.series.as_deref(),
            target: container.or(watched.threshold.target.as_deref()).or(self.worst),
            server: &server.name,
        };
        let message = text::fired(
            &what,
            &Measured {
                value: self.value,
                unit: self.unit,
                comparison: watched.rule.comparison,
                limit: watched.threshold.threshold_value,
                lasted_ms: sample_at.as_millis().saturating_sub(self.since),
                processes: self.processes,
                trouble: self.container.as_ref().map(|it| it.trouble),
                exit_code: self.container.as_ref().and_then(|it| it.exit_code),
            },
        );
        let threshold = &watched.threshold;
        let alert = Alert {
            id: Uuid::now_v7(),
            owner_id: server.owner_id,
            server_id: server.id,
            threshold_id: threshold.id,
            threshold_revision: threshold.revision,
            metric_type: threshold.metric_type.clone(),
            series: threshold.series.clone(),
            unit: self.unit.map(|unit| unit.of_values().to_owned()),
            target: container.map(str::to_owned).or_else(|| threshold.target.clone()),
            worst_target: self.worst.filter(|_| threshold.target.is_none()).map(str::to_owned),
            threshold_value: threshold.threshold_value,
            clear_value: threshold.clear_value,
            comparison: threshold.comparison.clone(),
            duration_seconds: threshold.duration_seconds,
            severity: threshold.severity.clone(),
            status: Status::Active.word().to_owned(),
            value: self.value,
            peak_value: self.value,
            message,
            is_silenced: false,
            sample_at: sample_at.into(),
            notify_at: None,
            triggered_at: now.into(),
            acknowledged_at: None,
            acknowledged_by: None,
            resolved_at: None,
            resolved_by: None,
            rearmed_at: None,
        };
        let track = match container {
            Some(name) => watched.track(name),
            None => watched.tracks.first_mut(),
        };
        if let Some(track) = track {
            track.alert = Some(TrackedAlert { id: alert.id, peak: alert.peak_value });
        }
        // The viewers of the server are looked up when the alert is written.
        let audience = AlertAudience { tags: server.tags.clone(), viewers: Vec::new() };
        AlertChange::Opened { alert: Box::new(alert), audience }
    }
}

/// Returns the top processes, if there is a recent enough list.
pub(super) fn processes_at(known: Option<&(Timestamp, Arc<TopProcesses>)>, at: Timestamp) -> Option<&TopProcesses> {
    let (_, top) = known.filter(|(taken, _)| at.millis_since(*taken) <= PROCESSES_FOR_MS)?;
    Some(top)
}
