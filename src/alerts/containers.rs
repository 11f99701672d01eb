//! What is known of the containers of a server, and which are in trouble. Pure; times are the agent's.
//!
//! An agent tells the whole list when it connects and after every change, and single events as they come. Between two
//! connections nothing is told: then what was is still known, and what is not. So who asks is told apart what is well,
//! what is not, and of what there is no saying.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;

use crate::alert_words::Trouble;

mod glob;

pub use glob::matches;

/// In which deaths make a restart loop.
pub const LOOP_MS: i64 = 5 * 60 * 1000;
/// How many deaths of a container are remembered: more make no loop worse.
pub const MOST_DEATHS: usize = 64;
/// As many as a sample can hold.
const MOST_CONTAINERS: usize = signalbox_protocol::sample::MAX_LIST;
/// The longest id or name, in bytes. What is longer is none.
const MOST_BYTES: usize = 256;
/// A container that died is stopped, unless something else is told of it within this time: mostly the engine starts it
/// again, and the list says so.
const SETTLES_MS: i64 = 3_000;
/// Engines say behind a death that it was by hand, some before it, and no later than this.
const BY_HAND_MS: i64 = 15_000;
/// A list that is older than an event is out of date, unless it is so much older that the clock was put right.
const CLOCK_RIGHT_MS: i64 = 60_000;

/// What a threshold watches.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// A pattern of names; none means all.
    pub pattern: Option<&'a str>,
    /// None means all.
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

/// How a container is, as far as a threshold minds.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    Trouble {
        trouble: Trouble,
        /// How many deaths it were, of a loop; else 1.
        value: f64,
        exit_code: Option<i64>,
    },
    Well,
    /// Nothing is wrong now, but for less than five minutes it is known whether it dies again and again: no loop has
    /// ended, and everything else has.
    Unproven,
    /// Nothing is known of it: nothing has ended.
    Unknown,
}

/// All that is known of a server's containers.
#[derive(Debug, Clone, Default)]
pub struct Containers {
    by_id: HashMap<String, Container>,
    /// Whether all are known, as they are since the agent connected.
    is_listed: bool,
    /// Since when every death was told.
    watched_since: Option<i64>,
}

#[derive(Debug, Clone, Default)]
struct Container {
    name: String,
    condition: Condition,
    is_unhealthy: bool,
    exit_code: Option<i64>,
    /// When the last event was.
    changed_at: i64,
    /// Whether it was told of since the agent connected.
    is_fresh: bool,
    /// In order.
    deaths: VecDeque<i64>,
    /// Whether the last of them may still turn out to be by hand.
    is_last_death_open: bool,
    /// When somebody stopped it by hand, as long as its death was not told.
    stopped_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Condition {
    /// It runs, is about to, or never has.
    #[default]
    Sound,
    /// What becomes of it will be told.
    Died,
    Stopped,
}

impl Containers {
    /// The agent has gone: until it is back, nothing is told of what happens.
    pub fn part(&mut self) {
        (self.is_listed, self.watched_since) = (false, None);
        self.by_id.values_mut().for_each(|container| container.is_fresh = false);
    }

    /// Something was told; nonsense and what is not about containers is nothing. Gives whether anything was.
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
            // A clock that was put right begins anew.
            self.watched_since = Some(self.watched_since.map_or(at, |since| since.min(at)));
        }
        is_known
    }

    /// The containers that a threshold is about, with how each is at this time.
    pub fn standings(&self, at: i64, watch: &Watch<'_>) -> Vec<(&str, Standing)> {
        let covered = self.by_id.values().filter(|container| watch.covers(&container.name));
        let standings = covered.map(|container| (container.name.as_str(), self.standing_of(container, at, watch)));
        let mut standings: Vec<_> = standings.collect();
        // While one takes the place of another, both may have its name.
        standings.sort_by(|one, other| (one.0, rank(&one.1)).cmp(&(other.0, rank(&other.1))));
        standings.dedup_by(|next, first| next.0 == first.0);
        standings
    }

    /// How the container of this name is. One that is not there any more is well.
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

    /// Everything that the engine has.
    fn listed(&mut self, at: i64, fields: &Map<String, Value>) -> bool {
        let Some(list) = fields.get("containers").and_then(Value::as_array) else { return false };
        let mut before = std::mem::take(&mut self.by_id);
        for entry in list.iter().filter_map(Value::as_object) {
            if self.by_id.len() == MOST_CONTAINERS {
                break;
            }
            let Some((id, name)) = label(entry, "id").zip(label(entry, "name")) else { continue };
            let mut container = before.remove(id).unwrap_or_default();
            container.list(at, name, entry);
            self.by_id.insert(id.to_owned(), container);
        }
        // Of what a list that was cut does not name nothing is known.
        self.is_listed = fields.get("truncated").and_then(Value::as_bool) != Some(true);
        true
    }

    /// One event. None where it says nothing.
    fn happened(&mut self, at: i64, fields: &Map<String, Value>) -> Option<()> {
        let id = label(fields, "container_id")?;
        let action = text(fields, "action")?;
        if action == "destroy" {
            self.by_id.remove(id);
            return Some(());
        }
        let name = label(fields, "name");
        if !self.by_id.contains_key(id) {
            let is_room = self.by_id.len() < MOST_CONTAINERS;
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
            // What else is told says nothing of how it is.
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
            // A stop that is told next must not forgive the death before.
            self.is_last_death_open = false;
            return;
        }
        // Newer ones are of a clock that was put right since.
        self.deaths.retain(|death| *death <= at && at - *death < LOOP_MS);
        if self.deaths.len() == MOST_DEATHS {
            self.deaths.pop_front();
        }
        self.deaths.push_back(at);
        // An agent that tells whether it was asked for has told it; what Podman restarts by itself it calls a restart, too.
        self.is_last_death_open = !fields.contains_key("requested");
    }

    /// It was by hand. Gives whether there was one to forgive.
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

/// The worst first; what is well says more of a name than what is unknown.
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

/// A name or an id that every database can keep.
fn label<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    text(fields, key).filter(|label| !label.is_empty() && label.len() <= MOST_BYTES && !label.contains('\0'))
}

#[cfg(test)]
mod tests;
