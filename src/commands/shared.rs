//! What instances say to each other of commands.

use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::JobStatus;
use super::job::End;
use super::output::Piece;
use crate::store::Command;

/// What the home of a server is asked of commands. Each says what the answer is.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Whether one more command may run. `bool`.
    Room,
    /// Sends a command, and tells what happens to it on the subject of the reader. `Sent`.
    Start(Box<Start>),
    /// Tells what happens to commands on the subject of the reader. A list of [`Followed`], those that it knows.
    Follow(Follow),
}

/// A command that is stored as running and has not been sent, for the home of its server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// The instance that is told what happens.
    pub reader: Uuid,
    pub row: Row,
    pub stdin: Option<String>,
}

/// What of a command's row is known before it has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    id: Uuid,
    server_id: Uuid,
    batch_id: Option<Uuid>,
    owner_id: Uuid,
    user_id: Uuid,
    login_id: Option<Uuid>,
    username: String,
    address: String,
    command: String,
    timeout_seconds: i32,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
}

/// Asks the home of a server to tell of some of its commands from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Follow {
    pub reader: Uuid,
    pub wanted: Vec<Wanted>,
}

/// A command that somebody needs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Wanted {
    pub id: Uuid,
    /// How much of its output is known.
    pub place: u64,
    /// Somebody wants it to end.
    pub is_called_off: bool,
}

/// A command that its home tells of.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Followed {
    pub id: Uuid,
    pub started_at: Option<Timestamp>,
    /// How much output there is.
    pub place: u64,
}

/// What happened to a command, for whoever has a mirror of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Happened {
    pub id: Uuid,
    pub server_id: Uuid,
    pub pieces: Vec<Piece>,
    pub end: Option<End>,
}

impl From<&Command> for Row {
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
            command: row.command.clone(),
            timeout_seconds: row.timeout_seconds,
            created_at: row.created_at.into(),
            started_at: row.started_at.map(Into::into),
        }
    }
}

impl From<Row> for Command {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            server_id: row.server_id,
            batch_id: row.batch_id,
            owner_id: row.owner_id,
            user_id: row.user_id,
            login_id: row.login_id,
            username: row.username,
            address: row.address,
            command: row.command,
            stdin: None,
            timeout_seconds: row.timeout_seconds,
            status: JobStatus::Running.name().to_owned(),
            exit_code: None,
            duration_ms: None,
            is_truncated: false,
            output: None,
            output_parts: None,
            error_code: None,
            error_detail: None,
            created_at: row.created_at.into(),
            started_at: row.started_at.map(Into::into),
            finished_at: None,
        }
    }
}
