//! Commands: jobs on top of the registry.
//!
//! A command is stored as a row before it is sent, and is sent once. From then on its agent owns it: if the connection
//! breaks or the service restarts, the agent keeps the result until the service confirms that it is stored. A running
//! command is a [`Job`](job::Job) in memory, which gathers the output and wakes everyone who waits or watches. When its end
//! is stored, only the row remains.
//!
//! - [`Jobs`]: starts, finds, waits for and cancels commands; `running`: the jobs that this instance has
//! - [`NewJob`]: a command that somebody wants to run
//! - [`job`]: one command while it runs; [`locus`] (pure): which instance owns it, and whether it was sent
//! - [`output`] (pure): the part of its output that is kept; `output_places`: the memory that all outputs take together
//! - [`reports`]: handles what agents report; `writer`: writes the changes of many commands at once
//! - `dispatch`: sends commands to their agents; `local`: to those of this instance
//! - [`batch`]: one command for many servers; `batch_run`: a batch while it runs
//! - [`approvals`]: signed commands that wait until enough people have signed them
//! - [`schedules`]: commands that recur
//! - `storage`, `retention`: remove old commands; `entries`: the audit log's entries
//!
//! With several instances, the instance that gets the request stores the command. The instance to which its agent is
//! connected, its owner, sends and ends it. Other instances that need it have a replica of the job.
//!
//! - [`peer_messages`]: the messages between instances; `remote`: how they are sent
//! - `remote_jobs`: sends and follows jobs of other instances; `replicas`: keeps replicas equal to the owner's jobs
//! - [`published`]: publishes this instance's jobs to replicas; `runners`: which instance runs which batch
//! - `alone`: replaces these on a single instance

mod alone;
pub mod approvals;
pub mod batch;
mod batch_run;
mod dispatch;
mod entries;
pub mod job;
mod jobs;
mod local;
pub mod locus;
mod new_job;
pub mod output;
mod output_places;
pub mod peer_messages;
pub mod published;
mod remote;
mod remote_jobs;
mod replicas;
pub mod reports;
mod retention;
mod runners;
mod running;
pub mod schedules;
mod storage;
mod writer;

use serde::{Deserialize, Serialize};
use signalbox_protocol::agent::CommandStatus;

pub use jobs::{Jobs, Parts, RunError};
pub use new_job::NewJob;

/// The status of a command.
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
    /// It was sent, and its outcome is not known.
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

    /// Returns the status of this name; an unknown name counts as failed.
    pub fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|status| status.name() == name).unwrap_or(Self::Failed)
    }

    /// Returns whether the command has ended.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// Returns the status for an agent's word for the end of a command; an unknown word counts as failed.
fn ended_as(name: &str) -> JobStatus {
    match CommandStatus::of(name) {
        Some(CommandStatus::Succeeded) => JobStatus::Succeeded,
        Some(CommandStatus::TimedOut) => JobStatus::TimedOut,
        Some(CommandStatus::Cancelled) => JobStatus::Cancelled,
        Some(CommandStatus::Lost) => JobStatus::Lost,
        Some(CommandStatus::Failed) | None => JobStatus::Failed,
    }
}
