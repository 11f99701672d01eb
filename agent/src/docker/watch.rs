//! Watches the engine: reports events and states of containers, and maintains the list of running ones for the samples.
//!
//! It rarely queries the engine: when it is found, after events that changed something, and every few minutes in case an event
//! was missed. It reads the containers' use from the kernel, which costs the engine nothing.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use signalbox_protocol::Timestamp;
use signalbox_protocol::container::ContainerStates;
use tokio::time::{Instant, sleep_until, timeout};

use super::Docker;
use super::error::EngineError;
use super::event::{Action, ContainerEvent, EngineEvent};
use super::exit_attribution::ExitAttribution;
use super::model::{Inspected, Listed};
use super::states::{List, States};
use crate::events::Events;
use crate::policy::DockerAccess;

/// In case an event was missed.
const LIST_EVERY: Duration = Duration::from_secs(300);
/// How soon a list that failed, or lacks a container, is requested again, and how rarely in the end.
const LIST_AGAIN_FIRST: Duration = Duration::from_secs(1);
const LIST_AGAIN_LAST: Duration = Duration::from_secs(60);
/// A starting host has many events at once: one list covers all of them.
const LIST_AFTER_CHANGE: Duration = Duration::from_millis(300);
/// How soon an engine that has ended is looked for again, and how rarely one that does not return.
const LOOK_FIRST: Duration = Duration::from_secs(1);
const LOOK_LAST: Duration = Duration::from_secs(60);
/// The most time for an additional fact about an event, which waits for it, and all later events with it.
const FACT_WITHIN: Duration = Duration::from_secs(2);
/// An event is a repetition that happened so long ago and so long before the newest: Podman repeats old ones when the file in which it
/// keeps them is full. (Either alone may be a clock that differs, or that was set.)
const NEWS_FOR: Duration = Duration::from_secs(60);
/// The longest line of events: its labels are the container's.
const MAX_LINE_BYTES: usize = 1 << 20;
/// As many as a sample can hold.
const MAX_CONTAINERS: usize = signalbox_protocol::sample::MAX_LIST;
const ALL: &str = "/containers/json?all=true";
const RUNNING: &str = "/containers/json";
/// `{"type":["container"]}`
const EVENTS: &str = "/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D";

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub id: String,
    pub name: String,
    /// Its first process, as the host numbers it.
    pub pid: u32,
    /// Whether its network is its own, so that the interfaces carry only its bytes.
    pub has_own_network: bool,
}

/// The known running containers; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct RunningContainers {
    list: Arc<Mutex<Arc<[Running]>>>,
}

impl RunningContainers {
    pub fn get(&self) -> Arc<[Running]> {
        self.list.lock().clone()
    }

    pub fn set(&self, list: Vec<Running>) {
        *self.list.lock() = list.into();
    }
}

impl Docker {
    /// Never ends. Does nothing where the owner does not permit the service to see containers.
    pub async fn watch(&self, events: &Events, running: &RunningContainers) {
        if self.access.grade < DockerAccess::Read {
            return std::future::pending().await;
        }
        let mut pause = LOOK_LAST;
        let mut is_refused = false;
        loop {
            match self.watch_once(events, running).await {
                Ok(()) => pause = LOOK_FIRST,
                Err(error) => log_absence(&error, &mut is_refused),
            }
            events.forget_containers();
            tokio::time::sleep(pause).await;
            // Where there has never been an engine, it looks once a minute; one that existed is expected back.
            pause = (pause * 2).min(LOOK_LAST);
        }
    }

    /// Watches until the engine ends.
    async fn watch_once(&self, events: &Events, running: &RunningContainers) -> Result<(), EngineError> {
        let mut lines = EventLines { body: self.engine.open(EVENTS).await?.into_body(), buffer: Vec::new() };
        let kind = self.engine.kind().await?;
        let (mut attribution, mut states) = (ExitAttribution::default(), States::default());
        let (mut list_at, mut again) = (Instant::now(), LIST_AGAIN_FIRST);
        // Known containers may have been restarted since.
        let mut known: Arc<[Running]> = Arc::default();
        let mut newest_ms = i64::MIN;
        loop {
            tokio::select! {
                happened = lines.next() => {
                    let Some(mut happened) = happened else { return Ok(()) };
                    newest_ms = newest_ms.max(happened.at_ms);
                    if age_of(&happened) > NEWS_FOR && between(happened.at_ms, newest_ms) > NEWS_FOR {
                        // It may have left new ones out, too.
                        list_at = list_at.min(Instant::now() + LIST_AFTER_CHANGE);
                        continue;
                    }
                    let requested = attribution.note(&happened, kind);
                    if happened.action.changes_the_list() {
                        list_at = list_at.min(Instant::now() + LIST_AFTER_CHANGE);
                        states.outdate();
                        events.forget_containers();
                    }
                    if happened.action == Action::Die {
                        // If it runs again, it is another process.
                        running.set(running.get().iter().filter(|it| it.id != happened.container_id).cloned().collect());
                        known = running.get();
                        happened.set_requested(requested);
                    }
                    let happened = self.with_facts(happened).await;
                    let changed = states.after(&happened);
                    if happened.action.is_told() {
                        events.tell(happened.event);
                    }
                    changed.into_iter().for_each(|states| events.tell_containers(states));
                }
                () = sleep_until(list_at) => {
                    let is_whole = match self.list_all(&known, &mut states).await {
                        Ok(list) => {
                            running.set(list.running);
                            events.tell_containers(list.states);
                            list.is_whole
                        }
                        Err(error) => {
                            states.outdate();
                            events.forget_containers();
                            tracing::debug!(%error, "the containers cannot be listed");
                            false
                        }
                    };
                    list_at = Instant::now() + if is_whole { LIST_EVERY } else { again };
                    again = if is_whole { LIST_AGAIN_FIRST } else { (again * 2).min(LIST_AGAIN_LAST) };
                    known = running.get();
                }
            }
        }
    }

    /// Adds how often a container that died was restarted, and the health where the engine reports a change without the new
    /// value, as Podman 4 does. The count is asked for while the death is that young: many deaths at an engine that answers
    /// slowly would be reported minutes late.
    async fn with_facts(&self, mut happened: ContainerEvent) -> ContainerEvent {
        let is_death = happened.action == Action::Die;
        let is_blank = happened.action == Action::HealthStatus && happened.health().is_none();
        let within = if is_death { FACT_WITHIN.saturating_sub(age_of(&happened)) } else { FACT_WITHIN };
        if (is_death || is_blank)
            && !within.is_zero()
            && let Ok(Ok(inspected)) = timeout(within, self.inspect(&happened.container_id)).await
        {
            if is_death {
                happened.set_restart_count(inspected.restart_count);
            } else {
                happened.set_health(inspected.state.health());
            }
        }
        happened
    }

    /// The running containers, and the states of all. Only new running ones are inspected.
    async fn list_all(&self, known: &[Running], states: &mut States) -> Result<Listing, EngineError> {
        let asked_at = Timestamp::now();
        let (containers, is_whole): (Vec<Listed>, _) = match self.engine.read(ALL).await {
            // Thousands of ended containers may exceed the limit of an answer.
            Err(EngineError::Unexpected(_)) => (self.engine.read(RUNNING).await?, false),
            listed => (listed?, true),
        };
        let (mut running, mut are_known) = (Vec::new(), true);
        for container in containers.iter().filter(|container| container.runs()).take(MAX_CONTAINERS) {
            let name = container.name();
            let known = known.iter().find(|known| known.id == container.id);
            let details = match known {
                Some(known) => Some(Running { name, ..known.clone() }),
                None => match self.inspect(&container.id).await {
                    Ok(it) => {
                        states.inspected(&it);
                        running_of(it, name)
                    }
                    Err(error) => {
                        are_known &= matches!(error, EngineError::NoSuchContainer);
                        None
                    }
                },
            };
            running.extend(details);
        }
        running.sort_by(|one, other| one.name.cmp(&other.name));
        let states = states.listed(List { asked_at, containers, is_whole });
        Ok(Listing { running, states, is_whole: are_known })
    }
}

/// How long ago an event happened, by the clock that the engine and the agent share.
fn age_of(happened: &ContainerEvent) -> Duration {
    between(happened.at_ms, Timestamp::now().as_millis())
}

/// Zero if the end is before the start.
fn between(start_ms: i64, end_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(end_ms.saturating_sub(start_ms)).unwrap_or_default())
}

/// The result of a list of all containers.
struct Listing {
    running: Vec<Running>,
    states: ContainerStates,
    /// Whether every running container could be inspected.
    is_whole: bool,
}

/// An engine that refuses the agent is worth one warning: mostly the agent is not in the socket's group.
fn log_absence(error: &EngineError, is_refused: &mut bool) {
    let is_denied = matches!(error, EngineError::Unreachable(error) if error.kind() == ErrorKind::PermissionDenied);
    if is_denied && !std::mem::replace(is_refused, true) {
        tracing::warn!(%error, "containers are not seen: the agent may not use the engine's socket");
    } else {
        tracing::debug!(%error, "no container engine");
    }
}

fn running_of(it: Inspected, name: String) -> Option<Running> {
    let mode = it.host_config.network_mode.as_str();
    let has_own_network = mode != "host" && !mode.starts_with("container:") && !mode.starts_with("ns:");
    (it.state.pid != 0).then_some(Running { id: it.id, name, pid: it.state.pid, has_own_network })
}

/// The engine's events, one per line.
struct EventLines {
    body: Incoming,
    buffer: Vec<u8>,
}

impl EventLines {
    /// The next event to report. None when the engine has ended. May be dropped and called again without losing an event.
    async fn next(&mut self) -> Option<ContainerEvent> {
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if let Some(happened) = serde_json::from_slice::<EngineEvent>(&line).ok().and_then(ContainerEvent::of) {
                    return Some(happened);
                }
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                self.buffer.clear();
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
