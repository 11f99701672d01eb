//! What the log says of orders to agents beside who gave them: whether a server asks for signatures of them, and why one did not suffice.

use serde_json::{Value, json};

use super::{Entry, Outcome, action};

impl Entry {
    /// Adds a field to the details.
    pub fn also(self, name: &str, value: Value) -> Self {
        let mut detail = if self.detail.is_null() { json!({}) } else { self.detail };
        if let Some(fields) = detail.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
        Self { detail, ..self }
    }

    /// Adds why a signature did not suffice, where that is the reason.
    pub fn reason(self, reason: Option<&str>) -> Self {
        match reason {
            Some(reason) => self.also("reason", reason.into()),
            None => self,
        }
    }

    /// The capability with which an agent says that it asks for signatures of what this entry is the order for. None for every other
    /// entry.
    pub fn signed_capability(&self) -> Option<&'static str> {
        if self.outcome != Outcome::Started {
            return None;
        }
        match self.action {
            action::COMMAND_RUN => Some("commands_signed"),
            action::TERMINAL_OPEN => Some("terminal_signed"),
            action::CONTAINER_START
            | action::CONTAINER_STOP
            | action::CONTAINER_RESTART
            | action::CONTAINER_PAUSE
            | action::CONTAINER_UNPAUSE => Some("docker_signed"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::audit::Actor;

    fn entry(action: &'static str, outcome: Outcome) -> Entry {
        Entry::new(action, Uuid::nil(), Actor::command_line()).outcome(outcome)
    }

    #[test]
    fn an_order_is_what_an_agent_is_about_to_be_asked() {
        let started = |action| entry(action, Outcome::Started).signed_capability();

        assert_eq!(started(action::COMMAND_RUN), Some("commands_signed"));
        assert_eq!(started(action::TERMINAL_OPEN), Some("terminal_signed"));
        assert_eq!(started(action::CONTAINER_UNPAUSE), Some("docker_signed"));
        assert_eq!(started(action::BATCH_START), None);
        assert_eq!(entry(action::COMMAND_RUN, Outcome::Ok).signed_capability(), None);
    }

    #[test]
    fn a_field_is_added_to_the_details_that_are_there() {
        let bare = entry(action::COMMAND_RUN, Outcome::Refused);

        assert_eq!(bare.clone().reason(None).detail, Value::Null);
        assert_eq!(bare.clone().reason(Some("expired")).detail, json!({ "reason": "expired" }));
        let ended = bare.detail(json!({ "exit_code": null })).reason(Some("replayed"));
        assert_eq!(ended.detail, json!({ "exit_code": null, "reason": "replayed" }));
    }
}
