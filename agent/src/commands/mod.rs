//! Shell commands that the service sends, if the machine's owner permits them.
//!
//! The path of a command: [`Commands::execute`] refuses it or starts its [`shell`] → [`job_table`] stores beginning and end of its
//! [`output`] → the connection's [`uplink`] sends the service new output, and then the result → the service's `result_ack`
//! frees it. A command belongs to the agent and not to a connection: it continues when the connection breaks, and everything
//! that is held is sent again on the next one. With a state directory the [`journal`] preserves results across restarts of the
//! agent; [`records`] writes it, so that no command waits for a disk that hangs.
//!
//! When the agent is stopped, running commands are asked to end and then killed, all within the time that a stop may take. They
//! count as cancelled, because somebody ended them on purpose, and the next start sends their result. `lost` is for unknown
//! outcomes: the agent was killed. Processes that still run then are ended at the next start. A command that comes after the agent
//! has said goodbye does not begin; the next start refuses it.

mod job_table;
mod journal;
mod output;
mod pipes;
mod records;
mod shell;
mod uplink;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use signalbox_protocol::agent::{CommandResult, CommandStatus, Execute, RequestError, Response, Stream};
use tokio::sync::{Notify, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::config::Config;
use crate::policy::{Permit, Switch};
use crate::process::{Identity, terminate};
use crate::signed::{Asked, Gate};
use crate::state::StateDir;
use crate::updates::Role;
use job_table::{Job, JobTable};
use journal::RecoveredJob;
use records::{Left, Records};
use shell::{End, GRACE, Program, Shell};
pub use uplink::Uplink;

/// The time that commands have to end on their own when the agent ends, which takes less than 2 s in total.
const LAST_GRACE: Duration = Duration::from_millis(400);
/// The time for all commands, including the killing and the journal.
const LAST_WAIT: Duration = Duration::from_millis(700);
/// A result that the service has not acknowledged after this time is synced to the disk.
const SYNC_AFTER: Duration = Duration::from_secs(1);
/// How soon after a hang the missing records are written to the disk.
const CATCH_UP_AFTER: Duration = Duration::from_secs(1);
/// How many characters of a command the host's log shows.
const LOGGED_CHARACTERS: usize = 200;

/// The commands of an agent. Its successive connections share them.
#[derive(Clone)]
pub struct Commands {
    shared: Arc<Shared>,
}

struct Shared {
    policy: Permit<Switch>,
    /// Whether this build is on trial and so ends within seconds.
    is_on_trial: bool,
    gate: Gate,
    proc: PathBuf,
    records: Records,
    /// Locked for the length of one call, never across an await.
    held: Mutex<JobTable>,
    tasks: Mutex<JoinSet<()>>,
    /// There is something to send.
    news: Notify,
    /// A command has ended.
    ended: Notify,
}

impl Commands {
    /// Adds what an earlier run of the agent left in the state directory: at once, or when its disk responds.
    pub fn open(config: &Config, state: Option<StateDir>, gate: Gate) -> Self {
        let proc = config.roots.proc.clone();
        let (records, left) = Records::open(state, &proc);
        let commands = Self {
            shared: Arc::new(Shared {
                policy: config.policy.commands.clone(),
                is_on_trial: config.updates.running.role == Role::Trial,
                gate,
                proc,
                records,
                held: Mutex::default(),
                tasks: Mutex::default(),
                news: Notify::new(),
                ended: Notify::new(),
            }),
        };
        commands.take_up(left);
        commands.care_for_records();
        commands
    }

    /// Starts a command, or returns the refusal. A command that is or was held is not started again.
    pub fn execute(&self, execute: Execute) -> Option<Response> {
        let command_id = execute.command_id;
        if self.lock().knows(command_id) {
            tracing::debug!(job.id = %command_id, "ignored a command that came twice");
            return None;
        }
        let (by, command) = logged(&execute);
        match self.start(execute) {
            Ok(()) => {
                tracing::info!(job.id = %command_id, by, command, "runs a command");
                None
            }
            Err(refusal) => {
                tracing::warn!(job.id = %command_id, by, command, reason = refusal.detail, "refused a command");
                Some(Response::new(command_id, Err(refusal)))
            }
        }
    }

    /// Refuses a command that the service sent before it knew that the agent ends, on a connection that sends nothing any more: the
    /// next start sends the refusal. Without a state directory, or without room for it, the command counts as lost.
    pub fn decline(&self, execute: &Execute) {
        let command_id = execute.command_id;
        if self.lock().knows(command_id) {
            return;
        }
        let refusal = RequestError::new("agent_busy", "the agent was ending when the command came: send it again");
        let (by, command) = logged(execute);
        tracing::warn!(job.id = %command_id, by, command, reason = refusal.detail, "refused a command");
        if self.lock().refuse(command_id, refusal.clone()) {
            self.shared.records.refused(command_id, refusal);
        }
    }

    /// Ends a command with its whole process group, if it runs.
    pub fn cancel(&self, command_id: Uuid) {
        self.lock().cancel(command_id, GRACE);
    }

    /// Frees a result that the service has.
    pub fn acknowledge(&self, command_id: Uuid) {
        if self.lock().acknowledge(command_id) {
            self.forget(command_id);
        }
    }

    /// The running commands, those whose result was not acknowledged, and those whose refusal was not sent. None while it is unknown
    /// which an earlier run left.
    pub fn ids(&self) -> Option<Vec<Uuid>> {
        self.shared.records.is_read().then(|| self.lock().ids())
    }

    /// Ends running commands, because the agent ends.
    pub async fn stop(&self) {
        self.lock().cancel_all(LAST_GRACE);
        let all_ended = async {
            loop {
                let ended = self.shared.ended.notified();
                if self.lock().running() == 0 {
                    return;
                }
                ended.await;
            }
        };
        if timeout(LAST_WAIT, all_ended).await.is_err() {
            tracing::warn!("kills the commands that have not ended by themselves");
        }
        self.abandon();
    }

    /// Whether none runs.
    pub fn are_idle(&self) -> bool {
        self.lock().running() == 0
    }

    /// Kills everything that runs and forgets it.
    pub fn abandon(&self) {
        self.shared.tasks.lock().abort_all();
    }

    fn start(&self, execute: Execute) -> Result<(), RequestError> {
        if self.shared.is_on_trial {
            return Err(RequestError::new("agent_busy", "the agent tries a new build: send it again in a minute"));
        }
        // Before the signature is used up.
        self.lock().admit()?;
        let words = self.permit(&execute)?;
        let Execute { command_id, command, stdin, timeout_seconds, by: _, asker: _, signed: _ } = execute;
        self.shared.records.begin(command_id);
        let began = Instant::now();
        let program = words.as_deref().map_or(Program::Shell(&command), Program::Words);
        let shell = Shell::start(program, stdin, &self.shared.proc).map_err(|error| {
            self.forget(command_id);
            RequestError::new("agent_error", &format!("cannot start the shell: {error}"))
        })?;
        if let Some(identity) = shell.identity() {
            self.shared.records.spawned(command_id, identity);
        }
        self.care_for_records();
        let (cancel, cancelled) = oneshot::channel();
        self.lock().insert(command_id, Job::running(Some(cancel)));
        let limit = Duration::from_secs(timeout_seconds.max(1).into());
        let commands = self.clone();
        self.spawn(async move {
            let keep = |stream, text: &str| commands.keep(command_id, stream, text);
            let end = shell.run(limit, cancelled, keep).await;
            commands.finish(result(command_id, end, began.elapsed())).await;
        });
        Ok(())
    }

    /// The only check: nothing runs unless the machine's owner has permitted it, for any caller. Returns the words of a command
    /// that runs without a shell.
    fn permit(&self, execute: &Execute) -> Result<Option<Vec<String>>, RequestError> {
        let Execute { command_id, command, stdin, timeout_seconds, asker, signed, .. } = execute;
        let (command, stdin) = (command.as_str(), stdin.as_deref());
        match self.shared.policy.grade {
            Switch::Off => Err(RequestError::new("agent_refused", "this agent runs no commands")),
            Switch::On => self.shared.policy.expect(asker.as_ref(), "runs commands").map(|()| None),
            Switch::Signed => {
                if signed.is_none()
                    && let Some(words) = self.shared.gate.allowed(command, stdin)
                {
                    return Ok(Some(words));
                }
                let asked = Asked::Command { command, stdin, timeout_seconds: *timeout_seconds };
                self.shared.gate.permit(signed.as_ref(), asked, *command_id).map(|_| None)
            }
        }
    }

    /// Holds what an earlier run left.
    fn take_up(&self, left: Left) {
        for (command_id, found) in left {
            match found {
                // The command was sent again before this was known.
                _ if self.lock().knows(command_id) => {}
                RecoveredJob::Ended { result, output } => self.lock().insert(command_id, Job::ended(result, output)),
                RecoveredJob::Unfinished(shell) => self.lose(command_id, shell),
                RecoveredJob::Refused(refusal) => self.lock().insert(command_id, Job::refused(refusal)),
            }
        }
        self.shared.news.notify_one();
    }

    /// Ends what is left of a command that outlived its agent, and records that its outcome is unknown.
    fn lose(&self, command_id: Uuid, shell: Option<Identity>) {
        self.lock().insert(command_id, Job::running(None));
        let commands = self.clone();
        self.spawn(async move {
            if let Some(group) = shell.and_then(|shell| shell.still(&commands.shared.proc)) {
                tracing::warn!(job.id = %command_id, "ends a command that outlived the agent that started it");
                terminate(&commands.shared.proc, group, GRACE).await;
            }
            let status = CommandStatus::Lost.name().to_owned();
            let lost = CommandResult { command_id, status, exit_code: None, duration_ms: 0, truncated: false };
            commands.finish(lost).await;
        });
    }

    fn keep(&self, command_id: Uuid, stream: Stream, text: &str) {
        self.lock().push(command_id, stream, text);
        self.shared.news.notify_one();
    }

    async fn finish(&self, mut result: CommandResult) {
        let command_id = result.command_id;
        self.write_end(&mut result);
        self.care_for_records();
        tracing::info!(
            job.id = %command_id, status = result.status, exit_code = result.exit_code, duration_ms = result.duration_ms,
            "a command has ended"
        );
        self.lock().finish(result);
        self.shared.news.notify_one();
        self.shared.ended.notify_waiters();
        self.sync_later(command_id).await;
    }

    /// Writes the end to the journal, before the service learns of it.
    fn write_end(&self, result: &mut CommandResult) {
        let held = self.lock();
        let Some(job) = held.get(result.command_id) else { return };
        result.truncated = job.output.is_truncated();
        self.shared.records.ended(result, &job.output);
    }

    async fn sync_later(&self, command_id: Uuid) {
        loop {
            sleep(SYNC_AFTER).await;
            if self.lock().get(command_id).is_none() || self.shared.records.sync(command_id) {
                return;
            }
        }
    }

    fn forget(&self, command_id: Uuid) {
        self.shared.records.remove(command_id);
        self.care_for_records();
    }

    /// Updates the journal once a disk that hung is back.
    fn care_for_records(&self) {
        if !self.shared.records.needs_care() {
            return;
        }
        let commands = self.clone();
        self.spawn(async move {
            while !commands.shared.records.is_cared_for() {
                sleep(CATCH_UP_AFTER).await;
                let left = commands.shared.records.catch_up(&commands.lock());
                commands.take_up(left);
            }
        });
    }

    /// Resolves when there may be something to send.
    async fn news(&self) {
        self.shared.news.notified().await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.shared.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    fn lock(&self) -> MutexGuard<'_, JobTable> {
        self.shared.held.lock()
    }
}

/// Who sent a command, and the beginning of its text, for the host's log.
fn logged(execute: &Execute) -> (String, String) {
    (execute.by.clone().unwrap_or_default(), execute.command.chars().take(LOGGED_CHARACTERS).collect())
}

fn result(command_id: Uuid, end: End, duration: Duration) -> CommandResult {
    CommandResult {
        command_id,
        status: end.status.name().to_owned(),
        exit_code: Some(end.exit_code),
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        truncated: false,
    }
}
