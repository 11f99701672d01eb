//! Shell commands that the service asks for, if the machine's owner lets it.
//!
//! The way of a command: [`Commands::execute`] refuses it or starts its [`shell`] → its [`output`] is [`held`], beginning
//! and end → the connection's [`uplink`] tells the service what comes, and the result → the service's `result_ack` frees
//! it. A command belongs to the agent and not to a connection: it goes on when that breaks, and everything that is held
//! is told again on the next one. With a state directory the [`journal`] carries results through the agent's own
//! restarts.
//!
//! When the agent is stopped, what runs is told to end and then killed, all within the time that a stop may take. It
//! counts as cancelled, for somebody ended it on purpose, and its result is told at the next start. `lost` is left for
//! what nobody knows the end of: the agent was killed. What then still runs of it is ended at the next start.

mod held;
mod journal;
mod output;
mod pipes;
mod shell;
mod uplink;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signalbox_protocol::agent::{CommandResult, CommandStatus, Execute, RequestError, Response, Stream};
use tokio::sync::{Notify, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::config::Config;
use crate::policy::Switch;
use crate::process::{Identity, terminate};
use held::{Held, Job, MOST_HELD};
use journal::{Entry, Found, Journal};
use shell::{End, GRACE, Shell};
pub use uplink::Uplink;

/// What a command gets to end by itself when the agent ends, which takes less than 2 s in all.
const LAST_GRACE: Duration = Duration::from_millis(400);
/// For all commands, with the killing and the journal.
const LAST_WAIT: Duration = Duration::from_millis(700);
/// A result that the service has not acknowledged by now is put onto the disk itself.
const SYNC_AFTER: Duration = Duration::from_secs(1);
/// So much of a command stands in the log of its host.
const LOGGED_CHARACTERS: usize = 200;

/// The commands of an agent, shared by its connections, one after the other.
#[derive(Clone)]
pub struct Commands {
    shared: Arc<Shared>,
}

struct Shared {
    policy: Switch,
    proc: PathBuf,
    journal: Option<Journal>,
    /// Locked for the length of one call, never across an await.
    held: Mutex<Held>,
    tasks: Mutex<JoinSet<()>>,
    /// There is something to tell the service.
    news: Notify,
    /// A command has ended.
    ended: Notify,
}

impl Commands {
    /// Takes up what an earlier run of the agent left in the state directory, which has to be this agent's alone by now.
    pub fn open(config: &Config) -> Self {
        let proc = config.roots.proc.clone();
        let journal = config.state_dir.as_deref().map(|dir| Journal::open(dir, &proc)).transpose();
        let journal = journal.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot use the state directory: results of commands are kept in memory only");
            None
        });
        let commands = Self {
            shared: Arc::new(Shared {
                policy: config.policy.commands,
                proc,
                journal,
                held: Mutex::default(),
                tasks: Mutex::default(),
                news: Notify::new(),
                ended: Notify::new(),
            }),
        };
        commands.resume();
        commands
    }

    /// Starts a command, or gives the refusal. One that is held already, or was, is not started again.
    pub fn execute(&self, execute: Execute) -> Option<Response> {
        let command_id = execute.command_id;
        if self.lock().knows(command_id) {
            tracing::debug!(job.id = %command_id, "ignored a command that came twice");
            return None;
        }
        let by = execute.by.clone().unwrap_or_default();
        let command: String = execute.command.chars().take(LOGGED_CHARACTERS).collect();
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

    /// Ends a command with its whole process group, if it runs.
    pub fn cancel(&self, command_id: Uuid) {
        self.lock().cancel(command_id, GRACE);
    }

    /// The service has the result.
    pub fn acknowledge(&self, command_id: Uuid) {
        if self.lock().acknowledge(command_id)
            && let Some(journal) = &self.shared.journal
        {
            journal.remove(command_id);
        }
    }

    /// Those that run, and those whose result was not acknowledged.
    pub fn ids(&self) -> Vec<Uuid> {
        self.lock().ids()
    }

    /// Ends what runs, because the agent ends.
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

    /// Kills whatever runs and forgets about it.
    pub fn abandon(&self) {
        self.tasks().abort_all();
    }

    fn start(&self, execute: Execute) -> Result<(), RequestError> {
        // The one place: nothing is run here unless the machine's owner allowed it, whoever asks.
        if self.shared.policy != Switch::On {
            return Err(RequestError::new("agent_refused", "this agent runs no commands"));
        }
        self.lock().admit()?;
        let Execute { command_id, command, stdin, timeout_seconds, by: _ } = execute;
        let mut entry = self.note(command_id, |journal| journal.begin(command_id));
        let began = Instant::now();
        let shell = Shell::start(&command, stdin, &self.shared.proc).map_err(|error| {
            self.forget(command_id);
            RequestError::new("agent_error", &format!("cannot start the shell: {error}"))
        })?;
        if let (Some(entry), Some(identity)) = (&mut entry, shell.identity()) {
            self.note(command_id, |_| entry.spawned(identity));
        }
        let (cancel, cancelled) = oneshot::channel();
        self.lock().insert(command_id, Job::running(Some(cancel)));
        let limit = Duration::from_secs(timeout_seconds.max(1).into());
        let commands = self.clone();
        self.spawn(async move {
            let keep = |stream, text: &str| commands.keep(command_id, stream, text);
            let end = shell.run(limit, cancelled, keep).await;
            commands.finish(result(command_id, end, began.elapsed()), entry).await;
        });
        Ok(())
    }

    /// Takes up the journal.
    fn resume(&self) {
        let Some(journal) = &self.shared.journal else { return };
        let found = journal.load(MOST_HELD).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the journal of commands");
            Vec::new()
        });
        for (command_id, found) in found {
            match found {
                Found::Ended { result, output } => self.lock().insert(command_id, Job::ended(result, output)),
                Found::Unfinished(shell) => self.lose(command_id, shell),
            }
        }
    }

    /// Ends what is left of a command that outlived its agent, and notes that nobody knows how it ended.
    fn lose(&self, command_id: Uuid, shell: Option<Identity>) {
        self.lock().insert(command_id, Job::running(None));
        let entry = self.note(command_id, |journal| journal.resume(command_id));
        let commands = self.clone();
        self.spawn(async move {
            if let Some(group) = shell.and_then(|shell| shell.still(&commands.shared.proc)) {
                tracing::warn!(job.id = %command_id, "ends a command that outlived the agent that started it");
                terminate(&commands.shared.proc, group, GRACE).await;
            }
            let status = CommandStatus::Lost.name().to_owned();
            let lost = CommandResult { command_id, status, exit_code: None, duration_ms: 0, truncated: false };
            commands.finish(lost, entry).await;
        });
    }

    fn keep(&self, command_id: Uuid, stream: Stream, text: &str) {
        self.lock().push(command_id, stream, text);
        self.shared.news.notify_one();
    }

    async fn finish(&self, mut result: CommandResult, entry: Option<Entry>) {
        let command_id = result.command_id;
        self.write_end(&mut result, entry);
        tracing::info!(
            job.id = %command_id, status = result.status, exit_code = result.exit_code, duration_ms = result.duration_ms,
            "a command has ended"
        );
        self.lock().finish(result);
        self.shared.news.notify_one();
        self.shared.ended.notify_waiters();
        self.sync_later(command_id).await;
    }

    /// Into the journal, before the service is told.
    fn write_end(&self, result: &mut CommandResult, entry: Option<Entry>) {
        let held = self.lock();
        let Some(job) = held.get(result.command_id) else { return };
        result.truncated = job.output.is_truncated();
        if let Some(mut entry) = entry {
            self.note(result.command_id, |_| entry.ended(result, &job.output));
        }
    }

    async fn sync_later(&self, command_id: Uuid) {
        sleep(SYNC_AFTER).await;
        if self.shared.journal.is_none() || self.lock().get(command_id).is_none() {
            return;
        }
        let commands = self.clone();
        let synced = tokio::task::spawn_blocking(move || {
            commands.note(command_id, |journal| journal.sync(command_id));
        });
        // A runtime that ends needs no sync any more.
        _ = synced.await;
    }

    /// Does something with the journal, if there is one. A disk that fails stops no command: it may be the cure.
    fn note<T>(&self, command_id: Uuid, write: impl FnOnce(&Journal) -> std::io::Result<T>) -> Option<T> {
        let written = write(self.shared.journal.as_ref()?);
        if let Err(error) = &written {
            tracing::warn!(%error, job.id = %command_id, "cannot write the journal: a restart of the agent loses this command");
        }
        written.ok()
    }

    fn forget(&self, command_id: Uuid) {
        if let Some(journal) = &self.shared.journal {
            journal.remove(command_id);
        }
    }

    /// Resolves when there may be something to tell.
    async fn news(&self) {
        self.shared.news.notified().await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
