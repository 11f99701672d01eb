//! The state of a server's containers, and which are in trouble. Pure; times are the agent's.
//!
//! An agent sends the complete list when it connects and after every change, and each event as it happens. Between two
//! connections it sends nothing, so earlier deaths are still known but the current state is not. A [`Standing`] therefore
//! distinguishes containers in trouble, healthy ones, and those whose state is unknown.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;

use crate::alert_words::Trouble;

mod glob;

pub use glob::matches;

/// The time within which deaths count towards a restart loop.
pub const LOOP_MS: i64 = 5 * 60 * 1000;
/// How many deaths of a container are kept: more make no difference to a loop.
pub const MAX_DEATHS: usize = 64;
/// Containers of a server: as many as a sample can list.
const MAX_CONTAINERS: usize = signalbox_protocol::sample::MAX_LIST;
/// The longest id or name, in bytes; entries with a longer one are ignored.
const MAX_BYTES: usize = 256;
/// A container that died counts as stopped after this time without news of it. In most cases the engine starts it again,
/// and the next list shows that.
const SETTLES_MS: i64 = 3_000;
/// Most engines report after a death that it was requested, some before it, and all within this time.
const BY_HAND_MS: i64 = 15_000;
/// A list that is older than an event is ignored, unless it is older by more than this: then the clock was corrected.
const CLOCK_RIGHT_MS: i64 = 60_000;

/// The containers and troubles that a threshold watches.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// A pattern of names; `None` means all.
    pub pattern: Option<&'a str>,
    /// The kinds of trouble that count; `None` means all.
    pub troubles: Option<&'a [Trouble]>,
    /// How many deaths within five minutes are a loop.
    pub deaths_for_loop: f64,
}

impl Watch<'_> {
    fn covers(&self, name: &str) -> bool {
        self.pattern.is_none_or(|pattern| matches(pattern, name))
    }

    fn minds(&self, trouble: Trouble) -> bool {
        self.troubles.is_none_or(|troubles| troubles.contains(&trouble))
    }
}

/// The state of a container as one threshold sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    Trouble {
        trouble: Trouble,
        /// The number of deaths for a restart loop, otherwise 1.
        value: f64,
        exit_code: Option<i64>,
    },
    Well,
    /// Nothing is wrong now, but deaths have been observed for less than five minutes: every other trouble has ended, a
    /// restart loop may not have.
    Unproven,
    /// The state is not known, so no trouble has ended.
    Unknown,
}

/// The known state of a server's containers.
#[derive(Debug, Clone, Default)]
pub struct Containers {
    by_id: HashMap<String, Container>,
    /// Whether the agent has sent a complete list since it connected.
    is_listed: bool,
    /// Since when every death has been reported.
    watched_since: Option<i64>,
}

#[derive(Debug, Clone, Default)]
struct Container {
    name: String,
    condition: Condition,
    is_unhealthy: bool,
    exit_code: Option<i64>,
    /// When the last event or list changed it.
    changed_at: i64,
    /// Whether the agent has reported it since it connected.
    is_fresh: bool,
    /// The times of recent deaths, oldest first.
    deaths: VecDeque<i64>,
    /// Whether a later event may still show that the last death was requested.
    is_last_death_open: bool,
    /// When somebody stopped it, until its death is reported.
    stopped_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Condition {
    /// It runs, is about to run, or has never run.
    #[default]
    Sound,
    /// It died; the next event or list shows whether it stays stopped.
    Died,
    Stopped,
}

impl Containers {
    /// Takes in that the agent has disconnected: until it is back, events are missed.
    pub fn part(&mut self) {
        (self.is_listed, self.watched_since) = (false, None);
        self.by_id.values_mut().for_each(|container| container.is_fresh = false);
    }

    /// Takes in an event. Returns whether it was a valid one about containers.
    pub fn told(&mut self, event: &Event) -> bool {
        let Some(at) = text(&event.fields, "timestamp").and_then(Timestamp::parse).map(Timestamp::as_millis) else {
            return false;
        };
        let is_known = match event.kind.as_str() {
            "containers" => self.listed(at, &event.fields),
            "container" => self.happened(at, &event.fields).is_some(),
            _ => false,
        };
        if is_known {
            // After a correction of the agent's clock, observation starts from the earlier time.
            self.watched_since = Some(self.watched_since.map_or(at, |since| since.min(at)));
        }
        is_known
    }

    /// Takes in the list that was sent last, at this time of the agent's: deaths since then were not reported to this evaluator.
    pub fn recall(&mut self, list: &Event, at: i64) -> bool {
        let is_known = self.told(list);
        if is_known {
            self.watched_since = Some(at);
        }
        is_known
    }

    /// Returns the name and the standing, at this time, of each container that the threshold covers.
    pub fn standings(&self, at: i64, watch: &Watch<'_>) -> Vec<(&str, Standing)> {
        let covered = self.by_id.values().filter(|container| watch.covers(&container.name));
        let standings = covered.map(|container| (container.name.as_str(), self.standing_of(container, at, watch)));
        let mut standings: Vec<_> = standings.collect();
        // While one container replaces another, both may have the same name.
        standings.sort_by(|one, other| (one.0, rank(&one.1)).cmp(&(other.0, rank(&other.1))));
        standings.dedup_by(|next, first| next.0 == first.0);
        standings
    }

    /// Returns the standing of the container with this name. One that no longer exists is well.
    pub fn standing(&self, at: i64, name: &str, watch: &Watch<'_>) -> Standing {
        let named = self.by_id.values().filter(|container| container.name == name);
        let standings = named.map(|container| self.standing_of(container, at, watch));
        let none = if self.is_listed { Standing::Well } else { Standing::Unknown };
        standings.min_by_key(rank).unwrap_or(none)
    }

    fn standing_of(&self, container: &Container, at: i64, watch: &Watch<'_>) -> Standing {
        let exit_code = container.exit_code;
        let minds_loop = watch.minds(Trouble::RestartLoop);
        let deaths = container.deaths_until(at) as f64;
        if minds_loop && deaths >= watch.deaths_for_loop.max(1.0) {
            return Standing::Trouble { trouble: Trouble::RestartLoop, value: deaths, exit_code };
        }
        if !container.is_fresh {
            return Standing::Unknown;
        }
        if watch.minds(Trouble::Stopped) {
            if container.is_stopped(at) {
                return Standing::Trouble { trouble: Trouble::Stopped, value: 1.0, exit_code };
            }
            if container.condition == Condition::Died {
                return Standing::Unknown;
            }
        }
        if watch.minds(Trouble::Unhealthy) && container.condition == Condition::Sound && container.is_unhealthy {
            return Standing::Trouble { trouble: Trouble::Unhealthy, value: 1.0, exit_code: None };
        }
        let is_watched = self.watched_since.is_some_and(|since| at.saturating_sub(since) >= LOOP_MS);
        if minds_loop && !is_watched { Standing::Unproven } else { Standing::Well }
    }

    /// Takes in the list of all containers.
    fn listed(&mut self, at: i64, fields: &Map<String, Value>) -> bool {
        let Some(list) = fields.get("containers").and_then(Value::as_array) else { return false };
        let mut before = std::mem::take(&mut self.by_id);
        for entry in list.iter().filter_map(Value::as_object) {
            if self.by_id.len() == MAX_CONTAINERS {
                break;
            }
            let Some((id, name)) = label(entry, "id").zip(label(entry, "name")) else { continue };
            let mut container = before.remove(id).unwrap_or_default();
            container.list(at, name, entry);
            self.by_id.insert(id.to_owned(), container);
        }
        // A container that is missing from a truncated list may still exist.
        self.is_listed = fields.get("truncated").and_then(Value::as_bool) != Some(true);
        true
    }

    /// Takes in one event of a container. Returns `None` if it is not valid.
    fn happened(&mut self, at: i64, fields: &Map<String, Value>) -> Option<()> {
        let id = label(fields, "container_id")?;
        let action = text(fields, "action")?;
        if action == "destroy" {
            self.by_id.remove(id);
            return Some(());
        }
        let name = label(fields, "name");
        if !self.by_id.contains_key(id) {
            let is_room = self.by_id.len() < MAX_CONTAINERS;
            let container = Container { name: name.filter(|_| is_room)?.to_owned(), ..Container::default() };
            self.by_id.insert(id.to_owned(), container);
        }
        let container = self.by_id.get_mut(id)?;
        if let Some(name) = name {
            name.clone_into(&mut container.name);
        }
        container.happened(at, action, fields);
        Some(())
    }
}

impl Container {
    fn list(&mut self, at: i64, name: &str, entry: &Map<String, Value>) {
        let is_outdated = at < self.changed_at && self.changed_at - at <= CLOCK_RIGHT_MS;
        if is_outdated && self.is_fresh {
            return;
        }
        name.clone_into(&mut self.name);
        self.condition = match text(entry, "state") {
            Some("exited" | "dead") => Condition::Stopped,
            _ => Condition::Sound,
        };
        self.is_unhealthy = text(entry, "health") == Some("unhealthy");
        if self.condition == Condition::Stopped {
            self.exit_code = entry.get("exit_code").and_then(Value::as_i64).or(self.exit_code);
        }
        (self.changed_at, self.is_fresh) = (at, true);
    }

    fn happened(&mut self, at: i64, action: &str, fields: &Map<String, Value>) {
        match action {
            "die" => self.die(at, fields),
            "start" | "restart" => {
                (self.condition, self.is_unhealthy) = (Condition::Sound, false);
                if action == "restart" {
                    self.forgive_last_death(at);
                }
                self.stopped_at = None;
            }
            "stop" if !self.forgive_last_death(at) => self.stopped_at = Some(at),
            "health_status" => self.is_unhealthy = text(fields, "health") == Some("unhealthy"),
            "unpause" | "pause" => self.condition = Condition::Sound,
            // Other events do not change its state.
            _ => {}
        }
        (self.changed_at, self.is_fresh) = (at, true);
    }

    fn die(&mut self, at: i64, fields: &Map<String, Value>) {
        self.condition = Condition::Died;
        self.exit_code = fields.get("exit_code").and_then(Value::as_i64);
        let stopped_at = self.stopped_at.take();
        let is_by_hand = stopped_at.is_some_and(|stopped| (0..=BY_HAND_MS).contains(&(at - stopped)))
            || fields.get("requested").and_then(Value::as_bool) == Some(true);
        if is_by_hand || self.deaths.back() == Some(&at) {
            // A stop reported next must not remove the death before this one.
            self.is_last_death_open = false;
            return;
        }
        // Deaths later than this one were timed by a clock that has been corrected since.
        self.deaths.retain(|death| *death <= at && at - *death < LOOP_MS);
        if self.deaths.len() == MAX_DEATHS {
            self.deaths.pop_front();
        }
        self.deaths.push_back(at);
        // If the agent says whether the death was requested, that is final. Podman also reports its automatic restarts as
        // restarts, which must not remove the death.
        self.is_last_death_open = !fields.contains_key("requested");
    }

    /// Removes the last death, because it was requested. Returns whether there was one to remove.
    fn forgive_last_death(&mut self, at: i64) -> bool {
        let is_recent = |death: &i64| (0..=BY_HAND_MS).contains(&(at - *death));
        let is_its = std::mem::take(&mut self.is_last_death_open) && self.deaths.back().is_some_and(is_recent);
        if is_its {
            self.deaths.pop_back();
        }
        is_its
    }

    fn deaths_until(&self, at: i64) -> usize {
        self.deaths.iter().filter(|death| **death <= at && at - **death < LOOP_MS).count()
    }

    fn is_stopped(&self, at: i64) -> bool {
        match self.condition {
            Condition::Stopped => true,
            Condition::Died => at.saturating_sub(self.changed_at) >= SETTLES_MS,
            Condition::Sound => false,
        }
    }
}

/// The order in which standings count for a name that several containers have: the worst first, unknown before well.
fn rank(standing: &Standing) -> u8 {
    match standing {
        Standing::Trouble { trouble: Trouble::RestartLoop, .. } => 0,
        Standing::Trouble { trouble: Trouble::Unhealthy, .. } => 1,
        Standing::Trouble { trouble: Trouble::Stopped, .. } => 2,
        Standing::Unknown => 3,
        Standing::Unproven => 4,
        Standing::Well => 5,
    }
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str)
}

/// Returns a name or an id, if every database can store it.
fn label<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    text(fields, key).filter(|label| !label.is_empty() && label.len() <= MAX_BYTES && !label.contains('\0'))
}

#[cfg(test)]
mod tests;
