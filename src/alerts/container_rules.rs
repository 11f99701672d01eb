//! Evaluates container thresholds: each container in trouble has its own alert.

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;

use super::alert_builder::{Fired, InTrouble};
use super::containers::{self, Standing};
use super::threshold_state::{Effect, SampleTime, ThresholdState};
use super::watch::{Server, Watch};
use crate::alert_words::{MetricType, Trouble};
use crate::store::AlertChange;

/// The value of a container without trouble.
const WELL: f64 = 0.0;

/// If the agent's time goes back by more than this, its clock was corrected.
const CLOCK_RIGHT_MS: i64 = 60_000;

impl Watch {
    /// Takes in an event that the agent reported.
    pub fn happened(&mut self, event: &Event, now: Timestamp) -> Vec<AlertChange> {
        if self.containers.told(event) { self.look_after(event, now) } else { Vec::new() }
    }

    /// Takes in the list of containers that the agent sent last before this evaluator began; `agent_now` is by the agent's clock.
    pub fn recall_containers(&mut self, list: &Event, agent_now: Timestamp, now: Timestamp) -> Vec<AlertChange> {
        let is_known = self.containers.recall(list, agent_now.as_millis());
        if is_known { self.look_after(list, now) } else { Vec::new() }
    }

    fn look_after(&mut self, event: &Event, now: Timestamp) -> Vec<AlertChange> {
        let mut changes = Vec::new();
        let told_at = event.fields.get("timestamp").and_then(|text| Timestamp::parse(text.as_str()?));
        self.look_at_containers(SampleTime { sample_at: told_at.unwrap_or(now), now }, &mut changes);
        changes
    }

    /// Evaluates all containers. Events and samples arrive independently, each with its own time.
    pub(super) fn look_at_containers(&mut self, moment: SampleTime, changes: &mut Vec<AlertChange>) {
        if !self.watched.iter().any(|it| it.metric == MetricType::ContainerState) {
            return;
        }
        let at = moment.sample_at.as_millis();
        let is_put_right = at < self.containers_at.saturating_sub(CLOCK_RIGHT_MS);
        self.containers_at = if is_put_right { at } else { at.max(self.containers_at + 1) };
        let moment = SampleTime { sample_at: Timestamp::from_millis(self.containers_at), ..moment };
        let Self { server, watched, containers, .. } = self;
        for watched in watched.iter_mut().filter(|it| it.metric == MetricType::ContainerState) {
            look(server, watched, containers, moment, changes);
        }
    }
}

fn look(
    server: &Server,
    watched: &mut ThresholdState,
    containers: &containers::Containers,
    moment: SampleTime,
    changes: &mut Vec<AlertChange>,
) {
    let (threshold, troubles) = (watched.threshold.clone(), watched.troubles.clone());
    let wanted = containers::Watch {
        pattern: threshold.target.as_deref(),
        troubles: Some(&troubles),
        deaths_for_loop: threshold.threshold_value,
    };
    for (name, standing) in standings(watched, containers, &wanted, moment.sample_at.as_millis()) {
        let rule = watched.rule;
        let Some(track) = watched.track(&name) else { continue };
        let (came, container) = match standing {
            Standing::Trouble { trouble, value, exit_code } => {
                track.trouble = Some(trouble);
                (track.live(&rule, value, moment), Some(InTrouble { name: &name, trouble, exit_code }))
            }
            // After a restart of the service the earlier trouble is not known: it may have been a restart loop.
            Standing::Unproven if track.trouble.is_none_or(|trouble| trouble == Trouble::RestartLoop) => continue,
            Standing::Unproven | Standing::Well => (track.live(&rule, WELL, moment), None),
            Standing::Unknown => continue,
        };
        match came {
            Effect::Nothing => {}
            Effect::Changed(change) => changes.push(change),
            Effect::Fired { since } => {
                let value = track.last;
                changes.push(Fired { container, ..Fired::of(value, since) }.open(server, watched, moment));
            }
        }
    }
    watched.tracks.retain(|track| track.alert.is_some() || track.last > WELL);
}

/// Returns the standings of all containers that are in trouble or were.
fn standings(
    watched: &ThresholdState,
    containers: &containers::Containers,
    wanted: &containers::Watch<'_>,
    at: i64,
) -> Vec<(String, Standing)> {
    let tracked = || watched.tracks.iter().filter_map(|track| track.container.as_deref());
    let covered = containers.standings(at, wanted).into_iter().filter(|(name, standing)| {
        matches!(standing, Standing::Trouble { .. }) || tracked().any(|tracked| tracked == *name)
    });
    let mut standings: Vec<_> = covered.map(|(name, standing)| (name.to_owned(), standing)).collect();
    for name in tracked() {
        // The container may have been removed or renamed.
        if !standings.iter().any(|(known, _)| known == name) {
            standings.push((name.to_owned(), containers.standing(at, name, wanted)));
        }
    }
    standings
}
