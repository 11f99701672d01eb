//! By what right a server is watched here, and what that means for what is known of its agent.

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::alert_words::MetricType;
use crate::store::{Fence, WatchedServer};

/// By what right a server is watched here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    /// There is no other instance.
    Alone,
    /// The session that holds it is here.
    Home(Uuid),
    /// No instance has a session of it, and this one looks after it.
    Share {
        last_seen_at: Option<Timestamp>,
        /// Until then its agent may come back to instances that have just begun.
        patient_until: Option<Timestamp>,
    },
}

impl Seat {
    /// What must be true while something is written of it.
    pub fn fence(&self) -> Fence {
        match self {
            Self::Alone => Fence::Open,
            Self::Home(session_id) => Fence::Session(*session_id),
            Self::Share { last_seen_at, .. } => Fence::Absent(*last_seen_at),
        }
    }
}

/// Whether agents that were last heard of then may be on their way: until when they are not missed. `began` is when the
/// instance began that has been there longest, so that one more of them changes nothing.
pub(super) fn patient_until(
    last_seen_at: Option<Timestamp>,
    began: Option<Timestamp>,
    patience_ms: i64,
) -> Option<Timestamp> {
    let began = began?;
    // Who was there since has gone by itself.
    let was_there = last_seen_at.is_some_and(|at| at >= began);
    (!was_there).then(|| began.plus_millis(patience_ms))
}

/// When the agent was heard of before it came here. Its row says when it came; an alert that is open knows since when
/// it was away.
pub(super) fn heard_before(server: &WatchedServer) -> Option<Timestamp> {
    let missed = server
        .unsettled
        .iter()
        .filter(|alert| alert.resolved_at.is_none() && MetricType::of(&alert.metric_type) == Some(MetricType::Offline));
    let since = missed.map(|alert| Timestamp::from(alert.triggered_at).plus_millis(-((alert.value * 1000.0) as i64)));
    since.min().or(server.last_seen_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Option<Timestamp> {
        Some(Timestamp::from_millis(millis))
    }

    #[test]
    fn agents_have_time_to_come_back_to_instances_that_all_have_just_begun() {
        assert_eq!(patient_until(at(999_000), at(1_000_000), 75_000), at(1_075_000));
        assert_eq!(patient_until(None, at(1_000_000), 75_000), at(1_075_000));
    }

    #[test]
    fn an_agent_that_was_there_since_is_missed_at_once() {
        assert_eq!(patient_until(at(1_000_001), at(1_000_000), 75_000), None);
        assert_eq!(patient_until(at(1_000_001), None, 75_000), None);
    }
}
