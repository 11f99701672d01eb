//! What agents say of their commands: output, results, refusals, and which they hold.

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{CommandOutput, CommandResult, RequestError};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::job::{End, Job};
use super::jobs::Jobs;
use super::{JobStatus, ended_as};
use crate::store::StoreError;

impl Jobs {
    /// Takes a piece of output. Only of a job that was sent to this server.
    pub fn output(&self, server_id: Uuid, piece: &CommandOutput) {
        match self.find(server_id, piece.command_id) {
            Some(job) => job.add(piece),
            None => metrics::counter!("signalbox_agent_messages_unasked_total").increment(1),
        }
    }

    /// Takes a result. Resolves when the agent need not keep it any more.
    pub fn result(&self, server_id: Uuid, result: CommandResult) -> oneshot::Receiver<()> {
        let (settled, is_settled) = oneshot::channel();
        let job = self.find(server_id, result.command_id);
        // At once, and not in the task: whoever waits is answered before anything is written.
        let is_first = job.as_ref().is_some_and(|job| {
            job.end(End {
                status: ended_as(&result.status),
                exit_code: result.exit_code,
                duration_ms: Some(result.duration_ms),
                is_truncated: result.truncated,
                error: None,
                at: Timestamp::now(),
            })
        });
        let jobs = self.clone();
        tokio::spawn(async move {
            match job {
                Some(job) if is_first => jobs.store_end(&job).await,
                Some(job) => jobs.until_stored(&job).await,
                None => {}
            }
            // Of a job that is not here nothing can be stored: it was before, or its server was deleted.
            _ = settled.send(());
        });
        is_settled
    }

    /// The agent answers for a command that it does not run.
    pub fn refused(&self, server_id: Uuid, id: Uuid, error: RequestError) -> bool {
        let Some(job) = self.find(server_id, id) else { return false };
        let jobs = self.clone();
        if job.end(End::without_result(JobStatus::Failed, Some(error))) {
            tokio::spawn(async move { jobs.store_end(&job).await });
        }
        true
    }

    /// An agent has connected and says which commands it holds: those that it should and does not are lost, and those
    /// that it does are taken up again.
    pub async fn reconcile(&self, server_id: Uuid, held: Option<&[Uuid]>) -> Result<(), StoreError> {
        for row in self.store.commands_to_reconcile(server_id, held.unwrap_or_default()).await? {
            let is_held = held.is_none_or(|held| held.contains(&row.id));
            let job = match self.find(server_id, row.id) {
                // On its way this very moment.
                Some(job) if !job.is_sent() => continue,
                Some(job) => job,
                None if JobStatus::of(&row.status) == JobStatus::Running || is_held => {
                    self.remember(Job::sent_before(row))
                }
                None => continue,
            };
            if !is_held && job.ended().is_none() {
                tracing::warn!(server.id = %server_id, job.id = %job.id(), "a command was lost by its agent");
                self.conclude(&job, End::without_result(JobStatus::Lost, None)).await;
            }
        }
        Ok(())
    }
}
