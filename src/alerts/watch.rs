//! The thresholds of one server and their states. Uses no database and no clock: it gets the time with each input, and
//! returns the changes to write.

use std::sync::Arc;
use std::time::Duration;

use signalbox_history::open::Measured;
use signalbox_protocol::sample::TopProcesses;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use super::alert_builder::{Fired, processes_at};
use super::containers::Containers;
use super::measurement::series::At;
use super::measurement::{self, Measurement, PreviousSample};
use super::rule::Phase;
use super::threshold_state::{Effect, Lack, SampleTime, ThresholdState, Track, TrackedAlert};
use super::{Beside, Freshness};
use crate::alert_words::Status;
use crate::fleet::Snapshot;
use crate::store::{Alert, AlertChange, Threshold, WatchedServer};

/// The server, as its alerts describe it.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub id: Uuid,
    pub owner_id: Uuid,
    pub name: String,
    pub tags: Vec<String>,
    /// When its agent was last seen before this evaluator started; `None` if it never was.
    pub last_seen_at: Option<Timestamp>,
}

/// The previous sample.
#[derive(Clone)]
struct Previous {
    snapshot: Arc<Snapshot>,
    /// Milliseconds since the sample before it; 0 if not known.
    elapsed_ms: i64,
}

pub(super) struct Watch {
    pub server: Server,
    pub(super) watched: Vec<ThresholdState>,
    pub(super) containers: Containers,
    /// When containers were last evaluated, in milliseconds by the agent's clock.
    pub(super) containers_at: i64,
    pub(super) absent_since: Option<Timestamp>,
    orphans: Vec<AlertChange>,
    before: Option<Previous>,
    before_late: Option<Previous>,
    processes: Option<(Timestamp, Arc<TopProcesses>)>,
    /// How long a target may be missing from samples before it counts as gone.
    gone_after: Duration,
}

impl Watch {
    /// Starts from the state in the database.
    pub fn new(from: WatchedServer, gone_after: Duration, now: Timestamp) -> Self {
        let server = Server {
            id: from.server_id,
            owner_id: from.owner_id,
            name: from.name,
            tags: from.tags,
            last_seen_at: from.last_seen_at,
        };
        let mut watched: Vec<ThresholdState> = from.thresholds.into_iter().filter_map(ThresholdState::of).collect();
        let mut orphans = Vec::new();
        for alert in &from.unsettled {
            match watched.iter_mut().find(|watched| is_of(alert, watched)) {
                Some(watched) => watched.hold(alert),
                None if alert.resolved_at.is_some() => {
                    orphans.push(AlertChange::Rearmed { id: alert.id, sample_at: now, at: now });
                }
                None => orphans.push(AlertChange::Resolved {
                    id: alert.id,
                    by: "threshold_deleted",
                    sample_at: now,
                    at: now,
                }),
            }
        }
        Self {
            server,
            watched,
            containers: Containers::default(),
            containers_at: 0,
            absent_since: from.last_seen_at,
            orphans,
            before: None,
            before_late: None,
            processes: None,
            gone_after,
        }
    }

    /// Takes the server's latest sample, and its distance from the one before it, as what comes before the next, so that this has
    /// rates.
    pub fn after(mut self, latest: Option<(Arc<Snapshot>, i64)>) -> Self {
        self.before = latest.map(|(snapshot, elapsed_ms)| Previous { snapshot, elapsed_ms });
        self
    }

    /// Takes the changes that end alerts whose threshold was deleted or changed.
    pub fn take_orphans(&mut self) -> Vec<AlertChange> {
        std::mem::take(&mut self.orphans)
    }

    /// Returns whether there is nothing left to evaluate.
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty() && self.orphans.is_empty()
    }

    /// Returns how old a sample may be to matter, in milliseconds; 0 if late samples never do.
    pub fn late_window_ms(&self) -> i64 {
        let windows = self.watched.iter().filter(|it| it.is_of_samples() && it.rule.duration_ms > 0);
        windows.map(ThresholdState::window_ms).max().unwrap_or_default()
    }

    /// Returns how many milliseconds of samples are evaluated again after a restart; `None` if none are.
    pub fn replay_window_ms(&self) -> Option<i64> {
        self.watched.iter().filter(|it| it.is_of_samples()).map(ThresholdState::window_ms).max()
    }

    /// Takes in that this threshold evaluated samples up to `at` before the restart, so that they do not count again.
    pub fn settled_up_to(&mut self, threshold_id: Uuid, at: Timestamp) {
        let found = self.watched.iter_mut().filter(|it| it.threshold.id == threshold_id && it.is_of_samples());
        for track in found.flat_map(|watched| &mut watched.tracks) {
            track.state.not_before(at.as_millis());
            track.settle(at);
        }
    }

    /// Takes in samples from before the restart, oldest first. If the last one is current, it opens the alerts that should be
    /// open.
    pub fn recall(
        &mut self,
        samples: Vec<Measured>,
        is_of_now: impl Fn(&Sample) -> bool,
        now: Timestamp,
    ) -> Vec<AlertChange> {
        let mut samples: Vec<_> = samples.into_iter().map(|it| Arc::new(Snapshot::of(self.server.id, it))).collect();
        let last = samples.pop();
        for sample in &samples {
            // A late sample fires nothing before there is a current one.
            self.sample(sample, None, Freshness::Late, now);
            self.recall_lacks(sample);
        }
        let Some(last) = last else { return Vec::new() };
        self.before.clone_from(&self.before_late);
        let freshness = if is_of_now(&last.sample) { Freshness::Live } else { Freshness::Late };
        let changes = self.sample(&last, None, freshness, now);
        // Some may arrive again: from the agent, or because they arrived while the history was read.
        for track in self.watched.iter_mut().filter(|it| it.is_of_samples()).flat_map(|it| &mut it.tracks) {
            track.settle(last.sample.timestamp);
        }
        changes
    }

    /// Continues to count how long a target has been missing, across the restart.
    fn recall_lacks(&mut self, snapshot: &Snapshot) {
        for watched in self.watched.iter_mut().filter(|it| it.is_of_samples()) {
            let lack = watched.lack(snapshot, None);
            for track in &mut watched.tracks {
                match lack {
                    Lack::None => track.is_not_lacking(),
                    Lack::Perhaps | Lack::Gone => track.note_lack(snapshot.sample.timestamp),
                }
            }
        }
    }

    /// Takes in a sample. `beside` is `None` for a stored sample, because it is not stored.
    pub fn sample(
        &mut self,
        snapshot: &Arc<Snapshot>,
        beside: Option<Beside>,
        freshness: Freshness,
        now: Timestamp,
    ) -> Vec<AlertChange> {
        let (processes, unread) = match beside {
            Some(Beside { processes, unread }) => (processes, Some(unread)),
            None => (None, None),
        };
        let sample_at = snapshot.sample.timestamp;
        let place = match freshness {
            Freshness::Live => &mut self.before,
            Freshness::Late => &mut self.before_late,
        };
        let before = if place.as_ref().is_some_and(|before| before.snapshot.sample.timestamp == sample_at) {
            // The same once more, or the one that was taken as the latest: it has no distance.
            None
        } else {
            let before = place.take();
            let elapsed_ms = before.as_ref().map_or(0, |it| sample_at.millis_since(it.snapshot.sample.timestamp));
            *place = Some(Previous { snapshot: snapshot.clone(), elapsed_ms });
            before
        };
        if let (Some(processes), Freshness::Live) = (processes, freshness) {
            self.processes = Some((sample_at, processes));
        }
        let moment = SampleTime { sample_at, now };
        let mut changes = Vec::new();
        for watched in self.watched.iter_mut().filter(|it| it.is_of_samples()) {
            let reading = read(watched, snapshot, before.as_ref());
            let lack = watched.lack(snapshot, unread.as_deref());
            let is_hidden = watched.is_worst_hidden(snapshot, unread.as_deref());
            let rule = watched.rule;
            let Some(track) = watched.tracks.first_mut() else { continue };
            if freshness == Freshness::Live && !track.is_settled(moment) {
                match lack {
                    Lack::None => track.is_not_lacking(),
                    Lack::Perhaps => track.note_lack(sample_at),
                    Lack::Gone => {
                        if let Effect::Changed(change) = track.lacks(self.gone_after, moment) {
                            changes.push(change);
                        }
                    }
                }
            }
            // If the worst one could not be read, lower values of the others are not a recovery.
            let Some(reading) = reading.filter(|reading| !is_hidden || rule.goes_on(reading.value)) else { continue };
            if freshness == Freshness::Live || unread.is_none() {
                track.note_worst(&rule, &reading);
            }
            let came = match freshness {
                Freshness::Live if track.is_settled(moment) => Effect::Nothing,
                Freshness::Live => track.live(&rule, reading.value, moment),
                Freshness::Late => track.late(&rule, reading.value, sample_at),
            };
            match came {
                Effect::Nothing => {}
                Effect::Changed(change) => changes.push(change),
                Effect::Fired { since } => {
                    // A late sample shows since when; the alert reports the current value.
                    let (value, worst, moment) = match (freshness, &self.before) {
                        (Freshness::Late, Some(live)) => {
                            (track.last, None, SampleTime { sample_at: live.snapshot.sample.timestamp, now })
                        }
                        _ => (reading.value, reading.worst, moment),
                    };
                    let processes = processes_at(self.processes.as_ref(), moment.sample_at);
                    let fired = Fired { worst, unit: reading.unit, processes, ..Fired::of(value, since) };
                    changes.push(fired.open(&self.server, watched, moment));
                }
            }
        }
        if freshness == Freshness::Live {
            self.look_at_containers(moment, &mut changes);
            self.look_at_starts(now, &mut changes);
        }
        changes
    }

    /// Replaces the thresholds. Returns the changes that end alerts of thresholds that are gone.
    pub fn set_rules(&mut self, from: WatchedServer, now: Timestamp) -> Vec<AlertChange> {
        self.server.owner_id = from.owner_id;
        self.server.name = from.name;
        self.server.tags = from.tags;
        let mut old = std::mem::take(&mut self.watched);
        for threshold in from.thresholds {
            let known = old.iter().position(|it| is_same_rule(&it.threshold, &threshold));
            match known {
                Some(place) => self.watched.push(ThresholdState { threshold, ..old.swap_remove(place) }),
                None => self.watched.extend(ThresholdState::of(threshold)),
            }
        }
        old.into_iter().flat_map(|watched| watched.end(now)).collect()
    }

    /// Drops all thresholds, and leaves their alerts as they are.
    pub fn forget(&mut self) {
        self.watched.clear();
        self.orphans.clear();
    }

    /// Takes in that somebody changed an alert.
    pub fn acted(&mut self, alert: &Alert) {
        if alert.status == Status::Resolved.word()
            && let Some(track) = self.track_of(alert.id)
        {
            track.state.mute();
        }
    }

    /// Takes in that another alert was already open for the same threshold and target.
    pub fn adopt(&mut self, opened: Uuid, instead: &Alert) {
        if let Some(track) = self.track_of(opened) {
            track.alert = Some(TrackedAlert { id: instead.id, peak: instead.peak_value });
            if instead.resolved_at.is_some() {
                // Somebody resolved it: the threshold may not fire again before the metric recovers.
                track.state.mute();
            }
        }
    }

    fn track_of(&mut self, alert_id: Uuid) -> Option<&mut Track> {
        let mut tracks = self.watched.iter_mut().flat_map(|watched| &mut watched.tracks);
        tracks.find(|track| track.alert.is_some_and(|held| held.id == alert_id))
    }
}

/// Returns whether the alert belongs to the present revision of this threshold.
fn is_of(alert: &Alert, watched: &ThresholdState) -> bool {
    alert.threshold_id == watched.threshold.id && alert.threshold_revision == watched.threshold.revision
}

/// Returns whether a threshold still has the same condition.
fn is_same_rule(old: &Threshold, new: &Threshold) -> bool {
    old.id == new.id && old.revision == new.revision
}

fn read<'a>(watched: &ThresholdState, now: &'a Arc<Snapshot>, before: Option<&Previous>) -> Option<Measurement<'a>> {
    if let Some(asked) = watched.asked() {
        let at =
            |snapshot: &'a Snapshot, elapsed_ms| At { open: &snapshot.open, at: snapshot.sample.timestamp, elapsed_ms };
        let before = before.map(|Previous { snapshot, elapsed_ms }| At {
            open: &snapshot.open,
            at: snapshot.sample.timestamp,
            elapsed_ms: *elapsed_ms,
        });
        return measurement::series::read(asked, at(now, 0), before);
    }
    let before = before.map(|before| PreviousSample { sample: &before.snapshot.sample, elapsed_ms: before.elapsed_ms });
    let target = watched.threshold.target.as_deref();
    let goes_on = watched.tracks.first().is_some_and(|track| track.state.phase() != Phase::Clear);
    let reading = measurement::read(watched.metric, target, watched.rule.comparison, &now.sample, before);
    reading.or_else(|| measurement::read_on(watched.metric, &now.sample).filter(|_| goes_on))
}
