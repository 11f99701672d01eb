//! One threshold on one server: its rule, and its state for each of its targets.

use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::Unread;
use uuid::Uuid;

use super::measurement::series::SeriesQuery;
use super::measurement::{self, Measurement};
use super::rule::{Phase, Rule, State, Step};
use crate::alert_words::{Comparison, MetricType, Trouble};
use crate::fleet::Snapshot;
use crate::store::{Alert, AlertChange, Threshold};

/// A threshold with the state of its targets.
pub(super) struct ThresholdState {
    pub threshold: Arc<Threshold>,
    pub metric: MetricType,
    pub rule: Rule,
    /// The kinds of container trouble that count.
    pub troubles: Vec<Trouble>,
    /// One track, even if its value is the worst of many disks; for a container threshold one per container.
    pub tracks: Vec<Track>,
}

/// The state of a threshold on a target.
pub(super) struct Track {
    /// The name of the container; `None` for other metrics.
    pub container: Option<String>,
    pub state: State,
    /// The alert that is open, or that somebody resolved and whose metric has not recovered yet.
    pub alert: Option<TrackedAlert>,
    /// The last current value.
    pub last: f64,
    /// The last trouble of a container.
    pub trouble: Option<Trouble>,
    /// For a reboot threshold: when the last reboot was, while its alert is open.
    pub started_at: Option<Timestamp>,
    /// The time of the last sample that is known to be evaluated before this evaluator began.
    settled: Option<Timestamp>,
    gone: Option<Gone>,
    /// The disk, interface or sensor whose value last crossed, if the threshold has no target.
    worst: Option<String>,
}

/// Whether a sample lacks the target of a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// It has the target, or the agent could not read it.
    None,
    /// It lacks the target, but what the agent could not read is not known for this sample.
    Perhaps,
    Gone,
}

/// Consecutive samples that lack the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gone {
    since: Timestamp,
    until: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrackedAlert {
    pub id: Uuid,
    pub peak: f64,
}

/// The effect of a value.
pub(super) enum Effect {
    Nothing,
    /// An alert has to be opened.
    Fired {
        since: i64,
    },
    Changed(AlertChange),
}

/// The time of a measurement by the agent's clock, and the present time by ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleTime {
    pub sample_at: Timestamp,
    pub now: Timestamp,
}

impl ThresholdState {
    /// Returns `None` for a row that this version does not understand.
    pub fn of(threshold: Arc<Threshold>) -> Option<Self> {
        let metric = MetricType::of(&threshold.metric_type)?;
        if metric == MetricType::Series && threshold.series.is_none() {
            return None;
        }
        let (comparison, limit, clear) = match metric {
            // The value is at least 1 if the container is in trouble or the machine has rebooted.
            MetricType::ContainerState | MetricType::Reboot => (Comparison::Gte, 1.0, None),
            _ => (Comparison::of(&threshold.comparison)?, threshold.threshold_value, threshold.clear_value),
        };
        let rule =
            Rule { comparison, threshold: limit, clear, duration_ms: i64::from(threshold.duration_seconds) * 1000 };
        let named = threshold.states.as_deref().map(|states| states.split(',').filter_map(Trouble::of).collect());
        let troubles = match metric {
            MetricType::ContainerState => named.unwrap_or_else(|| Trouble::ALL.to_vec()),
            _ => Vec::new(),
        };
        let mut watched = Self { metric, rule, troubles, tracks: Vec::new(), threshold };
        if metric != MetricType::ContainerState {
            watched.tracks.push(Track::new(None, State::default()));
        }
        Some(watched)
    }

    /// Returns whether it is evaluated on samples.
    pub fn is_of_samples(&self) -> bool {
        !matches!(self.metric, MetricType::Offline | MetricType::ContainerState | MetricType::Reboot)
    }

    /// Returns whether a sample lacks the target. `unread` lists what the agent could not read; `None` if not known.
    pub fn lack(&self, snapshot: &Snapshot, unread: Option<&[Unread]>) -> Lack {
        let target = self.threshold.target.as_deref();
        if !self.is_gone(target, snapshot) {
            return Lack::None;
        }
        match unread {
            None => Lack::Perhaps,
            Some(unread) if self.is_unread(target, unread) => Lack::None,
            Some(_) => Lack::Gone,
        }
    }

    /// Returns whether a complete sample lacks this target.
    fn is_gone(&self, target: Option<&str>, snapshot: &Snapshot) -> bool {
        match self.asked() {
            Some(asked) => {
                snapshot.sample.memory_total > 0
                    && measurement::series::is_gone(SeriesQuery { target, ..asked }, &snapshot.open)
            }
            None => measurement::is_gone(self.metric, target, &snapshot.sample),
        }
    }

    /// Returns whether the agent reports that it could not read this target.
    fn is_unread(&self, target: Option<&str>, unread: &[Unread]) -> bool {
        match self.asked() {
            Some(asked) => measurement::series::is_unread(SeriesQuery { target, ..asked }, unread),
            None => measurement::is_unread(self.metric, target, unread),
        }
    }

    /// Returns the open series of this threshold; `None` if it is about another metric.
    pub fn asked(&self) -> Option<SeriesQuery<'_>> {
        let name = self.threshold.series.as_deref().filter(|_| self.metric == MetricType::Series)?;
        Some(SeriesQuery { name, target: self.threshold.target.as_deref(), comparison: self.rule.comparison })
    }

    /// Returns whether the threshold watches the worst of all, and the one that was worst is not known now. Lower values of
    /// the others are not a recovery then.
    pub fn is_worst_hidden(&self, snapshot: &Snapshot, unread: Option<&[Unread]>) -> bool {
        let worst = self.tracks.first().and_then(|track| track.worst.as_deref());
        let Some(worst) = worst.filter(|_| self.threshold.target.is_none()) else { return false };
        match unread {
            Some(unread) => self.is_unread(Some(worst), unread),
            None => self.is_gone(Some(worst), snapshot),
        }
    }

    /// Returns how old a sample may be to matter, in milliseconds.
    pub fn window_ms(&self) -> i64 {
        self.rule.duration_ms + (self.rule.duration_ms / 10).max(5 * 60 * 1000)
    }

    /// Takes over an alert that is open or waits for its metric to recover.
    pub fn hold(&mut self, alert: &Alert) {
        let phase = if alert.resolved_at.is_none() { Phase::Firing } else { Phase::Muted };
        let state = State::new(phase, Some(Timestamp::from(alert.sample_at).as_millis()));
        let held = TrackedAlert { id: alert.id, peak: alert.peak_value };
        let track = if self.metric == MetricType::ContainerState {
            self.track(alert.target.as_deref().unwrap_or_default())
        } else {
            self.tracks.first_mut()
        };
        if let Some(track) = track {
            (track.state, track.alert) = (state, Some(held));
            track.worst.clone_from(&alert.worst_target);
            track.started_at = Some(alert.triggered_at.into());
            track.settle(Timestamp::from(alert.sample_at));
        }
    }

    /// Returns the track of a container; adds one if it has none.
    pub fn track(&mut self, container: &str) -> Option<&mut Track> {
        let known = self.tracks.iter().position(|track| track.container.as_deref() == Some(container));
        let place = known.unwrap_or_else(|| {
            self.tracks.push(Track::new(Some(container.to_owned()), State::default()));
            self.tracks.len() - 1
        });
        self.tracks.get_mut(place)
    }

    /// Returns the changes that end all alerts of this threshold, because it no longer exists.
    pub fn end(self, now: Timestamp) -> impl Iterator<Item = AlertChange> {
        self.tracks.into_iter().filter_map(move |track| track.end(now))
    }
}

impl Track {
    fn new(container: Option<String>, state: State) -> Self {
        Self {
            container,
            state,
            alert: None,
            last: 0.0,
            trouble: None,
            started_at: None,
            settled: None,
            gone: None,
            worst: None,
        }
    }

    /// Records which target was the worst, if the value crosses.
    pub fn note_worst(&mut self, rule: &Rule, reading: &Measurement<'_>) {
        let worst = reading.worst.filter(|_| rule.goes_on(reading.value));
        if self.worst.as_deref() != worst {
            self.worst = worst.map(str::to_owned);
        }
    }

    /// Records that samples up to this time were evaluated before the restart, and their changes written.
    pub fn settle(&mut self, up_to: Timestamp) {
        self.settled = self.settled.max(Some(up_to));
    }

    /// Returns whether a sample was already evaluated before the restart. A recorded time in the future came from a clock that
    /// was ahead, and is ignored.
    pub fn is_settled(&self, moment: SampleTime) -> bool {
        self.settled.is_some_and(|up_to| moment.sample_at <= up_to && up_to <= moment.now)
    }

    /// Takes in a current value.
    pub fn live(&mut self, rule: &Rule, value: f64, moment: SampleTime) -> Effect {
        self.last = value;
        let step = self.state.live(rule, moment.sample_at.as_millis(), value);
        self.came(rule, step, value, moment)
    }

    /// Takes in that a complete sample lacks the target. After `patience` it counts as gone; a single sample may lack what its
    /// collector could not read.
    pub fn lacks(&mut self, patience: Duration, moment: SampleTime) -> Effect {
        let SampleTime { sample_at, now: at } = moment;
        self.note_lack(sample_at);
        let lasts = self.gone.map_or(0, |gone| gone.until.millis_since(gone.since));
        if i128::from(lasts) < i128::try_from(patience.as_millis()).unwrap_or(i128::MAX) {
            return Effect::Nothing;
        }
        match (self.state.gone(sample_at.as_millis()), self.alert.take()) {
            (Step::Recovers, Some(TrackedAlert { id, .. })) => {
                Effect::Changed(AlertChange::Resolved { id, by: "target_gone", sample_at, at })
            }
            (Step::Rearms, Some(TrackedAlert { id, .. })) => {
                Effect::Changed(AlertChange::Rearmed { id, sample_at, at })
            }
            _ => Effect::Nothing,
        }
    }

    /// Records that a sample lacks the target.
    pub fn note_lack(&mut self, at: Timestamp) {
        self.gone = Some(match self.gone {
            // If the clock was set back, the count starts again.
            Some(gone) if at >= gone.until => Gone { until: at, ..gone },
            _ => Gone { since: at, until: at },
        });
    }

    /// Takes in that the target exists, or that this is not known because the agent has disconnected.
    pub fn is_not_lacking(&mut self) {
        self.gone = None;
    }

    /// Takes in a value of the past.
    pub fn late(&mut self, rule: &Rule, value: f64, at: Timestamp) -> Effect {
        match self.state.late(rule, at.as_millis(), value) {
            Step::Fires { since } => Effect::Fired { since },
            _ => Effect::Nothing,
        }
    }

    fn came(&mut self, rule: &Rule, step: Step, value: f64, moment: SampleTime) -> Effect {
        let SampleTime { sample_at, now: at } = moment;
        match (step, self.alert) {
            (Step::Fires { since }, _) => Effect::Fired { since },
            (Step::GoesOn, Some(held)) if rule.comparison.is_worse(value, held.peak) => {
                self.alert = Some(TrackedAlert { peak: value, ..held });
                Effect::Changed(AlertChange::Worsened { id: held.id, value })
            }
            (Step::Recovers, Some(TrackedAlert { id, .. })) => {
                self.alert = None;
                Effect::Changed(AlertChange::Resolved { id, by: "recovery", sample_at, at })
            }
            (Step::Rearms, Some(TrackedAlert { id, .. })) => {
                self.alert = None;
                Effect::Changed(AlertChange::Rearmed { id, sample_at, at })
            }
            (Step::Nothing | Step::GoesOn | Step::Recovers | Step::Rearms, _) => Effect::Nothing,
        }
    }

    fn end(self, at: Timestamp) -> Option<AlertChange> {
        let id = self.alert?.id;
        Some(match self.state.phase() {
            Phase::Muted => AlertChange::Rearmed { id, sample_at: at, at },
            _ => AlertChange::Resolved { id, by: "threshold_deleted", sample_at: at, at },
        })
    }
}
