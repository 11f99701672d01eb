//! The audit log: who did what, from which address and sign-in, to which server, and what came of it.
//!
//! An [`Entry`] is what is told; the store numbers it, hashes it with the one before ([`chain`]) and writes it in the
//! transaction of the change itself. An action that takes a while is told twice with the same target: as started before
//! it is sent, and with its outcome.

pub mod chain;
mod detail;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use chain::Record;

/// What is done, as it stands in the log. The part before the dot is the kind of thing, to filter by.
pub mod action {
    pub const USER_REGISTER: &str = "user.register";
    pub const LOGIN: &str = "login";
    pub const LOGOUT: &str = "logout";
    pub const SESSION_END: &str = "session.end";
    pub const PROFILE_UPDATE: &str = "profile.update";
    pub const PASSWORD_CHANGE: &str = "password.change";
    pub const PASSWORD_RESET: &str = "password.reset";
    pub const SERVER_CREATE: &str = "server.create";
    pub const SERVER_UPDATE: &str = "server.update";
    pub const SERVER_DELETE: &str = "server.delete";
    pub const API_KEY_CREATE: &str = "api_key.create";
    pub const API_KEY_REVOKE: &str = "api_key.revoke";
    pub const COMMAND_RUN: &str = "command.run";
    pub const COMMAND_CANCEL: &str = "command.cancel";
    pub const BATCH_START: &str = "batch.start";
    pub const BATCH_CANCEL: &str = "batch.cancel";
    pub const CONTAINER_START: &str = "container.start";
    pub const CONTAINER_STOP: &str = "container.stop";
    pub const CONTAINER_RESTART: &str = "container.restart";
    pub const CONTAINER_PAUSE: &str = "container.pause";
    pub const CONTAINER_UNPAUSE: &str = "container.unpause";
    pub const TERMINAL_OPEN: &str = "terminal.open";
    pub const ALERT_ACKNOWLEDGE: &str = "alert.acknowledge";
    pub const ALERT_RESOLVE: &str = "alert.resolve";
    pub const THRESHOLD_CREATE: &str = "threshold.create";
    pub const THRESHOLD_UPDATE: &str = "threshold.update";
    pub const THRESHOLD_DELETE: &str = "threshold.delete";
    pub const SILENCE_CREATE: &str = "silence.create";
    pub const SILENCE_UPDATE: &str = "silence.update";
    pub const SILENCE_DELETE: &str = "silence.delete";
    pub const CHANNEL_CREATE: &str = "channel.create";
    pub const CHANNEL_UPDATE: &str = "channel.update";
    pub const CHANNEL_DELETE: &str = "channel.delete";
    pub const CHANNEL_TEST: &str = "channel.test";
}

/// What an operator on the service's own machine is called. No user can be: it has a blank.
const COMMAND_LINE: &str = "command line";

/// What the service itself is called.
const SERVICE: &str = "the service";

/// Longer targets and outcomes are cut: none of ours is.
const MAX_TEXT: usize = 200;

/// Who did something, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// None for the service and its operator, and where nobody has proved who they are.
    pub user_id: Option<Uuid>,
    /// What they are called now.
    pub username: Arc<str>,
    /// The sign-in that they used.
    pub login_id: Option<Uuid>,
    /// The other end of the connection; empty when there was none.
    pub address: String,
}

impl Actor {
    /// The operator, on the service's own machine.
    pub fn command_line() -> Self {
        Self { user_id: None, username: COMMAND_LINE.into(), login_id: None, address: String::new() }
    }

    /// The service by itself, maybe because of what came from `address`.
    pub fn service(address: impl Into<String>) -> Self {
        Self { user_id: None, username: SERVICE.into(), login_id: None, address: address.into() }
    }

    /// Somebody who says they are this user, and did not prove it.
    pub fn claiming(username: &str, address: impl Into<String>) -> Self {
        Self { user_id: None, username: username.into(), login_id: None, address: address.into() }
    }
}

/// As the agent's own host is told who asks.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.username, self.address)
    }
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Ok,
    /// About to be done; another entry with the same target tells how it ended.
    Started,
    /// Not allowed.
    Refused,
    /// Not done: a machine name of the reason.
    Failed(Cow<'static, str>),
}

impl Outcome {
    fn text(&self) -> Cow<'static, str> {
        match self {
            Self::Ok => "ok".into(),
            Self::Started => "started".into(),
            Self::Refused => "refused".into(),
            Self::Failed(code) => format!("failed: {code}").into(),
        }
    }
}

/// Something that was done or tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub action: &'static str,
    /// Whose things it concerns: who may read it.
    pub owner_id: Uuid,
    pub actor: Actor,
    pub server_id: Option<Uuid>,
    /// Looked up by the store where it is not given.
    pub server_name: Option<String>,
    /// What it was done to: the id of a key, a session, a container, a job.
    pub target: Option<String>,
    pub outcome: Outcome,
    /// More about it, as a JSON object. Never a secret. Its texts are cut where it is too long.
    pub detail: Value,
}

impl Entry {
    /// Something that this actor did to what belongs to `owner_id`.
    pub fn new(action: &'static str, owner_id: Uuid, actor: Actor) -> Self {
        Self {
            action,
            owner_id,
            actor,
            server_id: None,
            server_name: None,
            target: None,
            outcome: Outcome::Ok,
            detail: Value::Null,
        }
    }

    pub fn on_server(self, server_id: Uuid) -> Self {
        Self { server_id: Some(server_id), ..self }
    }

    /// For a server that may not be there any more, or has another name now.
    pub fn on_server_named(self, server_id: Uuid, name: impl Into<String>) -> Self {
        Self { server_id: Some(server_id), server_name: Some(name.into()), ..self }
    }

    pub fn target(self, target: impl ToString) -> Self {
        Self { target: Some(target.to_string()), ..self }
    }

    pub fn outcome(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    pub fn detail(self, detail: Value) -> Self {
        Self { detail, ..self }
    }

    /// The entry as it is kept behind `previous`, hashed.
    pub fn into_record(self, seq: i64, at: Timestamp, server_name: Option<String>, previous: &[u8]) -> Record {
        let mut record = Record {
            seq,
            at,
            owner_id: self.owner_id,
            user_id: self.actor.user_id,
            username: kept(&self.actor.username),
            login_id: self.actor.login_id,
            address: kept(&self.actor.address),
            action: self.action.to_owned(),
            server_id: self.server_id,
            server_name: self.server_name.or(server_name).map(|name| kept(&name)),
            target: self.target.map(|target| kept(&target)),
            outcome: kept(&self.outcome.text()),
            detail: detail::text(self.detail),
            hash: Vec::new(),
        };
        record.hash = chain::hash(&record, previous).to_vec();
        record
    }
}

/// A text that every database can keep, and not too long.
fn kept(text: &str) -> String {
    text.chars().map(|c| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c }).take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(entry: Entry) -> Record {
        entry.into_record(1, Timestamp::default(), Some("web-1".to_owned()), &chain::BEGINNING)
    }

    fn entry() -> Entry {
        Entry::new(action::SERVER_DELETE, Uuid::nil(), Actor::command_line())
    }

    #[test]
    fn an_outcome_is_a_word_and_maybe_a_reason() {
        let texts = [
            (Outcome::Ok, "ok"),
            (Outcome::Started, "started"),
            (Outcome::Refused, "refused"),
            (Outcome::Failed("agent_offline".into()), "failed: agent_offline"),
        ];

        for (outcome, text) in texts {
            assert_eq!(record(entry().outcome(outcome)).outcome, text);
        }
    }

    #[test]
    fn a_name_that_is_given_goes_before_the_one_that_was_looked_up() {
        assert_eq!(record(entry().on_server(Uuid::max())).server_name.as_deref(), Some("web-1"));
        assert_eq!(record(entry().on_server_named(Uuid::max(), "old")).server_name.as_deref(), Some("old"));
    }

    #[test]
    fn what_a_database_cannot_keep_is_replaced_and_what_is_long_is_cut() {
        let target = format!("a\0b{}", "é".repeat(1_000));

        let kept = record(entry().target(target)).target.unwrap();

        assert!(kept.starts_with("a\u{fffd}bé"), "{kept}");
        assert_eq!(kept.chars().count(), MAX_TEXT);
    }
}
