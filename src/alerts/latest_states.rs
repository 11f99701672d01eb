//! The latest list of containers that each agent has sent.
//!
//! Agents send a list only when something has changed. An evaluator that begins later, because a server gets its first threshold,
//! learns from here what is in trouble by then.

use std::sync::Arc;

use dashmap::DashMap;
use signalbox_protocol::agent::Event;
use signalbox_protocol::container::STATES_KIND;
use uuid::Uuid;

/// The longest list that is kept: about what an evaluator takes for 1,024 containers. An agent decides what it sends.
const MAX_BYTES: usize = 256 * 1024;

/// Cheap to clone. It holds one list for each server with a session here.
#[derive(Clone, Default)]
pub(super) struct LatestStates(Arc<DashMap<Uuid, States>>);

struct States {
    session_id: Uuid,
    /// The event as JSON: parsed, it would take several times the memory.
    event: Box<str>,
}

impl LatestStates {
    /// Keeps an event of a session if it is such a list.
    pub fn keep(&self, server_id: Uuid, session_id: Uuid, event: &Event) {
        if event.kind != STATES_KIND {
            return;
        }
        match serde_json::to_string(event) {
            Ok(event) if event.len() <= MAX_BYTES => {
                self.0.insert(server_id, States { session_id, event: event.into() });
            }
            // An older list would be wrong.
            Ok(_) | Err(_) => self.forget(server_id),
        }
    }

    /// Returns the list of a server.
    pub fn of(&self, server_id: Uuid) -> Option<Event> {
        self.0.get(&server_id).and_then(|states| serde_json::from_str(&states.event).ok())
    }

    /// Returns the list that this session has sent.
    pub fn of_session(&self, server_id: Uuid, session_id: Uuid) -> Option<Event> {
        let is_its_own = self.0.get(&server_id).is_some_and(|states| states.session_id == session_id);
        if is_its_own { self.of(server_id) } else { None }
    }

    /// Forgets the list of a server that no session of this instance holds any more.
    pub fn forget(&self, server_id: Uuid) {
        self.0.remove(&server_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, name: &str) -> Event {
        let fields = [("containers".to_owned(), serde_json::json!([{ "name": name }]))];
        Event { kind: kind.to_owned(), fields: fields.into_iter().collect() }
    }

    #[test]
    fn the_latest_list_is_kept_until_the_session_has_ended() {
        let (kept, server_id, session_id) = (LatestStates::default(), Uuid::now_v7(), Uuid::now_v7());

        kept.keep(server_id, session_id, &event(STATES_KIND, "before"));
        kept.keep(server_id, session_id, &event(STATES_KIND, "web"));
        kept.keep(server_id, session_id, &event("container", "db"));

        assert_eq!(kept.of(server_id), Some(event(STATES_KIND, "web")));
        assert_eq!(kept.of_session(server_id, session_id), Some(event(STATES_KIND, "web")));
        assert_eq!(kept.of_session(server_id, Uuid::now_v7()), None);
        kept.forget(server_id);
        assert_eq!(kept.of(server_id), None);
    }

    #[test]
    fn a_list_that_is_too_long_is_not_kept_and_nor_is_the_one_before() {
        let (kept, server_id, session_id) = (LatestStates::default(), Uuid::now_v7(), Uuid::now_v7());
        kept.keep(server_id, session_id, &event(STATES_KIND, "web"));

        kept.keep(server_id, session_id, &event(STATES_KIND, &"x".repeat(MAX_BYTES)));

        assert_eq!(kept.of(server_id), None);
    }
}
