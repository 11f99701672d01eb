//! The audit log: who did what to which server, from which address and sign-in, and with what result.
//!
//! A caller fills in an [`Entry`]; the store numbers it, hashes it with the previous one ([`chain`]) and writes it in the
//! transaction of the change itself. An action that takes a while has two entries with the same target: one before it is sent,
//! and one with its outcome.

pub mod chain;
mod detail;
mod orders;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use chain::Record;

/// The actions in the log. The part before the dot is the kind of thing, for filters.
pub mod action {
    /// A user was created.
    pub const USER_REGISTER: &str = "user.register";
    /// An account was disabled.
    pub const USER_DISABLE: &str = "user.disable";
    /// An account was enabled again.
    pub const USER_ENABLE: &str = "user.enable";
    /// A user became an administrator.
    pub const USER_PROMOTE: &str = "user.promote";
    /// A user is no administrator any more.
    pub const USER_DEMOTE: &str = "user.demote";
    /// An account was deleted.
    pub const USER_DELETE: &str = "user.delete";
    /// Somebody was invited to make an account.
    pub const INVITATION_CREATE: &str = "invitation.create";
    /// An invitation was revoked.
    pub const INVITATION_REVOKE: &str = "invitation.revoke";
    /// A user signed in, or tried to.
    pub const LOGIN: &str = "login";
    /// A user signed out.
    pub const LOGOUT: &str = "logout";
    /// A user ended a sign-in.
    pub const SESSION_END: &str = "session.end";
    /// A user proved again who they are.
    pub const SESSION_PROVE: &str = "session.prove";
    /// A user set up an authenticator app.
    pub const TOTP_CREATE: &str = "totp.create";
    /// A user removed their authenticator app.
    pub const TOTP_DELETE: &str = "totp.delete";
    /// A user used a recovery code.
    pub const RECOVERY_CODE_USE: &str = "recovery_code.use";
    /// A user made a passkey.
    pub const PASSKEY_CREATE: &str = "passkey.create";
    /// A user removed a passkey.
    pub const PASSKEY_DELETE: &str = "passkey.delete";
    /// The operator removed all second factors of a user.
    pub const SECOND_FACTOR_RESET: &str = "second_factor.reset";
    /// A user linked an account of the identity provider to theirs.
    pub const IDENTITY_LINK: &str = "identity.link";
    /// A user removed such a link.
    pub const IDENTITY_UNLINK: &str = "identity.unlink";
    /// A user changed their profile.
    pub const PROFILE_UPDATE: &str = "profile.update";
    /// A user changed their password.
    pub const PASSWORD_CHANGE: &str = "password.change";
    /// The operator reset a user's password.
    pub const PASSWORD_RESET: &str = "password.reset";
    /// A server was added.
    pub const SERVER_CREATE: &str = "server.create";
    /// A server was changed.
    pub const SERVER_UPDATE: &str = "server.update";
    /// A server was deleted.
    pub const SERVER_DELETE: &str = "server.delete";
    /// A server went to another account, because its owner's was deleted.
    pub const SERVER_TRANSFER: &str = "server.transfer";
    /// An API key was created.
    pub const API_KEY_CREATE: &str = "api_key.create";
    /// An API key was revoked.
    pub const API_KEY_REVOKE: &str = "api_key.revoke";
    /// A token for a program was created.
    pub const TOKEN_CREATE: &str = "token.create";
    /// A token of a program was revoked.
    pub const TOKEN_REVOKE: &str = "token.revoke";
    /// An enrolment was created.
    pub const ENROLMENT_CREATE: &str = "enrolment.create";
    /// A machine made itself a server with an enrolment.
    pub const ENROLMENT_USE: &str = "enrolment.use";
    /// An enrolment was revoked.
    pub const ENROLMENT_REVOKE: &str = "enrolment.revoke";
    /// A command ran on a server.
    pub const COMMAND_RUN: &str = "command.run";
    /// A command was cancelled.
    pub const COMMAND_CANCEL: &str = "command.cancel";
    /// A batch of commands was started.
    pub const BATCH_START: &str = "batch.start";
    /// A batch of commands was cancelled.
    pub const BATCH_CANCEL: &str = "batch.cancel";
    /// A schedule was created.
    pub const SCHEDULE_CREATE: &str = "schedule.create";
    /// A schedule was changed.
    pub const SCHEDULE_UPDATE: &str = "schedule.update";
    /// A schedule was deleted.
    pub const SCHEDULE_DELETE: &str = "schedule.delete";
    /// A schedule is about to run, or its run has ended.
    pub const SCHEDULE_RUN: &str = "schedule.run";
    /// A schedule was due and did not run.
    pub const SCHEDULE_MISS: &str = "schedule.miss";
    /// A rollout of a release of the agent began.
    pub const ROLLOUT_CREATE: &str = "rollout.create";
    /// A rollout was paused.
    pub const ROLLOUT_PAUSE: &str = "rollout.pause";
    /// A paused rollout continued.
    pub const ROLLOUT_RESUME: &str = "rollout.resume";
    /// A rollout was cancelled.
    pub const ROLLOUT_CANCEL: &str = "rollout.cancel";
    /// A rollout is done, or has stopped.
    pub const ROLLOUT_END: &str = "rollout.end";
    /// A rollout has updated the agent of a server, or has not.
    pub const AGENT_UPDATE: &str = "agent.update";
    /// Somebody asked for more signatures of a command.
    pub const APPROVAL_CREATE: &str = "approval.create";
    /// Somebody signed a command that waits.
    pub const APPROVAL_SIGN: &str = "approval.sign";
    /// A command has all its signatures, and is about to run.
    pub const APPROVAL_RUN: &str = "approval.run";
    /// Agents refused the signatures of a command, which waits for more.
    pub const APPROVAL_REOPEN: &str = "approval.reopen";
    /// A command did not get all its signatures in time.
    pub const APPROVAL_EXPIRE: &str = "approval.expire";
    /// Somebody withdrew a command that waits.
    pub const APPROVAL_WITHDRAW: &str = "approval.withdraw";
    /// A container was started.
    pub const CONTAINER_START: &str = "container.start";
    /// A container was stopped.
    pub const CONTAINER_STOP: &str = "container.stop";
    /// A container was restarted.
    pub const CONTAINER_RESTART: &str = "container.restart";
    /// A container was paused.
    pub const CONTAINER_PAUSE: &str = "container.pause";
    /// A container was unpaused.
    pub const CONTAINER_UNPAUSE: &str = "container.unpause";
    /// A terminal was opened.
    pub const TERMINAL_OPEN: &str = "terminal.open";
    /// The client of a terminal was lost, and the terminal is kept for a while.
    pub const TERMINAL_DETACH: &str = "terminal.detach";
    /// Somebody resumed a terminal that was kept.
    pub const TERMINAL_RESUME: &str = "terminal.resume";
    /// A terminal has ended, and its agent recorded it.
    pub const TERMINAL_RECORDED: &str = "terminal.recorded";
    /// Somebody read what a terminal showed.
    pub const TERMINAL_REPLAY: &str = "terminal.replay";
    /// A deploy or a note was written.
    pub const EVENT_CREATE: &str = "event.create";
    /// A deploy or a note was deleted.
    pub const EVENT_DELETE: &str = "event.delete";
    /// An alert was acknowledged.
    pub const ALERT_ACKNOWLEDGE: &str = "alert.acknowledge";
    /// A note was added to an alert.
    pub const ALERT_NOTE: &str = "alert.note";
    /// An alert was resolved by hand.
    pub const ALERT_RESOLVE: &str = "alert.resolve";
    /// A threshold was created.
    pub const THRESHOLD_CREATE: &str = "threshold.create";
    /// A threshold was changed.
    pub const THRESHOLD_UPDATE: &str = "threshold.update";
    /// A threshold was deleted.
    pub const THRESHOLD_DELETE: &str = "threshold.delete";
    /// A silence was created.
    pub const SILENCE_CREATE: &str = "silence.create";
    /// A silence was changed.
    pub const SILENCE_UPDATE: &str = "silence.update";
    /// A silence was deleted.
    pub const SILENCE_DELETE: &str = "silence.delete";
    /// A notification channel was created.
    pub const CHANNEL_CREATE: &str = "channel.create";
    /// A notification channel was changed.
    pub const CHANNEL_UPDATE: &str = "channel.update";
    /// A notification channel was deleted.
    pub const CHANNEL_DELETE: &str = "channel.delete";
    /// A notification channel was tested.
    pub const CHANNEL_TEST: &str = "channel.test";
    /// A view was saved.
    pub const VIEW_CREATE: &str = "view.create";
    /// A view was changed.
    pub const VIEW_UPDATE: &str = "view.update";
    /// A view was deleted.
    pub const VIEW_DELETE: &str = "view.delete";
    /// A dashboard was created.
    pub const DASHBOARD_CREATE: &str = "dashboard.create";
    /// A dashboard was changed.
    pub const DASHBOARD_UPDATE: &str = "dashboard.update";
    /// A dashboard was deleted.
    pub const DASHBOARD_DELETE: &str = "dashboard.delete";
    /// Somebody was granted a role on servers.
    pub const GRANT_CREATE: &str = "grant.create";
    /// A grant ended.
    pub const GRANT_DELETE: &str = "grant.delete";
    /// A team was created.
    pub const TEAM_CREATE: &str = "team.create";
    /// A team was renamed.
    pub const TEAM_UPDATE: &str = "team.update";
    /// A team was deleted.
    pub const TEAM_DELETE: &str = "team.delete";
    /// Somebody was added to a team.
    pub const TEAM_MEMBER_ADD: &str = "team.member_add";
    /// Somebody was removed from a team, or left it.
    pub const TEAM_MEMBER_REMOVE: &str = "team.member_remove";
}

/// The name of an operator on the service's own machine. No user can have it, because it has a space.
pub(super) const COMMAND_LINE: &str = "command line";

/// The name of the service itself.
const SERVICE: &str = "the service";

/// Longer targets and outcomes are cut; the service writes none.
const MAX_TEXT: usize = 200;

/// A token of a program, as entries name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByToken {
    /// The token.
    pub id: Uuid,
    /// Its name at this time.
    pub name: Arc<str>,
}

/// The actor of an entry, and where they came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// None for the service and its operator, and where nobody has proved who they are.
    pub user_id: Option<Uuid>,
    /// The actor's name at this time.
    pub username: Arc<str>,
    /// The sign-in that the user used.
    pub login_id: Option<Uuid>,
    /// The token that a program used in place of a sign-in.
    pub token: Option<ByToken>,
    /// The other end of the connection; empty when there was none.
    pub address: String,
}

impl Actor {
    /// An operator on the service's own machine.
    pub fn command_line() -> Self {
        Self::nobody(COMMAND_LINE, String::new())
    }

    /// The service itself, possibly because of a connection from `address`.
    pub fn service(address: impl Into<String>) -> Self {
        Self::nobody(SERVICE, address.into())
    }

    /// A caller who claims to be this user and did not prove it.
    pub fn claiming(username: &str, address: impl Into<String>) -> Self {
        Self::nobody(username, address.into())
    }

    /// Somebody with this name who has not proved to be a user.
    fn nobody(name: &str, address: String) -> Self {
        Self { user_id: None, username: name.into(), login_id: None, token: None, address }
    }
}

/// The form in which the agent logs who asks.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.token {
            None => write!(f, "{} from {}", self.username, self.address),
            Some(token) => write!(f, "{} by the token {} from {}", self.username, token.name, self.address),
        }
    }
}

/// The result of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Ok,
    /// It is about to be done; another entry with the same target says how it ended.
    Started,
    /// It was not allowed.
    Refused,
    /// It was not done, for this machine-readable reason.
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

/// An action that was done or tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// One of [`action`].
    pub action: &'static str,
    /// The user whose property it concerns, and who may read the entry.
    pub owner_id: Uuid,
    /// Who did it.
    pub actor: Actor,
    /// The server that it concerns.
    pub server_id: Option<Uuid>,
    /// The server's name. The store looks it up where it is none.
    pub server_name: Option<String>,
    /// What it was done to: the id of a key, a session, a container, a job.
    pub target: Option<String>,
    /// The result.
    pub outcome: Outcome,
    /// More about it, as a JSON object. Never a secret. Long texts are cut where it would be too large.
    pub detail: Value,
}

impl Entry {
    /// An entry about what this actor did to something of `owner_id`, with the outcome `ok`.
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

    /// Names the server that it concerns.
    pub fn on_server(self, server_id: Uuid) -> Self {
        Self { server_id: Some(server_id), ..self }
    }

    /// Names a server that may be deleted, or renamed by now.
    pub fn on_server_named(self, server_id: Uuid, name: impl Into<String>) -> Self {
        Self { server_id: Some(server_id), server_name: Some(name.into()), ..self }
    }

    /// Sets what it was done to.
    pub fn target(self, target: impl ToString) -> Self {
        Self { target: Some(target.to_string()), ..self }
    }

    /// Sets the result.
    pub fn outcome(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    /// Sets the details.
    pub fn detail(self, detail: Value) -> Self {
        Self { detail, ..self }
    }

    /// The record that follows `previous`, with its hash.
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
            detail: detail::text(self.detail, self.actor.token.as_ref()),
            hash: Vec::new(),
        };
        record.hash = chain::hash(&record, previous).to_vec();
        record
    }
}

/// Makes a text storable in every database, and short enough.
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
    fn a_given_name_wins_over_the_one_that_was_looked_up() {
        assert_eq!(record(entry().on_server(Uuid::max())).server_name.as_deref(), Some("web-1"));
        assert_eq!(record(entry().on_server_named(Uuid::max(), "old")).server_name.as_deref(), Some("old"));
    }

    #[test]
    fn characters_that_no_database_stores_are_replaced_and_long_texts_cut() {
        let target = format!("a\0b{}", "é".repeat(1_000));

        let kept = record(entry().target(target)).target.unwrap();

        assert!(kept.starts_with("a\u{fffd}bé"), "{kept}");
        assert_eq!(kept.chars().count(), MAX_TEXT);
    }
}
