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
/// Events of one agent that are shown in one second. A starting host sends some dozens.
const MAX_A_SECOND: u32 = 20;

/// The minimum time between two lists of all containers' states from one agent. Agents keep to it.
const STATES_EVERY: Duration = Duration::from_secs(1);
/// Lists that a slow connection held up arrive together, at most this many.
const MAX_STATES_AT_ONCE: u32 = 60;

/// How many more events the agent may send.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    news: EventRate,
    states: States,
}

/// Counts the events of the present second.
#[derive(Debug, Default)]
struct EventRate {
    since: Option<Instant>,
    used: u32,
}

/// Limits the lists of container states, by the time that they would have taken at the permitted rate.
#[derive(Debug, Default)]
struct States {
    until: Option<Instant>,
}

impl EventRate {
    fn take(&mut self, now: Instant) -> bool {
        let is_over = self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1));
        if is_over {
            *self = Self { since: Some(now), used: 0 };
        }
        self.used += 1;
        self.used <= MAX_A_SECOND
    }
}

impl States {
    fn take(&mut self, now: Instant) -> bool {
        let until = self.until.map_or(now, |until| until.max(now)) + STATES_EVERY;
        let is_allowed = until.duration_since(now) <= STATES_EVERY * MAX_STATES_AT_ONCE;
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
            return self.services.alerts.happened(active.server_id, &event);
        }
        if !active.events.news.take(Instant::now()) {
            return refused();
        }
        let Some((event, frame)) = written(event) else { return refused() };
        self.services.alerts.happened(active.server_id, &event);
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
    fn a_second_has_twenty_events() {
        let (mut news, began) = (EventRate::default(), Instant::now());

        let shown = (0..50).filter(|_| news.take(began)).count();

        assert_eq!(shown, 20);
        assert!(news.take(began + Duration::from_secs(1)));
    }

    #[test]
    fn states_may_come_once_a_second_and_held_up_ones_together() {
        let (mut states, began) = (States::default(), Instant::now());
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
