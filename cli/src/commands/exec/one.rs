//! A command on one server: its output as it comes, and its exit code.

use std::pin::pin;
use std::time::Duration;

use signalbox_protocol::agent::Stream;
use signalbox_protocol::frontend::{CommandEnded, FeedMessage};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::position::Position;
use super::printer::Printer;
use super::{Order, command_not_started};
use crate::api::backoff::Backoff;
use crate::api::parsed;
use crate::api::socket::{End, Socket};
use crate::api::types::{Command, Reason, Server};
use crate::commands::Call;
use crate::commands::interrupts::{Demand, Interrupts, Signal};
use crate::commands::refused::{Action, explained};
use crate::error::Failure;
use crate::output::{self, Format};
use crate::signing::options::Servers;

const TIMED_OUT: u8 = 124;
/// How often in a row a connection is opened again: for about three minutes, and longer if the service asks for longer pauses. The
/// command continues without it.
const MAX_ATTEMPTS: u32 = 10;
/// A connection that was open for so long was not refused. What ends it, as some proxies do after minutes, lets the next one through.
const LASTING: Duration = Duration::from_secs(10);
/// For what is still to be printed when the user does not want to wait: a reader may have paused.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How a command ended.
struct Outcome {
    status: String,
    exit_code: Option<i32>,
    error: Option<Reason>,
}

pub async fn run(call: &Call, wanted: &str, order: &Order) -> Result<(), Failure> {
    let server = call.api.server(wanted).await?;
    let servers = Servers { servers: std::slice::from_ref(&server), typed: Some(wanted) };
    let signed = order.signing.sign(&servers, order.subject()).await?;
    let explain = |failure| explained(failure, &server, Action::Commands, &call.api.service(), &signed.keys);
    let path = format!("/commands/{}", server.id);
    let mut body = order.body();
    body.extend(signed.value.clone().map(|value| ("signed", value)));
    let started = call.api.post(&format!("{path}?wait=0"), &body).await;
    let started = started.map_err(|failure| explain(command_not_started(failure)))?;
    let id = parsed::<Command>(started)?.command_id;
    let may_run = |failure: Failure| failure.and(&format!("the command {id} may still run"));
    // Once for the whole run: between two waits a signal must not be lost.
    let mut interrupts = Interrupts::listen().map_err(may_run)?;
    let mut run = Run::begin(call, &server, id);
    let outcome = match run.finish(&mut interrupts).await {
        Ok(outcome) => outcome,
        Err(failure) => {
            run.give_up(&failure, &mut interrupts).await;
            return Err(may_run(failure));
        }
    };
    let has_ended = |failure: Failure| failure.and(&format!("the command {id} {}", outcome.words()));
    interrupts.unless_pressed(run.print_rest()).await.flatten().map_err(has_ended)?;
    match interrupts.ending() {
        // It may have succeeded before the cancellation reached it.
        Some(ending) if outcome.status != "succeeded" => Err(has_ended(ending)),
        _ => verdict(outcome, order).map_err(explain),
    }
}

/// A command that runs.
struct Run<'a> {
    call: &'a Call,
    server: &'a Server,
    command_id: Uuid,
    printer: Printer,
    position: Position,
    /// When the socket was opened, if it was.
    opened: Option<Instant>,
}

impl<'a> Run<'a> {
    fn begin(call: &'a Call, server: &'a Server, command_id: Uuid) -> Self {
        let printer = Printer::start(call.out);
        Self { call, server, command_id, printer, position: Position::default(), opened: None }
    }

    fn path(&self) -> String {
        format!("/commands/{}/{}", self.server.id, self.command_id)
    }

    async fn finish(&mut self, interrupts: &mut Interrupts) -> Result<Outcome, Failure> {
        let mut backoff = Backoff::default();
        let mut attempts = 0;
        loop {
            let before = self.position.shown();
            let failure = match self.follow(interrupts).await {
                Err(failure) if failure.is_passing_for_reads() => failure,
                outcome => return outcome,
            };
            let open_for = self.opened.take().map(|opened| opened.elapsed());
            if has_worked(self.position.shown() - before, open_for) {
                attempts = 0;
                backoff.reset();
            }
            attempts += 1;
            if attempts > MAX_ATTEMPTS {
                return Err(failure);
            }
            tokio::select! {
                () = sleep(backoff.pause_after(&failure)) => {}
                demand = interrupts.next() => self.obey(demand)?,
            }
        }
    }

    /// Until the command ends or the connection does.
    async fn follow(&mut self, interrupts: &mut Interrupts) -> Result<Outcome, Failure> {
        let path = format!("/ws{}", self.path());
        let mut socket = self.obeying(interrupts, Socket::open(&self.call.api, &path, &[])).await?;
        self.opened = Some(Instant::now());
        self.position.begin_again();
        loop {
            let message = tokio::select! {
                message = socket.next() => message,
                failure = self.printer.failed() => return Err(failure),
                demand = interrupts.next() => {
                    self.obey(demand)?;
                    continue;
                }
            };
            match message {
                Ok(FeedMessage::Output { stream, data, offset }) => {
                    let fresh = self.position.take(&data, offset);
                    if self.call.out.format != Format::Json {
                        let printed = self.printer.print(stream.unwrap_or(Stream::Stdout), fresh);
                        self.obeying(interrupts, printed).await?;
                    }
                }
                Ok(FeedMessage::LeftOut { bytes }) => {
                    let missing = self.position.left_out(bytes);
                    if missing > 0 {
                        let text = format!("the service did not keep {missing} bytes of the output here");
                        self.obeying(interrupts, self.printer.complain(text)).await?;
                    }
                }
                Ok(FeedMessage::Result(ended)) => {
                    socket.close().await;
                    return Ok(Outcome::of(ended));
                }
                Ok(FeedMessage::Error { code, detail, reason }) => return Err(Reason { code, detail, reason }.into()),
                Ok(_) => {}
                // The answer must have been on its way.
                Err(End::Over) => return Err(Failure::Unreachable("the service closed the socket early".to_owned())),
                Err(end) => return Err(end.into()),
            }
        }
    }

    /// What is asked for, while signals have their effect.
    async fn obeying<T>(
        &self,
        interrupts: &mut Interrupts,
        asked: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut asked = pin!(asked);
        loop {
            tokio::select! {
                answer = &mut asked => return answer,
                demand = interrupts.next() => self.obey(demand)?,
            }
        }
    }

    /// The first signal cancels the command, a second Ctrl-C leaves it alone.
    fn obey(&self, demand: Demand) -> Result<(), Failure> {
        let signal = match demand {
            Demand::Cancel(signal) => signal,
            Demand::Leave(signal) => return Err(signal.failure()),
        };
        let (api, path) = (std::sync::Arc::clone(&self.call.api), format!("{}/cancel", self.path()));
        // The answer comes when the command has ended; its output comes before that.
        tokio::spawn(async move {
            if let Err(failure) = api.act(&path, &[]).await {
                // A reader that has paused must not hold up the one thread.
                tokio::task::spawn_blocking(move || output::complain(&format!("cannot cancel: {failure}")));
            }
        });
        self.printer.note(match signal {
            Signal::Interrupt => "\ncancelling; press Ctrl-C again to leave it to the server".to_owned(),
            Signal::Terminate | Signal::Hangup => format!("cancelling the command {}", self.command_id),
        });
        Ok(())
    }

    /// Of a command that has ended.
    async fn print_rest(self) -> Result<(), Failure> {
        if self.call.out.format == Format::Json {
            let ended = self.call.api.get(&self.path(), &[]).await?;
            let text = self.call.out.json_text(&ended)? + "\n";
            self.printer.print(Stream::Stdout, &text).await?;
        }
        self.printer.finish().await
    }

    /// Prints what came before a failure, as far as somebody reads it.
    async fn give_up(self, failure: &Failure, interrupts: &mut Interrupts) {
        // Why it could not be printed is the failure, or less than that.
        if matches!(failure, Failure::Interrupted { .. }) {
            let _ = timeout(LAST_WORDS, self.printer.finish()).await;
        } else {
            let _ = interrupts.unless_pressed(self.printer.finish()).await;
        }
    }
}

/// Whether a connection worked, by the output that it brought and the time that it was open: then the next loss is another one.
fn has_worked(bytes: u64, open_for: Option<Duration>) -> bool {
    bytes > 0 || open_for.is_some_and(|time| time >= LASTING)
}

impl Outcome {
    fn of(ended: CommandEnded) -> Self {
        let error = ended.error.map(|error| Reason { code: error.code, detail: error.detail, reason: error.reason });
        Self { status: ended.status, exit_code: ended.exit_code, error }
    }

    /// What became of the command, after its name.
    fn words(&self) -> String {
        let status = self.status.replace('_', " ");
        match (&self.error, self.exit_code) {
            (Some(reason), _) => format!("has ended ({status}: {})", reason.detail),
            (None, Some(code)) => format!("has ended ({status}, exit code {code})"),
            (None, None) => format!("has ended ({status})"),
        }
    }
}

/// The exit code, and words where the output cannot say what happened.
fn verdict(outcome: Outcome, order: &Order) -> Result<(), Failure> {
    if let Some(reason) = outcome.error {
        return Err(reason.into());
    }
    match outcome.status.as_str() {
        "succeeded" => return Ok(()),
        "timed_out" => output::complain(&format!("the command was ended after {} s", order.timeout.as_secs())),
        "cancelled" => output::complain("the command was cancelled"),
        "lost" => return Err(Failure::failed("the agent does not know what became of the command")),
        "skipped" => return Err(Failure::failed("the command was skipped")),
        _ => {}
    }
    Err(Failure::Remote(exit_code(&outcome.status, outcome.exit_code)))
}

/// A failure is never 0, also where a system's exit codes have more bits than a process here can end with.
pub fn exit_code(status: &str, code: Option<i32>) -> u8 {
    let code = match (code, status) {
        (Some(code), _) => u8::try_from(code & 0xff).unwrap_or(1),
        (None, "timed_out") => TIMED_OUT,
        (None, "cancelled") => Failure::INTERRUPTED,
        (None, _) => 1,
    };
    code.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_lasted_is_no_failed_attempt() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));

        for (bytes, open_for, expected) in
            [(0, None, false), (0, seconds(9), false), (0, seconds(10), true), (1, seconds(0), true)]
        {
            assert_eq!(has_worked(bytes, open_for), expected, "{bytes} {open_for:?}");
        }
    }

    #[test]
    fn what_became_of_a_command_is_said_in_words() {
        let words = |status: &str, exit_code, error: Option<&str>| {
            let error = error.map(|detail| Reason { code: String::new(), detail: detail.to_owned(), reason: None });
            Outcome { status: status.to_owned(), exit_code, error }.words()
        };

        assert_eq!(words("failed", Some(3), None), "has ended (failed, exit code 3)");
        assert_eq!(words("timed_out", None, None), "has ended (timed out)");
        assert_eq!(words("failed", None, Some("not allowed")), "has ended (failed: not allowed)");
    }

    #[test]
    fn a_failed_command_never_ends_with_0() {
        for (status, code, expected) in [
            ("failed", Some(3), 3),
            ("failed", Some(256), 1),
            ("failed", Some(-1), 255),
            ("failed", None, 1),
            ("timed_out", Some(124), 124),
            ("timed_out", None, 124),
            ("cancelled", None, 130),
        ] {
            assert_eq!(exit_code(status, code), expected, "{status} {code:?}");
        }
    }
}
