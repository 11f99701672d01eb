//! Evaluates `reboot` thresholds, by the service's clock.
//!
//! A reboot is over in a moment, and nobody would see an alert that ends as it begins. So the alert stays open for as long
//! as its threshold says, and ends with the first sample after that; while the machine is away, it stays open.
//!
//! The reboot is recorded before its alert. An evaluator reads that record when it starts, so that the alert is not lost
//! if the service ended in between.

use signalbox_protocol::Timestamp;

use super::alert_builder::Fired;
use super::alert_writer::Reboot;
use super::threshold_state::{Effect, SampleTime};
use super::watch::Watch;
use crate::alert_words::MetricType;
use crate::store::AlertChange;

impl Watch {
    /// Takes in that the machine rebooted; `at` is the time of the recorded event.
    pub fn rebooted(&mut self, at: Timestamp, now: Timestamp) -> Vec<AlertChange> {
        let moment = SampleTime { sample_at: at, now };
        let mut changes = Vec::new();
        let Self { server, watched, .. } = self;
        for watched in watched.iter_mut().filter(|it| it.metric == MetricType::Reboot) {
            let rule = watched.rule;
            let Some(track) = watched.tracks.first_mut() else { continue };
            if track.is_settled(moment) {
                continue;
            }
            track.settle(at);
            track.started_at = Some(now);
            // The value counts the reboots while the alert is open.
            let value = track.alert.map_or(0.0, |held| held.peak) + 1.0;
            match track.live(&rule, value, moment) {
                Effect::Nothing => {}
                Effect::Changed(change) => changes.push(change),
                Effect::Fired { since } => changes.push(Fired::of(value, since).open(server, watched, moment)),
            }
        }
        changes
    }

    /// Returns whether a recorded reboot could open an alert: a reboot threshold has none open.
    pub fn awaits_reboots(&self) -> bool {
        let mut of_reboots = self.watched.iter().filter(|it| it.metric == MetricType::Reboot);
        of_reboots.any(|watched| watched.tracks.iter().any(|track| track.alert.is_none()))
    }

    /// Takes in a reboot that was recorded before this evaluator started. It counts for thresholds that existed at the time
    /// and have had no alert for it.
    pub fn recall_reboot(&mut self, Reboot { at, settled }: &Reboot, now: Timestamp) -> Vec<AlertChange> {
        for watched in self.watched.iter_mut().filter(|it| it.metric == MetricType::Reboot) {
            let was_told = settled.get(&watched.threshold.id).is_some_and(|up_to| up_to >= at);
            let is_newer = Timestamp::from(watched.threshold.armed_at) >= *at;
            for track in &mut watched.tracks {
                if was_told || is_newer || track.alert.is_some() {
                    track.settle(*at);
                }
            }
        }
        self.rebooted(*at, now)
    }

    /// Takes in that a current sample arrived, so the machine is up: ends alerts that have been open for long enough.
    pub(super) fn look_at_starts(&mut self, now: Timestamp, changes: &mut Vec<AlertChange>) {
        for watched in self.watched.iter_mut().filter(|it| it.metric == MetricType::Reboot) {
            let (rule, stays_ms) = (watched.rule, (watched.threshold.threshold_value * 1000.0) as i64);
            let Some(track) = watched.tracks.first_mut() else { continue };
            if track.started_at.is_none_or(|at| now.millis_since(at) < stays_ms) {
                continue;
            }
            track.started_at = None;
            if let Effect::Changed(change) = track.live(&rule, 0.0, SampleTime { sample_at: now, now }) {
                changes.push(change);
            }
        }
    }
}
