//! Jobs of agents that are connected to this instance, or about to be.

use std::sync::Arc;

use dashmap::DashMap;
use signalbox_protocol::agent::{Execute, RequestError, ServiceMessage};
use uuid::Uuid;

use super::job::{End, Job};
use super::locus::Standing;
use super::running::RunningJobs;
use super::writer::JobWriter;
use super::{JobStatus, entries};
use crate::fleet::Fleet;
use crate::registry::{CallError, RegistryHandle};
use crate::store::Command;

/// Commands of one server that may run at a time, as far as the service is concerned.
pub(super) const MOST_RUNNING: usize = 256;

/// Sends commands to the agents of this instance, and knows which those are, behind cheap clones.
#[derive(Clone)]
pub(super) struct LocalJobs {
    registry: RegistryHandle,
    /// Reaches the agents of this instance alone.
    here: RegistryHandle,
    fleet: Fleet,
    running: RunningJobs,
    writer: Arc<JobWriter>,
    /// Servers whose agents are about to be here, and by how many handshakes.
    arriving: Arc<DashMap<Uuid, usize>>,
}

impl LocalJobs {
    pub fn new(registry: RegistryHandle, fleet: Fleet, running: RunningJobs, writer: Arc<JobWriter>) -> Self {
        Self { here: registry.here(), registry, fleet, running, writer, arriving: Arc::default() }
    }

    /// Whether the agent of a server is connected to this instance.
    pub fn is_here(&self, server_id: Uuid) -> bool {
        self.fleet.is_here(server_id)
    }

    /// Whether it is, or is about to be.
    pub fn is_with_us(&self, server_id: Uuid) -> bool {
        self.is_here(server_id) || self.arriving.contains_key(&server_id)
    }

    /// An agent says which commands it holds: it is here in a moment, or is refused.
    pub fn arrives(&self, server_id: Uuid) -> Arriving {
        Arriving::new(&self.arriving, server_id)
    }

    /// What is known of a job leaves for its agent, if that is here.
    pub async fn execute(&self, job: &Job, stdin: Option<String>) -> Result<(), CallError> {
        let execute = Execute {
            command_id: job.row.id,
            command: job.row.command.clone(),
            stdin,
            timeout_seconds: u32::try_from(job.row.timeout_seconds).unwrap_or_default(),
            by: Some(entries::actor(&job.row).to_string()),
        };
        self.here.execute(job.row.server_id, execute).await
    }

    /// A job has left for its agent, wherever that is.
    pub async fn left(&self, job: &Job) {
        job.change(Standing::mark_sent);
        if job.is_cancel_requested() {
            // Before it was sent, so its agent did not know it yet.
            _ = self.ask_to_end(job).await;
        }
    }

    /// Asks the agent of a job to end it, wherever it is. One that is away is asked when it is back.
    pub async fn ask_to_end(&self, job: &Job) -> Result<(), CallError> {
        let cancel = ServiceMessage::Cancel { command_id: job.id() };
        match self.registry.link(job.row.server_id).send(cancel).await {
            Err(CallError::Offline) => Ok(()),
            outcome => outcome,
        }
    }

    /// Gives a command up that its agent does not hold, unless it was sent meanwhile.
    pub async fn give_up_unless_here(&self, row: Command) {
        let is_known = || self.running.find(row.server_id, row.id).is_some_and(|job| !job.is_remote());
        if self.is_here(row.server_id) && !is_known() {
            tracing::warn!(server.id = %row.server_id, job.id = %row.id, "a command was never sent");
            let job = self.running.remember(Job::sent_before(row));
            job.change(Standing::set_local);
            self.writer.conclude(&job, End::without_result(JobStatus::Lost, None)).await;
        }
    }
}

/// The handshake of an agent, for as long as it lasts. There may be two of one agent.
#[must_use]
pub struct Arriving {
    arriving: Arc<DashMap<Uuid, usize>>,
    server_id: Uuid,
}

impl Arriving {
    fn new(arriving: &Arc<DashMap<Uuid, usize>>, server_id: Uuid) -> Self {
        *arriving.entry(server_id).or_default() += 1;
        Self { arriving: arriving.clone(), server_id }
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.arriving.alter(&self.server_id, |_, handshakes| handshakes.saturating_sub(1));
        self.arriving.remove_if(&self.server_id, |_, handshakes| *handshakes == 0);
    }
}

/// That a command was not sent.
pub(super) fn failed(error: &CallError) -> End {
    End::without_result(JobStatus::Failed, Some(RequestError::new(error.code(), &error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_about_to_be_here_for_as_long_as_one_of_its_handshakes_lasts() {
        let (arriving, server_id) = (Arc::<DashMap<Uuid, usize>>::default(), Uuid::now_v7());

        let first = Arriving::new(&arriving, server_id);
        let second = Arriving::new(&arriving, server_id);
        drop(first);

        assert!(arriving.contains_key(&server_id));
        drop(second);
        assert!(arriving.is_empty());
    }
}
