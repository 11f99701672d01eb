//! Asks the agents of watched servers for live samples.
//!
//! A request covers a short time and is repeated while somebody watches. So nothing has to be withdrawn: whatever is lost on
//! the way, the agent returns to its interval by itself, and a page that is loaded again changes nothing. Of several
//! instances, the one that has the agent's session asks, for the subscribers of all.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use signalbox_protocol::agent::ServiceMessage;
use uuid::Uuid;

use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::periodic::every;
use crate::registry::RegistryHandle;

/// The interval that agents are asked for: what people see as a moving line.
pub const INTERVAL_SECONDS: f64 = 1.0;

/// How long a request is valid: one of them may be lost, and a page may take some seconds to be there again.
pub const FOR_SECONDS: f64 = 10.0;

/// How often a request is repeated.
const ASK_EVERY: Duration = Duration::from_secs(4);

/// How soon the first request follows when somebody begins to watch.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// When each watched server was last asked.
#[derive(Debug, Default)]
struct Asked(HashMap<Uuid, Instant>);

impl Asked {
    /// Returns those of the watched servers to ask now. Servers that nobody watches any more are forgotten.
    fn due(&mut self, watched: &HashSet<Uuid>, now: Instant) -> Vec<Uuid> {
        self.0.retain(|server_id, _| watched.contains(server_id));
        let is_due = |server_id: &&Uuid| self.0.get(*server_id).is_none_or(|at| now.duration_since(*at) >= ASK_EVERY);
        let due: Vec<Uuid> = watched.iter().filter(is_due).copied().collect();
        self.0.extend(due.iter().map(|server_id| (*server_id, now)));
        due
    }
}

/// Asks for as long as the task lives.
pub async fn keep_asking(feeds: Feeds, fleet: Fleet, registry: RegistryHandle) {
    let (registry, mut asked) = (registry.here(), Asked::default());
    every(LOOK_EVERY, async || {
        let mut watched = feeds.watched_metrics();
        watched.retain(|server_id| fleet.is_here(*server_id));
        for server_id in asked.due(&watched, Instant::now()) {
            let message = ServiceMessage::Watched { interval_seconds: INTERVAL_SECONDS, for_seconds: FOR_SECONDS };
            registry.tell(server_id, message);
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_at_once_and_again_while_somebody_watches() {
        let mut asked = Asked::default();
        let (one, both) = (HashSet::from([Uuid::from_u128(1)]), HashSet::from([1, 2].map(Uuid::from_u128)));
        let began = Instant::now();
        let mut due = |watched: &HashSet<Uuid>, seconds: u64| {
            let mut due = asked.due(watched, began + Duration::from_secs(seconds));
            due.sort();
            due.into_iter().map(|server_id| server_id.as_u128()).collect::<Vec<_>>()
        };

        assert_eq!(due(&one, 0), [1]);
        assert_eq!(due(&one, 1), [0; 0]);
        assert_eq!(due(&both, 2), [2]);
        assert_eq!(due(&both, 4), [1]);
        assert_eq!(due(&both, 6), [2]);
    }

    #[test]
    fn nobody_is_asked_after_the_last_watcher_and_at_once_for_the_next() {
        let mut asked = Asked::default();
        let (watched, unwatched) = (HashSet::from([Uuid::from_u128(1)]), HashSet::new());
        let began = Instant::now();
        let due = [(&watched, 0), (&unwatched, 1), (&unwatched, 60), (&watched, 61)]
            .map(|(watched, seconds)| asked.due(watched, began + Duration::from_secs(seconds)).len());

        assert_eq!(due, [1, 0, 0, 1]);
        assert_eq!(asked.0.len(), 1);
    }
}
