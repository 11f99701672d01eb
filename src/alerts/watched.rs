//! One threshold on one server: what it goes by, and where it stands on each of its targets.

use std::sync::Arc;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::Unread;
use uuid::Uuid;

use super::reading::series::Asked;
use super::reading::{self, Reading};
use super::rule::{Phase, Rule, State, Step};
use crate::alert_words::{Comparison, MetricType, Trouble};
use crate::fleet::Snapshot;
use crate::store::{Alert, AlertChange, Threshold};

/// A threshold and its targets.
pub(super) struct Watched {
    pub threshold: Arc<Threshold>,
    pub metric: MetricType,
    pub rule: Rule,
    /// Which troubles of containers count.
    pub troubles: Vec<Trouble>,
    /// One for what has one value, however many disks it may come from; of a container rule one a container.
    pub tracks: Vec<Track>,
}

/// Where a threshold stands on a target.
pub(super) struct Track {
    /// The container; none for anything else.
    pub container: Option<String>,
    pub state: State,
    /// The alert that is open, or was resolved by hand and waits for the metric to recover.
    pub alert: Option<Held>,
    /// The last value of now.
    pub last: f64,
    /// Of a container: what was wrong with it the last time.
    pub trouble: Option<Trouble>,
    /// Of starts of the machine: when the last was, while an alert is open for it.
    pub started_at: Option<Timestamp>,
    /// Up to which sample it was looked at before the service restarted, as far as is known.
    settled: Option<Timestamp>,
    gone: Option<Gone>,
    /// Of all disks, interfaces or sensors: the one that was last too much.
    worst: Option<String>,
}

/// Whether a sample lacks what a threshold is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// It is there, or was not read.
    None,
    /// It is not there, and what was not read nobody knows any more.
    Perhaps,
    Gone,
}

/// Samples in a row that lack what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gone {
    since: Timestamp,
    until: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Held {
    pub id: Uuid,
    pub peak: f64,
}

/// A value that was looked at, and what came of it.
pub(super) enum Came {
    Nothing,
    /// An alert is to be opened.
    Fired {
        since: i64,
    },
    Changed(AlertChange),
}

/// When something was measured, by the agent's clock and by ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub sample_at: Timestamp,
    pub now: Timestamp,
}

impl Watched {
    /// None where the row says what this version does not know.
    pub fn of(threshold: Arc<Threshold>) -> Option<Self> {
        let metric = MetricType::of(&threshold.metric_type)?;
        if metric == MetricType::Series && threshold.series.is_none() {
            return None;
        }
        let (comparison, limit, clear) = match metric {
            // Whether it is in trouble, or was started again: yes or no.
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

    /// Whether it reads samples.
    pub fn is_of_samples(&self) -> bool {
        !matches!(self.metric, MetricType::Offline | MetricType::ContainerState | MetricType::Reboot)
    }

    /// Whether a sample lacks what it is about; `unread` where that is known.
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

    /// Whether a complete sample lacks this target of what it is about.
    fn is_gone(&self, target: Option<&str>, snapshot: &Snapshot) -> bool {
        match self.asked() {
            Some(asked) => {
                snapshot.sample.memory_total > 0 && reading::series::is_gone(Asked { target, ..asked }, &snapshot.open)
            }
            None => reading::is_gone(self.metric, target, &snapshot.sample),
        }
    }

    /// Whether an agent says that it could not read this target of what it is about.
    fn is_unread(&self, target: Option<&str>, unread: &[Unread]) -> bool {
        match self.asked() {
            Some(asked) => reading::series::is_unread(Asked { target, ..asked }, unread),
            None => reading::is_unread(self.metric, target, unread),
        }
    }

    /// The open series that it is about; none where it is about something else.
    pub fn asked(&self) -> Option<Asked<'_>> {
        let name = self.threshold.series.as_deref().filter(|_| self.metric == MetricType::Series)?;
        Some(Asked { name, target: self.threshold.target.as_deref(), comparison: self.rule.comparison })
    }

    /// Whether it goes by the worst of all, and of what was that nothing is known: the others are no recovery.
    pub fn is_worst_hidden(&self, snapshot: &Snapshot, unread: Option<&[Unread]>) -> bool {
        let worst = self.tracks.first().and_then(|track| track.worst.as_deref());
        let Some(worst) = worst.filter(|_| self.threshold.target.is_none()) else { return false };
        match unread {
            Some(unread) => self.is_unread(Some(worst), unread),
            None => self.is_gone(Some(worst), snapshot),
        }
    }

    /// For how long before now samples matter.
    pub fn window_ms(&self) -> i64 {
        self.rule.duration_ms + (self.rule.duration_ms / 10).max(5 * 60 * 1000)
    }

    /// Takes over an alert that is not settled.
    pub fn hold(&mut self, alert: &Alert) {
        let phase = if alert.resolved_at.is_none() { Phase::Firing } else { Phase::Muted };
        let state = State::new(phase, Some(Timestamp::from(alert.sample_at).as_millis()));
        let held = Held { id: alert.id, peak: alert.peak_value };
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

    /// The track of a container.
    pub fn track(&mut self, container: &str) -> Option<&mut Track> {
        let known = self.tracks.iter().position(|track| track.container.as_deref() == Some(container));
        let place = known.unwrap_or_else(|| {
            self.tracks.push(Track::new(Some(container.to_owned()), State::default()));
            self.tracks.len() - 1
        });
        self.tracks.get_mut(place)
    }

    /// The changes that end everything that it has raised: the threshold is not there any more.
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

    /// Remembers which one is too much, where any may be.
    pub fn note_worst(&mut self, rule: &Rule, reading: &Reading<'_>) {
        let worst = reading.worst.filter(|_| rule.goes_on(reading.value));
        if self.worst.as_deref() != worst {
            self.worst = worst.map(str::to_owned);
        }
    }

    /// Samples up to this were looked at before the service restarted, and what came of them is written.
    pub fn settle(&mut self, up_to: Timestamp) {
        self.settled = self.settled.max(Some(up_to));
    }

    /// Whether an agent sends again what was settled. What is settled of the future was of a clock that was ahead.
    pub fn is_settled(&self, moment: Moment) -> bool {
        self.settled.is_some_and(|up_to| moment.sample_at <= up_to && up_to <= moment.now)
    }

    /// A value of now.
    pub fn live(&mut self, rule: &Rule, value: f64, moment: Moment) -> Came {
        self.last = value;
        let step = self.state.live(rule, moment.sample_at.as_millis(), value);
        self.came(rule, step, value, moment)
    }

    /// A complete sample lacks what is measured. Once that lasts for `patience`, it is gone for good; a single sample may
    /// lack what its collector could not read.
    pub fn lacks(&mut self, patience: Duration, moment: Moment) -> Came {
        let Moment { sample_at, now: at } = moment;
        self.note_lack(sample_at);
        let lasts = self.gone.map_or(0, |gone| gone.until.millis_since(gone.since));
        if i128::from(lasts) < i128::try_from(patience.as_millis()).unwrap_or(i128::MAX) {
            return Came::Nothing;
        }
        match (self.state.gone(sample_at.as_millis()), self.alert.take()) {
            (Step::Recovers, Some(Held { id, .. })) => {
                Came::Changed(AlertChange::Resolved { id, by: "target_gone", sample_at, at })
            }
            (Step::Rearms, Some(Held { id, .. })) => Came::Changed(AlertChange::Rearmed { id, sample_at, at }),
            _ => Came::Nothing,
        }
    }

    /// The same of a sample that is looked at again after a restart.
    pub fn note_lack(&mut self, at: Timestamp) {
        self.gone = Some(match self.gone {
            // A clock that was put back begins again.
            Some(gone) if at >= gone.until => Gone { until: at, ..gone },
            _ => Gone { since: at, until: at },
        });
    }

    /// It is there, or nobody knows: the agent has gone.
    pub fn is_not_lacking(&mut self) {
        self.gone = None;
    }

    /// A value of the past.
    pub fn late(&mut self, rule: &Rule, value: f64, at: Timestamp) -> Came {
        match self.state.late(rule, at.as_millis(), value) {
            Step::Fires { since } => Came::Fired { since },
            _ => Came::Nothing,
        }
    }

    fn came(&mut self, rule: &Rule, step: Step, value: f64, moment: Moment) -> Came {
        let Moment { sample_at, now: at } = moment;
        match (step, self.alert) {
            (Step::Fires { since }, _) => Came::Fired { since },
            (Step::GoesOn, Some(held)) if rule.comparison.is_worse(value, held.peak) => {
                self.alert = Some(Held { peak: value, ..held });
                Came::Changed(AlertChange::Worsened { id: held.id, value })
            }
            (Step::Recovers, Some(Held { id, .. })) => {
                self.alert = None;
                Came::Changed(AlertChange::Resolved { id, by: "recovery", sample_at, at })
            }
            (Step::Rearms, Some(Held { id, .. })) => {
                self.alert = None;
                Came::Changed(AlertChange::Rearmed { id, sample_at, at })
            }
            (Step::Nothing | Step::GoesOn | Step::Recovers | Step::Rearms, _) => Came::Nothing,
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
