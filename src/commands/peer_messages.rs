//! The messages about commands between instances.

use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::JobStatus;
use super::job::End;
use super::output::Piece;
use crate::store::Command;

/// A request to the owner of a server. Each variant names the type of its answer.
#[derive(Debug, Serialize, Deserialize)]
pub enum CommandRequest {
    /// Asks whether one more command may run. Answered with a `bool`.
    Room,
    /// Sends a command, and publishes what happens to it to the reader. Answered with `Sent`.
    Start(Box<Start>),
    /// Publishes what happens to commands to the reader. Answered with a list of [`Followed`]: the commands that the owner has.
    Follow(Follow),
}

/// A command that is stored as running and has not been sent, for the owner of its server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// The instance to which the owner publishes what happens.
    pub reader: Uuid,
    pub row: CommandRow,
    pub stdin: Option<String>,
}

/// The part of a command's row that exists before the command has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandRow {
    id: Uuid,
    server_id: Uuid,
    batch_id: Option<Uuid>,
    owner_id: Uuid,
    user_id: Uuid,
    login_id: Option<Uuid>,
    username: String,
    address: String,
    #[serde(default)]
    token_name: Option<String>,
    command: String,
    #[serde(default)]
    signed: Option<String>,
    timeout_seconds: i32,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
}

/// Asks the owner of a server to publish some of its commands from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Follow {
    pub reader: Uuid,
    pub wanted: Vec<WantedCommand>,
}

/// A command that an instance needs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct WantedCommand {
    pub id: Uuid,
    /// How many bytes of its output the reader has.
    pub place: u64,
    /// Somebody has asked to end it.
    pub is_called_off: bool,
}

/// A command that its owner publishes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Followed {
    pub id: Uuid,
    pub started_at: Option<Timestamp>,
    /// How many bytes of output there are.
    pub place: u64,
}

/// New output of a command or its end, for an instance that has a replica.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandUpdate {
    pub id: Uuid,
    pub server_id: Uuid,
    pub pieces: Vec<Piece>,
    pub end: Option<End>,
}

impl From<&Command> for CommandRow {
    fn from(row: &Command) -> Self {
        Self {
            id: row.id,
            server_id: row.server_id,
            batch_id: row.batch_id,
            owner_id: row.owner_id,
            user_id: row.user_id,
            login_id: row.login_id,
            username: row.username.clone(),
            address: row.address.clone(),
            token_name: row.token_name.clone(),
            command: row.command.clone(),
            signed: row.signed.clone(),
            timeout_seconds: row.timeout_seconds,
            created_at: row.created_at.into(),
            started_at: row.started_at.map(Into::into),
        }
    }
}

impl From<CommandRow> for Command {
    fn from(row: CommandRow) -> Self {
        Self {
            id: row.id,
            server_id: row.server_id,
            batch_id: row.batch_id,
            owner_id: row.owner_id,
            user_id: row.user_id,
            login_id: row.login_id,
            username: row.username,
            address: row.address,
            token_name: row.token_name,
            command: row.command,
            stdin: None,
            signed: row.signed,
            timeout_seconds: row.timeout_seconds,
            status: JobStatus::Running.name().to_owned(),
            // Its reader asks again as long as the owner does not know it: see [`WantedCommand`].
            is_cancel_requested: false,
            exit_code: None,
            duration_ms: None,
            is_truncated: false,
            output: None,
            output_parts: None,
            error_code: None,
            error_detail: None,
            error_reason: None,
            created_at: row.created_at.into(),
            started_at: row.started_at.map(Into::into),
            finished_at: None,
        }
    }
}
