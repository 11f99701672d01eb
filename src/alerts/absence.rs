//! Evaluates `offline` thresholds: how long an agent has been away, by the service's clock.

use signalbox_protocol::Timestamp;

use super::alert_builder::Fired;
use super::threshold_state::{Effect, SampleTime};
use super::watch::Watch;
use crate::alert_words::MetricType;
use crate::store::AlertChange;

/// The precision of an absence: a tenth of a second.
const TENTH_MS: i64 = 100;

impl Watch {
    /// Takes in that the agent has been away since `since`, or is connected if that is `None`.
    pub fn absence(&mut self, since: Option<Timestamp>, now: Timestamp) -> Vec<AlertChange> {
        let mut changes = Vec::new();
        match (std::mem::replace(&mut self.absent_since, since), since) {
            (Some(since), None) => self.was_away(seconds(now.millis_since(since)), &mut changes),
            (None, Some(_)) => self.part(),
            _ => {}
        }
        let away = since.map_or(0.0, |since| seconds(now.millis_since(since)));
        self.away(away, now, &mut changes);
        changes
    }

    /// Takes in that the agent is back: the final length of its absence is the peak of every open alert.
    fn was_away(&mut self, value: f64, changes: &mut Vec<AlertChange>) {
        let rules = self.watched.iter_mut().filter(|it| it.metric == MetricType::Offline);
        for held in rules.flat_map(|it| &mut it.tracks).filter_map(|track| track.alert.as_mut()) {
            if value > held.peak {
                held.peak = value;
                changes.push(AlertChange::Worsened { id: held.id, value });
            }
        }
    }

    fn away(&mut self, value: f64, now: Timestamp, changes: &mut Vec<AlertChange>) {
        let moment = SampleTime { sample_at: now, now };
        let Self { server, watched, .. } = self;
        for watched in watched.iter_mut().filter(|it| it.metric == MetricType::Offline) {
            let rule = watched.rule;
            let Some(track) = watched.tracks.first_mut() else { continue };
            match track.live(&rule, value, moment) {
                Effect::Nothing => {}
                Effect::Changed(change) => changes.push(change),
                Effect::Fired { since } => {
                    changes.push(Fired::of(value, since).open(server, watched, moment));
                }
            }
        }
    }

    /// Returns when a threshold may fire next if the agent stays away.
    pub fn next_look(&self, since: Option<Timestamp>) -> Option<Timestamp> {
        let since = since?.as_millis();
        let rules = self.watched.iter().filter(|it| it.metric == MetricType::Offline);
        let times = rules.filter_map(|watched| {
            let track = watched.tracks.first()?;
            if track.alert.is_some() || !watched.rule.comparison.is_upper() {
                return None;
            }
            let crosses_at = since.saturating_add((watched.rule.threshold * 1000.0) as i64).saturating_add(TENTH_MS);
            let began = track.state.crossing_since(&watched.rule);
            Some(began.map_or(crosses_at, |began| began.saturating_add(watched.rule.duration_ms)))
        });
        times.min().map(Timestamp::from_millis)
    }

    /// Takes in that the agent has disconnected: its last values are no longer current.
    fn part(&mut self) {
        self.containers.part();
        for watched in self.watched.iter_mut().filter(|it| it.is_of_samples()) {
            for track in &mut watched.tracks {
                track.state.part();
                // Without samples nothing is known to be missing.
                track.is_not_lacking();
            }
        }
    }
}

/// Returns whole tenths of a second, in seconds.
fn seconds(millis: i64) -> f64 {
    millis.max(0).div_euclid(TENTH_MS) as f64 / 10.0
}
