//! Commands: jobs on top of the registry.
//!
//! A command is a row before it is sent, and is sent once. From then on its agent owns it: the connection may break and
//! the service restart, the agent keeps the result until it hears that it is stored. What runs is a [`Job`](job::Job) in memory,
//! which gathers the output and wakes whoever waits or watches; when its end is stored the row is all there is.
//!
//! - [`Jobs`]: starts, finds, waits for and cancels commands      - `running`: those that are known here
//! - [`NewJob`]: one that somebody wants to run
//! - [`job`]: one command while it runs       - [`locus`] (pure): where it is looked after, and how far it came
//! - [`output`] (pure): what is kept of its output       - `local`: sends commands to the agents of this instance
//! - [`reports`]: takes what agents say        - `writer`: what happens is written many at a time
//! - `dispatch`: sends commands, wherever their agents are
//! - [`batch`]: one command for many servers   - `batch_run`: while it runs
//! - `storage`, `retention`: what gives way     - `entries`: what the audit log is told
//!
//! Where there are several instances, a command is stored by the one that was asked, and sent and ended by the one that
//! holds its agent, its home. The others that need it have a replica of the job.
//!
//! - [`shared`]: what instances say to each other of commands        - `remote`: the way it goes
//! - `elsewhere`: sends and follows what is elsewhere    - `replicas`: keeps the replicas as their homes have them
//! - [`published`]: jobs here that others have replicas of       - `runners`: which batches are whose
//! - `alone`: what stands in the place of these where there is one instance

mod alone;
pub mod batch;
mod batch_run;
mod dispatch;
mod elsewhere;
mod entries;
pub mod job;
mod jobs;
mod local;
pub mod locus;
mod new_job;
pub mod output;
pub mod published;
mod remote;
mod replicas;
pub mod reports;
mod retention;
mod runners;
mod running;
pub mod shared;
mod storage;
mod writer;

use serde::{Deserialize, Serialize};
use signalbox_protocol::agent::CommandStatus;

pub use jobs::{Jobs, Parts, RunError};
pub use new_job::NewJob;

/// Where a command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Waits for its turn in a batch.
    Queued,
    Running,
    Succeeded,
    Failed,
    TimedOut,
    Cancelled,
    /// Sent, and nobody knows what became of it.
    Lost,
    /// Its batch stopped before its turn came.
    Skipped,
}

impl JobStatus {
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Lost,
        Self::Skipped,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => CommandStatus::Succeeded.name(),
            Self::Failed => CommandStatus::Failed.name(),
            Self::TimedOut => CommandStatus::TimedOut.name(),
            Self::Cancelled => CommandStatus::Cancelled.name(),
            Self::Lost => CommandStatus::Lost.name(),
            Self::Skipped => "skipped",
        }
    }

    /// The status of this name; one that nobody knows counts as failed.
    pub fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|status| status.name() == name).unwrap_or(Self::Failed)
    }

    /// Whether nothing more is to come.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// What an agent's word for a command's end means; one that nobody knows counts as failed.
fn ended_as(name: &str) -> JobStatus {
    match CommandStatus::of(name) {
        Some(CommandStatus::Succeeded) => JobStatus::Succeeded,
        Some(CommandStatus::TimedOut) => JobStatus::TimedOut,
        Some(CommandStatus::Cancelled) => JobStatus::Cancelled,
        Some(CommandStatus::Lost) => JobStatus::Lost,
        Some(CommandStatus::Failed) | None => JobStatus::Failed,
    }
}
