//! What an alert is when it is opened.

use std::sync::Arc;

use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};
use uuid::Uuid;

use super::kind::{MetricType, Status, Trouble};
use super::text::{self, Occasion};
use super::watch::Server;
use super::watched::{Held, Moment, Watched};
use crate::store::{Alert, AlertChange};

/// A list of top processes comes once a minute: one that is older says nothing of now.
const PROCESSES_FOR_MS: i64 = 150 * 1000;

/// How many are named.
const NAMED: usize = 3;

/// Why a threshold fires.
pub(super) struct Fired<'a> {
    pub value: f64,
    /// Since when it crosses, by the clock that its duration is measured by.
    pub since: i64,
    /// Which disk, interface or sensor it is, of many.
    pub worst: Option<&'a str>,
    pub top: Vec<ProcessUsage>,
    /// Of a container rule.
    pub container: Option<(&'a str, Trouble, &'a str)>,
}

impl<'a> Fired<'a> {
    pub fn of(value: f64, since: i64) -> Self {
        Self { value, since, worst: None, top: Vec::new(), container: None }
    }

    /// The alert, which the threshold holds from now on.
    pub fn open(self, server: &Server, watched: &mut Watched, moment: Moment) -> AlertChange {
        let Moment { sample_at, now } = moment;
        let occasion = Occasion {
            metric: watched.metric,
            comparison: watched.rule.comparison,
            server: &server.name,
            target: watched.threshold.target.as_deref().or(self.worst),
            value: self.value,
            limit: watched.threshold.threshold_value,
            lasted_ms: sample_at.as_millis().saturating_sub(self.since),
            top: &self.top,
            container: self.container,
        };
        let message = text::triggered(&occasion);
        let threshold = &watched.threshold;
        let container = self.container.map(|(name, ..)| name);
        let alert = Alert {
            id: Uuid::now_v7(),
            owner_id: server.owner_id,
            server_id: server.id,
            threshold_id: threshold.id,
            metric_type: threshold.metric_type.clone(),
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
            track.alert = Some(Held { id: alert.id, peak: alert.peak_value });
        }
        AlertChange::Opened { alert: Box::new(alert), tags: server.tags.clone() }
    }
}

/// The processes that use the most of what is watched, if there is a list of now.
pub(super) fn top_processes(
    metric: MetricType,
    known: Option<&(Timestamp, Arc<TopProcesses>)>,
    at: Timestamp,
) -> Vec<ProcessUsage> {
    let Some((_, top)) = known.filter(|(taken, _)| at.millis_since(*taken) <= PROCESSES_FOR_MS) else {
        return Vec::new();
    };
    let list = match metric {
        MetricType::Cpu => &top.by_cpu,
        MetricType::Memory => &top.by_memory,
        _ => return Vec::new(),
    };
    list.iter().take(NAMED).cloned().collect()
}
