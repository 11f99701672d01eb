//! One threshold on one server: what it goes by, and where it stands on each of its targets.

use std::sync::Arc;

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::kind::{Comparison, MetricType, Trouble};
use super::rule::{Phase, Rule, State, Step};
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
    /// Up to which sample it was looked at before the service restarted, as far as is known.
    settled: Option<Timestamp>,
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
        let (comparison, limit, clear) = match metric {
            // Whether it is in trouble: yes or no.
            MetricType::ContainerState => (Comparison::Gte, 1.0, None),
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
        !matches!(self.metric, MetricType::Offline | MetricType::ContainerState)
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
        Self { container, state, alert: None, last: 0.0, trouble: None, settled: None }
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
