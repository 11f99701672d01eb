//! The commands that the agent holds: running ones, those whose result the service has not acknowledged, and those whose refusal
//! it was not sent yet.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use signalbox_protocol::agent::{AgentMessage, CommandResult, RequestError, Response, Stream};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::output::Output;

/// Each is at least one process: a faulty service must not exhaust the machine.
pub const MAX_RUNNING: usize = 200;
/// A service that acknowledges nothing cannot fill the memory or the disk. Their ids fit into the `auth` message.
pub const MAX_HELD: usize = 256;
/// Refusals of commands that came while the agent was ending. They take free places only, because the next start reads no more
/// than [`MAX_HELD`] and would remove a result for a refusal.
const MAX_REFUSED: usize = 64;
/// The most output of ended commands, so that the agent stays small while the service is away for long.
const MAX_ENDED_BYTES: usize = 16 << 20;
/// The most output of all commands; beyond it the agent runs no more. Each may produce 1 MiB.
const MAX_BYTES: usize = 64 << 20;
/// Recognises a command that is sent again long after its end: at most a connection's delay later, in which fewer than this
/// fit.
const MAX_REMEMBERED: usize = 1024;

#[derive(Debug, Default)]
pub struct JobTable {
    jobs: BTreeMap<Uuid, Job>,
    /// Acknowledged ones, the latest last.
    remembered: VecDeque<Uuid>,
}

#[derive(Debug)]
pub struct Job {
    pub output: Output,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Accepts the time within which the command has to end on its own; none once it was asked to end.
    Running(Option<oneshot::Sender<Duration>>),
    Ended(CommandResult),
    /// It never began.
    Refused(RequestError),
}

impl Job {
    pub fn running(cancel: Option<oneshot::Sender<Duration>>) -> Self {
        Self { output: Output::default(), state: State::Running(cancel) }
    }

    pub fn ended(result: CommandResult, output: Output) -> Self {
        Self { output, state: State::Ended(result) }
    }

    pub fn refused(refusal: RequestError) -> Self {
        Self { output: Output::default(), state: State::Refused(refusal) }
    }

    /// None while it runs, and where it never began.
    pub fn result(&self) -> Option<&CommandResult> {
        match &self.state {
            State::Ended(result) => Some(result),
            State::Running(_) | State::Refused(_) => None,
        }
    }

    /// What the service is sent after the output; none while it runs.
    pub fn last_message(&self, command_id: Uuid) -> Option<AgentMessage> {
        match &self.state {
            State::Running(_) => None,
            State::Ended(result) => Some(AgentMessage::CommandResult(result.clone())),
            State::Refused(refusal) => Some(AgentMessage::Response(Response::new(command_id, Err(refusal.clone())))),
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    fn end(&mut self, grace: Duration) {
        if let State::Running(cancel) = &mut self.state
            && let Some(cancel) = cancel.take()
        {
            // If the command has ended, there is nothing to cancel.
            let _ = cancel.send(grace);
        }
    }
}

impl JobTable {
    /// Whether a command of this id runs, or has run.
    pub fn knows(&self, command_id: Uuid) -> bool {
        self.jobs.contains_key(&command_id) || self.remembered.contains(&command_id)
    }

    pub fn ids(&self) -> Vec<Uuid> {
        self.jobs.keys().copied().collect()
    }

    /// Whether there is room for another one.
    pub fn admit(&self) -> Result<(), RequestError> {
        let busy = |detail| Err(RequestError::new("agent_busy", detail));
        if self.running() >= MAX_RUNNING || self.bytes() >= MAX_BYTES {
            return busy("the agent runs as many commands as it may");
        }
        if self.jobs.len() >= MAX_HELD || self.ended_bytes() >= MAX_ENDED_BYTES {
            return busy("the agent holds too many results that were not acknowledged");
        }
        Ok(())
    }

    pub fn running(&self) -> usize {
        self.jobs.values().filter(|job| job.is_running()).count()
    }

    fn bytes(&self) -> usize {
        self.jobs.values().map(|job| job.output.kept_bytes()).sum()
    }

    fn ended_bytes(&self) -> usize {
        self.jobs.values().filter(|job| job.result().is_some()).map(|job| job.output.kept_bytes()).sum()
    }

    pub fn insert(&mut self, command_id: Uuid, job: Job) {
        self.jobs.insert(command_id, job);
    }

    /// Holds a command that never began, if there is room for its refusal.
    pub fn refuse(&mut self, command_id: Uuid, refusal: RequestError) -> bool {
        let refused = self.jobs.values().filter(|job| matches!(job.state, State::Refused(_))).count();
        let has_room = self.jobs.len() < MAX_HELD && refused < MAX_REFUSED;
        if has_room {
            self.insert(command_id, Job::refused(refusal));
        }
        has_room
    }

    pub fn get(&self, command_id: Uuid) -> Option<&Job> {
        self.jobs.get(&command_id)
    }

    pub fn push(&mut self, command_id: Uuid, stream: Stream, text: &str) {
        if let Some(job) = self.jobs.get_mut(&command_id) {
            job.output.push(stream, text);
        }
    }

    /// Asks a command to end, if it runs.
    pub fn cancel(&mut self, command_id: Uuid, grace: Duration) {
        if let Some(job) = self.jobs.get_mut(&command_id) {
            job.end(grace);
        }
    }

    pub fn cancel_all(&mut self, grace: Duration) {
        self.jobs.values_mut().for_each(|job| job.end(grace));
    }

    /// Records how a command ended.
    pub fn finish(&mut self, result: CommandResult) {
        if let Some(job) = self.jobs.get_mut(&result.command_id) {
            job.state = State::Ended(result);
        }
    }

    /// Removes output and result of a command that does not run; its id is remembered for a while.
    pub fn acknowledge(&mut self, command_id: Uuid) -> bool {
        if self.get(command_id).is_none_or(Job::is_running) {
            return false;
        }
        self.jobs.remove(&command_id);
        self.remembered.push_back(command_id);
        if self.remembered.len() > MAX_REMEMBERED {
            self.remembered.pop_front();
        }
        true
    }

    /// Every command once, beginning with those after `last`.
    pub fn rotation(&self, last: Uuid) -> impl Iterator<Item = (Uuid, &Job)> {
        let behind = self.jobs.range(last..).filter(move |(id, _)| **id != last);
        behind.chain(self.jobs.range(..=last)).map(|(id, job)| (*id, job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    fn result(number: usize) -> CommandResult {
        let (status, exit_code) = ("succeeded".to_owned(), Some(0));
        CommandResult { command_id: id(number), status, exit_code, duration_ms: 1, truncated: false }
    }

    #[test]
    fn one_command_too_many_is_refused_and_not_queued() {
        let mut held = JobTable::default();
        (0..MAX_RUNNING).for_each(|number| held.insert(id(number), Job::running(None)));

        let refused = held.admit().unwrap_err();
        held.finish(result(0));

        assert_eq!(refused.code, "agent_busy");
        assert_eq!(held.admit(), Ok(()));
    }

    #[test]
    fn unacknowledged_results_stop_new_commands() {
        let mut held = JobTable::default();
        (0..MAX_HELD).for_each(|number| held.insert(id(number), Job::ended(result(number), Output::default())));

        let refused = held.admit().unwrap_err();
        assert!(held.acknowledge(id(5)));

        assert_eq!(refused.code, "agent_busy");
        assert_eq!(held.admit(), Ok(()));
    }

    #[test]
    fn long_unacknowledged_outputs_stop_them_sooner() {
        let mut held = JobTable::default();
        let output = || {
            let mut output = Output::default();
            output.push(Stream::Stdout, &"x".repeat(2 << 20));
            output
        };
        (0..15).for_each(|number| held.insert(id(number), Job::ended(result(number), output())));
        assert_eq!(held.admit(), Ok(()));

        held.insert(id(15), Job::ended(result(15), output()));

        assert_eq!(held.admit().unwrap_err().code, "agent_busy");
    }

    #[test]
    fn an_acknowledged_command_is_remembered_and_no_longer_held() {
        let mut held = JobTable::default();
        for number in 0..=MAX_REMEMBERED {
            held.insert(id(number), Job::ended(result(number), Output::default()));
            assert!(held.acknowledge(id(number)));
        }

        assert!(held.ids().is_empty());
        assert!(!held.knows(id(0)));
        assert!(held.knows(id(1)) && held.knows(id(MAX_REMEMBERED)));
    }

    #[test]
    fn a_running_command_cannot_be_acknowledged() {
        let mut held = JobTable::default();
        held.insert(id(1), Job::running(None));

        assert!(!held.acknowledge(id(1)));
        assert!(!held.acknowledge(id(2)));
        assert_eq!(held.ids(), [id(1)]);
    }

    #[test]
    fn a_refused_command_does_not_run_and_is_held_until_it_is_acknowledged() {
        let mut held = JobTable::default();
        held.insert(id(1), Job::refused(RequestError::new("agent_busy", "the agent ended")));

        let (running, ids) = (held.running(), held.ids());
        let is_forgotten = held.acknowledge(id(1));

        assert_eq!((running, ids, is_forgotten), (0, vec![id(1)], true));
        assert!(held.ids().is_empty() && held.knows(id(1)));
    }

    #[test]
    fn refusals_take_only_places_that_are_free() {
        let refusal = || RequestError::new("agent_busy", "the agent was ending");
        let refused = |held: &mut JobTable| (1_000..2_000).filter(|number| held.refuse(id(*number), refusal())).count();
        let (mut few, mut many) = (JobTable::default(), JobTable::default());
        (1..MAX_HELD).for_each(|number| many.insert(id(number), Job::ended(result(number), Output::default())));

        let (of_few, of_many) = (refused(&mut few), refused(&mut many));

        assert_eq!((of_few, few.ids().len()), (MAX_REFUSED, MAX_REFUSED));
        assert_eq!((of_many, many.ids().len()), (1, MAX_HELD));
    }

    #[test]
    fn a_command_is_asked_to_end_once() {
        let mut held = JobTable::default();
        let (cancel, mut cancelled) = oneshot::channel();
        held.insert(id(1), Job::running(Some(cancel)));

        held.cancel(id(1), Duration::from_secs(2));
        held.cancel(id(1), Duration::from_secs(9));
        held.cancel_all(Duration::from_secs(9));

        assert_eq!(cancelled.try_recv(), Ok(Duration::from_secs(2)));
    }

    #[test]
    fn the_rotation_begins_after_the_last() {
        let mut held = JobTable::default();
        (1..4).for_each(|number| held.insert(id(number), Job::running(None)));

        let order = |last: usize| held.rotation(id(last)).map(|(id, _)| id.as_u128()).collect::<Vec<_>>();

        assert_eq!((order(0), order(2), order(3)), (vec![1, 2, 3], vec![3, 1, 2], vec![1, 2, 3]));
    }
}
