//! A new command, before it is stored.

use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::Signed;
use uuid::Uuid;

use super::JobStatus;
use crate::audit::Actor;
use crate::store::Command;

/// A command that somebody wants to run.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub server_id: Uuid,
    /// The owner of the server.
    pub owner_id: Uuid,
    pub actor: Actor,
    pub command: String,
    pub stdin: Option<String>,
    /// What operators signed for it, which only the agent judges.
    pub signed: Option<Signed>,
    pub timeout_seconds: u32,
}

impl NewJob {
    /// A job for tests.
    #[cfg(test)]
    pub fn of_make(server_id: Uuid, owner_id: Uuid) -> Self {
        Self {
            server_id,
            owner_id,
            actor: Actor::command_line(),
            command: "make".to_owned(),
            stdin: None,
            signed: None,
            timeout_seconds: 60,
        }
    }

    pub fn into_row(self, status: JobStatus, batch_id: Option<Uuid>, now: Timestamp) -> Command {
        Command {
            id: Uuid::now_v7(),
            server_id: self.server_id,
            batch_id,
            owner_id: self.owner_id,
            user_id: self.actor.user_id.unwrap_or_default(),
            login_id: self.actor.login_id.or(self.actor.token.as_ref().map(|token| token.id)),
            username: self.actor.username.to_string(),
            address: self.actor.address,
            token_name: self.actor.token.map(|token| token.name.to_string()),
            command: self.command,
            // Not stored for a command that is sent now: it is not needed any more, and may be a secret.
            stdin: self.stdin.filter(|_| status == JobStatus::Queued),
            signed: self.signed.and_then(|signed| serde_json::to_string(&signed).ok()),
            timeout_seconds: i32::try_from(self.timeout_seconds).unwrap_or(i32::MAX),
            status: status.name().to_owned(),
            is_cancel_requested: false,
            exit_code: None,
            duration_ms: None,
            is_truncated: false,
            output: None,
            output_parts: None,
            error_code: None,
            error_detail: None,
            error_reason: None,
            created_at: now.into(),
            started_at: (status == JobStatus::Running).then_some(now.into()),
            finished_at: None,
        }
    }
}
