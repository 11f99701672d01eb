//! What a connection still has to send of the commands: their output from its beginning, and then their result, or the refusal of
//! one that never began.
//!
//! The beginning of an output is sent as fast as the connection accepts it. Later output is sent at a limited rate while the
//! command runs, skipping what was omitted in the meantime, so that a command that floods its output never fills the line. A
//! command that has ended is not limited: the rest of the stored output follows, then the result.

use std::collections::HashMap;
use std::time::Duration;

use signalbox_protocol::agent::{AgentMessage, CommandOutput};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::Commands;
use super::job_table::{Job, JobTable};
use super::output::Piece;

/// The most text of one message, so that it stays below 64 KiB.
const MAX_TEXT: usize = 48 * 1024;
/// The rate of live output after the beginning: more than anybody reads, little for any line.
const BYTES_A_SECOND: f64 = 256.0 * 1024.0;

pub struct Uplink {
    commands: Commands,
    told: SendState,
}

/// The progress of a connection.
#[derive(Debug)]
struct SendState {
    commands: HashMap<Uuid, Progress>,
    /// The command of the last message: the next one comes first.
    last: Uuid,
    /// When the rate allows more live output.
    paced_until: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Output before this offset was sent.
    offset: u64,
    /// Whether the result or the refusal was sent.
    has_last: bool,
}

/// What there is to send.
#[derive(Debug, PartialEq)]
enum Next {
    Message(Box<AgentMessage>),
    /// Nothing before this time.
    At(Instant),
    Nothing,
}

impl Uplink {
    /// For a new connection: everything that is held is sent from its beginning.
    pub fn new(commands: Commands) -> Self {
        Self { commands, told: SendState::new(Instant::now()) }
    }

    /// Returns the next message. Waits while there is none; a call that is dropped has taken nothing.
    pub async fn next(&mut self) -> AgentMessage {
        loop {
            let next = self.told.next(&self.commands.lock(), Instant::now());
            match next {
                Next::Message(message) => {
                    if let AgentMessage::Response(refusal) = &*message {
                        // Nobody acknowledges a refusal: it is sent once.
                        self.commands.acknowledge(refusal.request_id);
                    }
                    return *message;
                }
                Next::At(instant) => tokio::select! {
                    () = self.commands.news() => {}
                    () = sleep_until(instant) => {}
                },
                Next::Nothing => self.commands.news().await,
            }
        }
    }
}

impl SendState {
    fn new(now: Instant) -> Self {
        Self { commands: HashMap::new(), last: Uuid::nil(), paced_until: now }
    }

    fn next(&mut self, held: &JobTable, now: Instant) -> Next {
        let mut paced = Next::Nothing;
        for (command_id, job) in held.rotation(self.last) {
            match self.of(command_id, job, now) {
                Next::Message(message) => {
                    self.last = command_id;
                    return Next::Message(message);
                }
                Next::At(instant) => paced = Next::At(instant),
                Next::Nothing => {}
            }
        }
        self.commands.retain(|command_id, _| held.get(*command_id).is_some());
        paced
    }

    fn of(&mut self, command_id: Uuid, job: &Job, now: Instant) -> Next {
        let progress = self.commands.entry(command_id).or_default();
        if let Some(piece) = job.output.piece(progress.offset, MAX_TEXT) {
            let is_paced = job.result().is_none() && job.output.may_lose(progress.offset);
            if is_paced && now < self.paced_until {
                return Next::At(self.paced_until);
            }
            if is_paced {
                self.paced_until = now + Duration::from_secs_f64(piece.text.len() as f64 / BYTES_A_SECOND);
            }
            progress.offset = piece.end();
            return Next::Message(Box::new(output(command_id, piece)));
        }
        if progress.has_last {
            return Next::Nothing;
        }
        let Some(last) = job.last_message(command_id) else { return Next::Nothing };
        progress.has_last = true;
        Next::Message(Box::new(last))
    }
}

fn output(command_id: Uuid, piece: Piece) -> AgentMessage {
    let Piece { offset, stream, text } = piece;
    AgentMessage::CommandOutput(CommandOutput { command_id, stream, data: text, offset: Some(offset) })
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::agent::Stream::Stdout;
    use signalbox_protocol::agent::{CommandResult, RequestError, Response};

    use super::*;

    const ID: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);
    const HEAD: usize = 512 * 1024;

    fn result(command_id: Uuid) -> CommandResult {
        CommandResult { command_id, status: "succeeded".into(), exit_code: Some(0), duration_ms: 1, truncated: false }
    }

    fn held(ids: &[Uuid]) -> JobTable {
        let mut held = JobTable::default();
        ids.iter().for_each(|id| held.insert(*id, Job::running(None)));
        held
    }

    /// Everything there is to send: offsets and lengths of output, or the id of a result.
    fn all(told: &mut SendState, held: &JobTable, now: Instant) -> Vec<Result<(u64, usize), Uuid>> {
        let mut said = Vec::new();
        while let Next::Message(message) = told.next(held, now) {
            said.push(match *message {
                AgentMessage::CommandOutput(output) => Ok((output.offset.unwrap(), output.data.len())),
                AgentMessage::CommandResult(result) => Err(result.command_id),
                other => panic!("{other:?}"),
            });
        }
        said
    }

    #[test]
    fn output_is_sent_as_it_comes_and_then_the_result_once() {
        let (mut held, now) = (held(&[ID]), Instant::now());
        let mut told = SendState::new(now);
        assert_eq!(told.next(&held, now), Next::Nothing);

        held.push(ID, Stdout, "one");
        let first = all(&mut told, &held, now);
        held.push(ID, Stdout, "three");
        held.finish(result(ID));
        let second = all(&mut told, &held, now);

        assert_eq!((first, second), (vec![Ok((0, 3))], vec![Ok((3, 5)), Err(ID)]));
        assert_eq!(told.next(&held, now), Next::Nothing);
    }

    #[test]
    fn a_new_connection_gets_everything_from_the_beginning() {
        let (mut held, now) = (held(&[ID]), Instant::now());
        held.push(ID, Stdout, "one");
        held.finish(result(ID));
        all(&mut SendState::new(now), &held, now);

        assert_eq!(all(&mut SendState::new(now), &held, now), vec![Ok((0, 3)), Err(ID)]);
    }

    #[test]
    fn output_after_the_beginning_is_limited_and_skips_omitted_parts() {
        let (mut held, now) = (held(&[ID]), Instant::now());
        let mut told = SendState::new(now);
        (0..40).for_each(|_| held.push(ID, Stdout, &"x".repeat(65_536)));
        let (end, mut sent) = (40 * 65_536, 0);

        for second in 0..5 {
            let at = now + Duration::from_secs(second);
            let said = all(&mut told, &held, at);
            sent += said.iter().map(|piece| piece.unwrap().1).sum::<usize>();
            assert!(matches!(told.next(&held, at), Next::At(later) if later > at));
        }
        // The beginning, and one message per second, because nobody asked in between.
        assert_eq!(sent, HEAD + 5 * MAX_TEXT);
        held.finish(result(ID));
        let rest = all(&mut told, &held, now);

        let first = rest[0].unwrap();
        assert_eq!(first.0, (end - HEAD + 5 * MAX_TEXT) as u64);
        assert_eq!(rest[..rest.len() - 1].iter().map(|piece| piece.unwrap().1).sum::<usize>(), HEAD - 5 * MAX_TEXT);
        assert_eq!(rest.last(), Some(&Err(ID)));
    }

    #[test]
    fn a_short_result_does_not_wait_for_the_long_output_of_another() {
        let (mut held, now) = (held(&[ID, OTHER]), Instant::now());
        let mut told = SendState::new(now);
        held.push(ID, Stdout, &"x".repeat(HEAD));
        held.finish(result(OTHER));

        let said = all(&mut told, &held, now);

        assert_eq!(said[1], Err(OTHER));
    }

    #[test]
    fn a_command_that_never_began_is_refused_once() {
        let (mut held, now) = (JobTable::default(), Instant::now());
        let (mut told, refusal) = (SendState::new(now), RequestError::new("agent_busy", "the agent ended"));
        held.insert(ID, Job::refused(refusal.clone()));

        let (first, second) = (told.next(&held, now), told.next(&held, now));

        let expected = AgentMessage::Response(Response::new(ID, Err(refusal)));
        assert_eq!((first, second), (Next::Message(Box::new(expected)), Next::Nothing));
    }

    #[test]
    fn released_commands_are_forgotten() {
        let (mut held, now) = (held(&[ID]), Instant::now());
        let mut told = SendState::new(now);
        held.finish(result(ID));
        all(&mut told, &held, now);

        held.acknowledge(ID);
        told.next(&held, now);

        assert!(told.commands.is_empty());
    }
}
