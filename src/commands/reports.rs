//! Handles what agents report about their commands: output, results, refusals, and which they hold.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use signalbox_protocol::agent::{CommandOutput, CommandResult, RequestError};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::job::{End, Job};
use super::local::{HandshakeGuard, LocalJobs};
use super::locus::Standing;
use super::remote_jobs::UnheldJobs;
use super::running::RunningJobs;
use super::writer::JobWriter;
use super::{JobStatus, ended_as};
use crate::clock::Clock;
use crate::cluster::remote::PROMPT;
use crate::store::{Store, StoreError};

/// A command that is on its way from another instance arrives within this time, or never: that instance may reconnect to the bus
/// before.
const COMES_WITHIN: Duration = PROMPT.saturating_add(Duration::from_secs(2));

/// Handles the reports of agents; cheap to clone.
#[derive(Clone)]
pub struct AgentReports {
    clock: Clock,
    store: Store,
    running: RunningJobs,
    writer: Arc<JobWriter>,
    local: Arc<LocalJobs>,
    elsewhere: Arc<dyn UnheldJobs>,
}

impl AgentReports {
    pub(super) fn new(
        clock: Clock,
        store: Store,
        running: RunningJobs,
        writer: Arc<JobWriter>,
        local: Arc<LocalJobs>,
        elsewhere: Arc<dyn UnheldJobs>,
    ) -> Self {
        Self { clock, store, running, writer, local, elsewhere }
    }

    /// Adds a piece of output, if the job was sent to this server.
    pub fn output(&self, server_id: Uuid, piece: &CommandOutput) {
        match self.running.find(server_id, piece.command_id) {
            Some(job) => {
                job.change(Standing::set_local);
                job.add(piece);
            }
            None => metrics::counter!("signalbox_agent_messages_unasked_total").increment(1),
        }
    }

    /// Takes in a result. The receiver resolves when the agent does not have to keep it any more, with an error if it has to.
    pub fn result(&self, server_id: Uuid, result: CommandResult) -> oneshot::Receiver<()> {
        let (settled, is_settled) = oneshot::channel();
        let id = result.command_id;
        let end = End {
            status: ended_as(&result.status),
            exit_code: result.exit_code,
            duration_ms: Some(result.duration_ms),
            is_truncated: result.truncated,
            error: None,
            at: self.clock.now(),
        };
        let job = self.running.find(server_id, id);
        // Here and not in the task, so that callers that wait are answered before anything is written.
        let is_first = job.as_ref().is_some_and(|job| {
            job.change(Standing::set_local);
            job.end(end.clone())
        });
        let reports = self.clone();
        tokio::spawn(async move {
            match job {
                // If another instance published the end, it may not have stored it. An end that is stored stays.
                Some(job) if is_first || job.is_remote() => reports.writer.store_end(&job).await,
                Some(job) => reports.writer.until_stored(job.id()).await,
                None => {
                    // Its agent reports it again on its next connection.
                    let is_awaited = || !settled.is_closed();
                    if let Err(error) = reports.elsewhere.store_end_of(server_id, id, end, &is_awaited).await {
                        tracing::error!(server.id = %server_id, job.id = %id, %error, "an agent keeps the result of a command that could not be looked up");
                        return;
                    }
                }
            }
            _ = settled.send(());
        });
        is_settled
    }

    /// Takes in that the agent refuses a command. Returns whether this instance has the command.
    pub fn refused(&self, server_id: Uuid, id: Uuid, error: RequestError) -> bool {
        let Some(job) = self.running.find(server_id, id) else { return false };
        job.change(Standing::set_local);
        if job.end(End::without_result(JobStatus::Failed, Some(error), self.clock.now())) {
            let writer = self.writer.clone();
            tokio::spawn(async move { writer.store_end(&job).await });
        }
        true
    }

    /// Compares the commands that a connecting agent holds with those that it should hold: missing ones are lost, and the
    /// others continue. The agent counts as connected to this instance until the returned guard is dropped.
    pub async fn reconcile(&self, server_id: Uuid, held: Option<&[Uuid]>) -> Result<HandshakeGuard, StoreError> {
        let in_handshake = self.local.arrives(server_id);
        let rows = self.store.commands_to_reconcile(server_id, held.unwrap_or_default()).await?;
        let batch_ids = rows.iter().filter_map(|row| row.batch_id).collect();
        let called_off = self.elsewhere.called_off(batch_ids).await?;
        let mut lost = Vec::new();
        for row in rows {
            let is_called_off =
                row.is_cancel_requested || row.batch_id.is_some_and(|batch_id| called_off.contains(&batch_id));
            let is_held = held.is_none_or(|held| held.contains(&row.id));
            let found = self.running.find(server_id, row.id);
            let may_come = self.elsewhere.may_come(found.as_deref(), &row, self.clock.now());
            let job = match found {
                // It is being sent at this moment.
                Some(job) if !job.is_sent() => continue,
                _ if !is_held && may_come => {
                    let local = self.local.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(COMES_WITHIN).await;
                        local.give_up_unless_here(row).await;
                    });
                    continue;
                }
                Some(job) => job,
                None if JobStatus::of(&row.status) == JobStatus::Running || is_held => {
                    self.running.remember(Job::sent_before(row))
                }
                None => continue,
            };
            job.change(Standing::set_local);
            if is_called_off {
                job.request_cancel();
            }
            if !is_held && !job.is_over() {
                tracing::warn!(server.id = %server_id, job.id = %job.id(), "an agent has lost a command");
                lost.push(job);
            }
        }
        // Concurrently, so that they are written together: the agent's handshake waits for this.
        let written = lost.iter().map(|job| self.writer.conclude(job, self.writer.lost()));
        join_all(written).await;
        Ok(in_handshake)
    }

    /// Asks an agent that has reconnected to end the commands that somebody cancelled while it was disconnected.
    pub async fn remind(&self, server_id: Uuid) {
        let is_its = |job: &Job| job.row.server_id == server_id && job.is_cancel_requested();
        for job in self.running.all().into_iter().filter(|job| is_its(job)) {
            // If it has disconnected again, it is asked the next time.
            _ = self.local.ask_to_end(&job).await;
        }
    }
}
