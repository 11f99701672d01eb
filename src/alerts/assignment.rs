//! Why this instance evaluates a server (single instance, holder of the session, owner of the shard), and the fence that
//! protects its writes.

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::alert_words::MetricType;
use crate::store::{Fence, WatchedServer};

/// Why this instance evaluates a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assignment {
    /// It is the only instance.
    Sole,
    /// It holds the server's session, which has this id.
    SessionHolder(Uuid),
    /// No instance has a session of the server, and the server is in this instance's shard.
    ShardOwner {
        last_seen_at: Option<Timestamp>,
        /// Until then its agent may still reconnect to instances that have just started.
        patient_until: Option<Timestamp>,
    },
}

impl Assignment {
    /// Returns the condition that must hold in the database for a write to succeed.
    pub fn fence(&self) -> Fence {
        match self {
            Self::Sole => Fence::Open,
            Self::SessionHolder(session_id) => Fence::Session(*session_id),
            Self::ShardOwner { last_seen_at, .. } => Fence::Absent(*last_seen_at),
        }
    }
}

/// Returns until when an agent that was last seen then does not count as offline; `None` if it does already. `began` is
/// when the oldest running instance started, so that another instance that joins changes nothing.
pub(super) fn patient_until(
    last_seen_at: Option<Timestamp>,
    began: Option<Timestamp>,
    patience_ms: i64,
) -> Option<Timestamp> {
    let began = began?;
    // An agent that was connected since then has left while an instance was running.
    let was_there = last_seen_at.is_some_and(|at| at >= began);
    (!was_there).then(|| began.plus_millis(patience_ms))
}

/// Returns when the agent was last seen before its present session. The server's row already has the time of this session,
/// but an open alert shows since when the agent was away.
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
    fn agents_have_time_to_reconnect_when_all_instances_have_just_started() {
        assert_eq!(patient_until(at(999_000), at(1_000_000), 75_000), at(1_075_000));
        assert_eq!(patient_until(None, at(1_000_000), 75_000), at(1_075_000));
    }

    #[test]
    fn an_agent_seen_since_the_start_is_offline_at_once() {
        assert_eq!(patient_until(at(1_000_001), at(1_000_000), 75_000), None);
        assert_eq!(patient_until(at(1_000_001), None, 75_000), None);
    }
}
