//! The states of all containers, from the engine's list and from later events. Pure.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use signalbox_protocol::Timestamp;
use signalbox_protocol::container::{ContainerState, ContainerStates, MAX_STATES};

use super::event::{Action, ContainerEvent, bounded};
use super::model::{Inspected, Listed};

/// The engine's list.
#[derive(Debug)]
pub struct List {
    pub asked_at: Timestamp,
    pub containers: Vec<Listed>,
    /// Whether it includes containers that do not run.
    pub is_whole: bool,
}

/// What is known about all containers.
#[derive(Debug, Default)]
pub struct States {
    /// None after an event since the last list.
    newest: Option<ContainerStates>,
    /// By id, because not every engine has the health in its list.
    healths: HashMap<String, String>,
}

impl States {
    /// The states of a list.
    pub fn listed(&mut self, list: List) -> ContainerStates {
        let List { asked_at, containers: mut listed, is_whole } = list;
        let is_long = listed.len() > MAX_STATES;
        if is_long {
            // On machines with so many most belong to finished jobs.
            listed.sort_by_cached_key(|it| (!it.runs(), Reverse(it.created), it.id.clone()));
            listed.truncate(MAX_STATES);
        }
        let mut containers: Vec<_> = listed.iter().map(|it| self.state(it)).collect();
        containers.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        let running: HashSet<&str> = listed.iter().filter(|it| it.runs()).map(|it| it.id.as_str()).collect();
        self.healths.retain(|id, _| running.contains(id.as_str()));
        let states = ContainerStates { timestamp: asked_at, containers, truncated: is_long || !is_whole };
        self.newest.insert(states).clone()
    }

    /// Records an event whose result only a new list can show.
    pub fn outdate(&mut self) {
        self.newest = None;
    }

    /// Returns the states when they have changed and are known without a new list.
    pub fn after(&mut self, happened: &ContainerEvent) -> Option<ContainerStates> {
        match happened.action {
            // The known health is that of the previous run.
            Action::Start => {
                self.healths.remove(&happened.container_id);
                None
            }
            Action::HealthStatus => self.changed(&happened.container_id, happened.health()?, happened.at_ms),
            Action::Die
            | Action::Kill
            | Action::Oom
            | Action::Stop
            | Action::Restart
            | Action::Pause
            | Action::Unpause
            | Action::Destroy
            | Action::Rename => None,
        }
    }

    /// Adds the health that a list may lack.
    pub fn inspected(&mut self, inspected: &Inspected) {
        if let Some(health) = inspected.state.health().and_then(health_of) {
            self.remember(&inspected.id, health);
        }
    }

    fn remember(&mut self, container_id: &str, health: &str) {
        if self.healths.len() < MAX_STATES || self.healths.contains_key(container_id) {
            self.healths.insert(container_id.to_owned(), health.to_owned());
        }
    }

    fn changed(&mut self, container_id: &str, health: &str, at_ms: i64) -> Option<ContainerStates> {
        let health = health_of(health)?;
        self.remember(container_id, health);
        let newest = self.newest.as_mut()?;
        let container = newest.containers.iter_mut().find(|it| it.id == container_id)?;
        if container.health.as_deref() == Some(health) {
            return None;
        }
        container.health = Some(health.to_owned());
        newest.timestamp = Timestamp::from_millis(at_ms);
        Some(newest.clone())
    }

    fn state(&self, listed: &Listed) -> ContainerState {
        let known = || self.healths.get(&listed.id).map(String::as_str).filter(|_| listed.runs());
        ContainerState {
            id: bounded(&listed.id).to_owned(),
            name: bounded(&listed.name()).to_owned(),
            state: word(&listed.state).to_owned(),
            health: health_in(&listed.status).or_else(known).map(str::to_owned),
            exit_code: exit_code_in(&listed.status),
        }
    }
}

/// Maps Podman's own words.
fn word(state: &str) -> &str {
    match state {
        "stopped" => "exited",
        "stopping" => "running",
        "configured" | "initialized" => "created",
        other => bounded(other),
    }
}

/// `Up 4 seconds (healthy)`, `Up 1 second (health: starting)`.
fn health_in(status: &str) -> Option<&str> {
    let (_, behind) = status.rsplit_once('(')?;
    health_of(behind.strip_suffix(')')?.trim_start_matches("health: "))
}

fn health_of(word: &str) -> Option<&str> {
    matches!(word, "starting" | "healthy" | "unhealthy").then_some(word)
}

/// `Exited (137) 2 minutes ago`.
fn exit_code_in(status: &str) -> Option<i64> {
    let (code, _) = status.strip_prefix("Exited (")?.split_once(')')?;
    code.parse().ok()
}

#[cfg(test)]
#[path = "states_tests.rs"]
mod tests;
