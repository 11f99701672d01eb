//! What an agent tells of its machine as it happens, on its way to whoever watches.

use std::time::{Duration, Instant};

use bytestring::ByteString;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::Event;
use signalbox_protocol::frontend::FeedMessage;

use super::{AgentSession, Phase};
use crate::feeds::{Frame, Topic};

/// The longest event that is shown, in bytes of JSON: an ordinary one has 300.
const MAX_BYTES: usize = 4_096;
/// The longest kind.
const MAX_KIND_BYTES: usize = 64;
/// Events of one agent that are shown in a second. A host that starts has some dozens.
const MAX_A_SECOND: u32 = 20;

/// Counts events in the present second.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    since: Option<Instant>,
    used: u32,
}

impl Allowance {
    fn take(&mut self, now: Instant) -> bool {
        let is_over = self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1));
        if is_over {
            *self = Self { since: Some(now), used: 0 };
        }
        self.used += 1;
        self.used <= MAX_A_SECOND
    }
}

impl AgentSession {
    /// Shows an event to whoever watches the server. One that is too long, or one too many, is counted and forgotten.
    pub(super) fn happened(&mut self, event: Event) {
        let Phase::Active(active) = &mut self.phase else { return };
        if !active.events.take(Instant::now()) {
            return refused();
        }
        let topic = Topic::Server(active.server_id);
        match written(event) {
            Some(frame) if self.state.feeds.is_watched(topic) => self.state.feeds.publish(topic, frame),
            Some(_) => {}
            None => refused(),
        }
    }
}

fn refused() {
    metrics::counter!("signalbox_agent_events_refused_total").increment(1);
}

/// None for an event that is not shown.
fn written(event: Event) -> Option<Frame> {
    if event.kind.is_empty() || event.kind.len() > MAX_KIND_BYTES {
        return None;
    }
    let bytes = Encoding::Json.encode(&FeedMessage::Event(event)).ok()?;
    if bytes.len() > MAX_BYTES {
        return None;
    }
    Some(Frame::Event(ByteString::try_from(bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_twenty_events() {
        let (mut allowance, began) = (Allowance::default(), Instant::now());

        let shown = (0..50).filter(|_| allowance.take(began)).count();

        assert_eq!(shown, 20);
        assert!(allowance.take(began + Duration::from_secs(1)));
    }
}
