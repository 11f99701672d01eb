//! Events of a machine, on their way from its agent to the alerts and the dashboards.

use std::time::{Duration, Instant};

use bytestring::ByteString;
use serde_json::Value;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::Event;
use signalbox_protocol::container::{MAX_STATES, STATES_KIND};
use signalbox_protocol::frontend::FeedMessage;

use super::{AgentSession, Phase};
use crate::feeds::{FeedFrame, Topic};

/// The longest event that is shown, in bytes of JSON: an ordinary one has 300.
const MAX_BYTES: usize = 4_096;
/// The longest kind of an event, in bytes.
const MAX_KIND_BYTES: usize = 64;

/// How many more events the agent may send.
#[derive(Debug)]
pub(super) struct Allowance {
    news: Rate,
    states: Rate,
}

/// Limits how often something comes: once in a while, and as often at once as it did not come before, up to a limit.
#[derive(Debug)]
struct Rate {
    every: Duration,
    at_once: u32,
    /// When all until now would have come, one at a time.
    until: Option<Instant>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            // When a host or an engine starts, all of its containers have something to say at once.
            news: Rate::new(Duration::from_millis(50), 256),
            // Agents send no more than one list a second, and a slow connection may have held some up.
            states: Rate::new(Duration::from_secs(1), 60),
        }
    }
}

impl Rate {
    fn new(every: Duration, at_once: u32) -> Self {
        Self { every, at_once, until: None }
    }

    fn take(&mut self, now: Instant) -> bool {
        let until = self.until.map_or(now, |until| until.max(now)) + self.every;
        let is_allowed = until.duration_since(now) <= self.every * self.at_once;
        if is_allowed {
            self.until = Some(until);
        }
        is_allowed
    }
}

impl AgentSession {
    /// Hands an event to the alerts, and shows it to the server's subscribers. An event that is too long, or exceeds
    /// the limit, is counted and dropped. Lists of all containers' states go only to the alerts.
    pub(super) fn happened(&mut self, mut event: Event) {
        let Phase::Active(active) = &mut self.phase else { return };
        event.clean();
        if event.kind == STATES_KIND {
            if !is_bounded(&event) || !active.events.states.take(Instant::now()) {
                return refused();
            }
            return self.services.alerts.happened(active.server_id, active.session_id, &event);
        }
        if !active.events.news.take(Instant::now()) {
            return refused();
        }
        let Some((event, frame)) = written(event) else { return refused() };
        self.services.alerts.happened(active.server_id, active.session_id, &event);
        self.services.events.told(active.server_id, &event);
        let topic = Topic::Server(active.server_id);
        if self.services.feeds.is_watched(topic) {
            self.services.feeds.publish(topic, frame);
        }
    }
}

fn refused() {
    metrics::counter!("signalbox_agent_events_refused_total").increment(1);
}

/// Whether the states are a list of no more containers than an agent sends.
fn is_bounded(event: &Event) -> bool {
    let containers = event.fields.get("containers").and_then(Value::as_array);
    containers.is_some_and(|containers| containers.len() <= MAX_STATES)
}

/// Returns the event and its frame, or `None` for an event that is not shown.
fn written(event: Event) -> Option<(Event, FeedFrame)> {
    if event.kind.is_empty() || event.kind.len() > MAX_KIND_BYTES {
        return None;
    }
    let message = FeedMessage::Event(event);
    let bytes = Encoding::Json.encode(&message).ok()?;
    if bytes.len() > MAX_BYTES {
        return None;
    }
    let FeedMessage::Event(event) = message else { return None };
    Some((event, FeedFrame::Event(ByteString::try_from(bytes).ok()?.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_may_come_all_at_once_and_then_twenty_a_second() {
        let (mut news, began) = (Allowance::default().news, Instant::now());

        let at_once = (0..500).filter(|_| news.take(began)).count();
        let later = (0..500).filter(|_| news.take(began + Duration::from_secs(1))).count();

        assert_eq!((at_once, later), (256, 20));
    }

    #[test]
    fn states_may_come_once_a_second_and_held_up_ones_together() {
        let (mut states, began) = (Allowance::default().states, Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);

        let kept = (0..100).filter(|second| states.take(at(*second))).count();
        let caught_up = (0..200).filter(|_| states.take(at(160))).count();

        assert_eq!((kept, caught_up), (100, 60));
        assert!(!states.take(at(160)));
        assert!(states.take(at(161)));
    }

    #[test]
    fn a_list_of_too_many_containers_is_refused() {
        let event = |containers: Value| Event {
            kind: STATES_KIND.to_owned(),
            fields: [("containers".to_owned(), containers)].into_iter().collect(),
        };

        assert!(is_bounded(&event(vec![Value::Null; MAX_STATES].into())));
        assert!(!is_bounded(&event(vec![Value::Null; MAX_STATES + 1].into())));
        assert!(!is_bounded(&event(Value::Null)));
    }
}
