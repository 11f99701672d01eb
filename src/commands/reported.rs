//! What agents say of their commands: output, results, refusals, and which they hold.

use std::collections::HashSet;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{CommandOutput, CommandResult, RequestError};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::job::{End, Job};
use super::jobs::{Jobs, STORE_AGAIN_AFTER};
use super::mirrors::Arriving;
use super::tidy::before;
use super::{JobStatus, ended_as};
use crate::store::{Command, StoreError};

/// A command that was stored so lately may be on its way from another instance. Clocks of instances differ a little.
const LATELY: Duration = Duration::from_secs(10);

/// It comes within this time, or never.
const COMES_WITHIN: Duration = Duration::from_secs(2);

impl Jobs {
    /// Takes a piece of output. Only of a job that was sent to this server.
    pub fn output(&self, server_id: Uuid, piece: &CommandOutput) {
        match self.find(server_id, piece.command_id) {
            Some(job) => {
                job.take_home();
                job.add(piece);
            }
            None => metrics::counter!("signalbox_agent_messages_unasked_total").increment(1),
        }
    }

    /// Takes a result. Resolves when the agent need not keep it any more.
    pub fn result(&self, server_id: Uuid, result: CommandResult) -> oneshot::Receiver<()> {
        let (settled, is_settled) = oneshot::channel();
        let id = result.command_id;
        let end = End {
            status: ended_as(&result.status),
            exit_code: result.exit_code,
            duration_ms: Some(result.duration_ms),
            is_truncated: result.truncated,
            error: None,
            at: Timestamp::now(),
        };
        let job = self.find(server_id, id);
        // At once, and not in the task: whoever waits is answered before anything is written.
        let is_first = job.as_ref().is_some_and(|job| {
            job.take_home();
            job.end(end.clone())
        });
        let jobs = self.clone();
        tokio::spawn(async move {
            match job {
                // Whose home ended it may not have come to store it; what is stored already stays as it is.
                Some(job) if is_first || job.is_mirror() => jobs.store_end(&job).await,
                Some(job) => jobs.until_stored(&job).await,
                // Given away a moment ago, as if its agent had gone.
                None if !jobs.cluster.is_alone() => jobs.store_end_of(server_id, id, end).await,
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
        job.take_home();
        let jobs = self.clone();
        if job.end(End::without_result(JobStatus::Failed, Some(error))) {
            tokio::spawn(async move { jobs.store_end(&job).await });
        }
        true
    }

    /// An agent has connected and says which commands it holds: those that it should and does not are lost, and those
    /// that it does are taken up again. It counts as being here until what this gives is dropped.
    pub async fn reconcile(&self, server_id: Uuid, held: Option<&[Uuid]>) -> Result<Arriving, StoreError> {
        let arriving = self.arrives(server_id);
        let rows = self.store.commands_to_reconcile(server_id, held.unwrap_or_default()).await?;
        let called_off = self.batches_called_off(&rows).await?;
        for row in rows {
            let is_called_off = row.batch_id.is_some_and(|batch_id| called_off.contains(&batch_id));
            let is_held = held.is_none_or(|held| held.contains(&row.id));
            let found = self.find(server_id, row.id);
            let may_come = !self.cluster.is_alone() && may_come(found.as_deref(), &row);
            let job = match found {
                // On its way this very moment.
                Some(job) if !job.is_sent() => continue,
                _ if !is_held && may_come => {
                    let jobs = self.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(COMES_WITHIN).await;
                        jobs.give_up_unless_here(row).await;
                    });
                    continue;
                }
                Some(job) => job,
                None if JobStatus::of(&row.status) == JobStatus::Running || is_held => {
                    self.remember(Job::sent_before(row))
                }
                None => continue,
            };
            job.take_home();
            if is_called_off {
                job.call_off();
            }
            if !is_held && job.ended().is_none() {
                tracing::warn!(server.id = %server_id, job.id = %job.id(), "a command was lost by its agent");
                self.conclude(&job, End::without_result(JobStatus::Lost, None)).await;
            }
        }
        Ok(arriving)
    }

    /// Which of their batches somebody called off.
    async fn batches_called_off(&self, rows: &[Command]) -> Result<HashSet<Uuid>, StoreError> {
        let ids: HashSet<Uuid> = rows.iter().filter_map(|row| row.batch_id).collect();
        if self.cluster.is_alone() || ids.is_empty() {
            return Ok(HashSet::new());
        }
        let standings = self.store.batch_standings(&ids.into_iter().collect::<Vec<_>>()).await?;
        Ok(standings.into_iter().filter(|batch| batch.is_cancelled).map(|batch| batch.id).collect())
    }

    /// Stores how a command ended whose job is not here, unless its end is known.
    async fn store_end_of(&self, server_id: Uuid, id: Uuid, end: End) {
        let row = loop {
            match self.store.find_command(server_id, id).await {
                Ok(row) => break row,
                Err(error) => tracing::error!(job.id = %id, %error, "a command that has ended could not be looked up"),
            }
            tokio::time::sleep(STORE_AGAIN_AFTER).await;
        };
        let has_ended = |row: &Command| !matches!(JobStatus::of(&row.status), JobStatus::Running | JobStatus::Lost);
        let Some(row) = row.filter(|row| !has_ended(row)) else { return };
        let job = self.remember(Job::sent_before(row));
        job.take_home();
        if job.end(end) {
            self.store_end(&job).await;
        }
    }
}

/// Whether a command that its agent does not hold may be on its way from another instance; or runs, and what the agent
/// said is older than that, because its handshake took long.
fn may_come(found: Option<&Job>, row: &Command) -> bool {
    found.is_none_or(Job::is_mirror) && is_recent(row)
}

/// Whether a command was stored so lately that it may be on its way still.
fn is_recent(row: &Command) -> bool {
    let started_at = row.started_at.map_or_else(Timestamp::now, Timestamp::from);
    started_at > before(Timestamp::now(), LATELY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Actor;
    use crate::commands::NewJob;

    fn started_before(age: Duration) -> Command {
        let new = NewJob {
            server_id: Uuid::now_v7(),
            owner_id: Uuid::nil(),
            actor: Actor::command_line(),
            command: "make".to_owned(),
            stdin: None,
            timeout_seconds: 60,
        };
        let started_at = before(Timestamp::now(), age);
        Command { started_at: Some(started_at.into()), ..new.into_row(JobStatus::Running, None) }
    }

    #[test]
    fn what_another_instance_has_sent_lately_is_not_lost_yet() {
        let (fresh, old) = (started_before(Duration::ZERO), started_before(2 * LATELY));

        assert!(may_come(None, &fresh));
        assert!(may_come(Some(&Job::mirror(fresh.clone())), &fresh));
        assert!(!may_come(Some(&Job::sent_before(fresh.clone())), &fresh), "it was sent from here");
        assert!(!may_come(Some(&Job::mirror(old.clone())), &old));
        assert!(!may_come(None, &old));
    }
}
