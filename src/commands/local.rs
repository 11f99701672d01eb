//! Jobs of agents that are connected to this instance, or are about to be.

use std::sync::Arc;

use dashmap::DashMap;
use signalbox_protocol::agent::{Execute, ServiceMessage};
use uuid::Uuid;

use super::entries;
use super::job::Job;
use super::locus::Standing;
use super::running::RunningJobs;
use super::writer::JobWriter;
use crate::auth::access::Access;
use crate::fleet::Fleet;
use crate::registry::{CallError, RegistryHandle};
use crate::store::Command;

/// Commands that the service lets run at the same time on one server; the agent may allow fewer.
pub(super) const MAX_RUNNING: usize = 256;

/// Sends commands to the agents of this instance, and knows which are connected; cheap to clone.
#[derive(Clone)]
pub(super) struct LocalJobs {
    registry: RegistryHandle,
    /// Reaches only the agents of this instance.
    here: RegistryHandle,
    access: Access,
    fleet: Fleet,
    running: RunningJobs,
    writer: Arc<JobWriter>,
    /// The number of handshakes in progress, by server.
    in_handshake: Arc<DashMap<Uuid, usize>>,
}

impl LocalJobs {
    pub fn new(
        registry: RegistryHandle,
        access: Access,
        fleet: Fleet,
        running: RunningJobs,
        writer: Arc<JobWriter>,
    ) -> Self {
        Self { here: registry.here(), registry, access, fleet, running, writer, in_handshake: Arc::default() }
    }

    /// Returns whether the agent of a server is connected to this instance.
    pub fn is_here(&self, server_id: Uuid) -> bool {
        self.fleet.is_here(server_id)
    }

    /// Returns whether the agent is connected to this instance or in its handshake.
    pub fn is_with_us(&self, server_id: Uuid) -> bool {
        // In this order: an agent is connected before its handshake ends.
        self.in_handshake.contains_key(&server_id) || self.is_here(server_id)
    }

    /// Counts a handshake until the returned guard is dropped: the agent is then connected or refused.
    pub fn arrives(&self, server_id: Uuid) -> HandshakeGuard {
        HandshakeGuard::new(&self.in_handshake, server_id)
    }

    /// Sends a job to its agent, if that is connected to this instance.
    pub async fn execute(&self, job: &Job, stdin: Option<String>) -> Result<(), CallError> {
        let actor = entries::actor(&job.row);
        let execute = Execute {
            command_id: job.row.id,
            command: job.row.command.clone(),
            stdin,
            timeout_seconds: u32::try_from(job.row.timeout_seconds).unwrap_or_default(),
            by: Some(actor.to_string()),
            asker: self.access.asker(&actor),
            signed: entries::signed(&job.row),
        };
        self.here.execute(job.row.server_id, execute).await
    }

    /// Takes in that a job was sent to its agent, on whichever instance.
    pub async fn left(&self, job: &Job) {
        job.change(Standing::mark_sent);
        if job.is_cancel_requested() {
            // The request came before the command was sent, so the agent could not take it then.
            _ = self.ask_to_end(job).await;
        }
    }

    /// Asks the agent of a job to end it, on whichever instance. An agent that is not connected is asked when it reconnects.
    pub async fn ask_to_end(&self, job: &Job) -> Result<(), CallError> {
        let cancel = ServiceMessage::Cancel { command_id: job.id() };
        match self.registry.link(job.row.server_id).send(cancel).await {
            Err(CallError::Offline) => Ok(()),
            outcome => outcome,
        }
    }

    /// Gives up a command that its agent does not hold, unless it was sent in the meantime.
    pub async fn give_up_unless_here(&self, row: Command) {
        let is_known = || self.running.find(row.server_id, row.id).is_some_and(|job| !job.is_remote());
        if self.is_here(row.server_id) && !is_known() {
            tracing::warn!(server.id = %row.server_id, job.id = %row.id, "a command was never sent");
            let job = self.running.remember(Job::sent_before(row));
            job.change(Standing::set_local);
            self.writer.conclude(&job, self.writer.lost()).await;
        }
    }
}

/// A handshake in progress, counted until this is dropped. An agent may have two at the same time.
#[must_use]
pub struct HandshakeGuard {
    in_handshake: Arc<DashMap<Uuid, usize>>,
    server_id: Uuid,
}

impl HandshakeGuard {
    fn new(in_handshake: &Arc<DashMap<Uuid, usize>>, server_id: Uuid) -> Self {
        *in_handshake.entry(server_id).or_default() += 1;
        Self { in_handshake: in_handshake.clone(), server_id }
    }
}

impl Drop for HandshakeGuard {
    fn drop(&mut self) {
        self.in_handshake.alter(&self.server_id, |_, handshakes| handshakes.saturating_sub(1));
        self.in_handshake.remove_if(&self.server_id, |_, handshakes| *handshakes == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_arriving_for_as_long_as_any_of_its_handshakes_lasts() {
        let (in_handshake, server_id) = (Arc::<DashMap<Uuid, usize>>::default(), Uuid::now_v7());

        let first = HandshakeGuard::new(&in_handshake, server_id);
        let second = HandshakeGuard::new(&in_handshake, server_id);
        drop(first);

        assert!(in_handshake.contains_key(&server_id));
        drop(second);
        assert!(in_handshake.is_empty());
    }
}
