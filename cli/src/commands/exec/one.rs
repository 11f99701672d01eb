//! A command on one server: its output as it comes, and its exit code.

use std::io::{self, Write};
use std::pin::pin;

use signalbox_protocol::agent::Stream;
use signalbox_protocol::frontend::{CommandEnded, FeedMessage};
use uuid::Uuid;

use super::{Order, not_started};
use crate::api::backoff::Backoff;
use crate::api::parsed;
use crate::api::socket::{End, Socket};
use crate::api::types::{Command, Reason, Server};
use crate::commands::Call;
use crate::commands::interrupts::Interrupts;
use crate::commands::refused::{Action, explained};
use crate::error::Failure;
use crate::output::{self, Format};
use crate::signing::options::Servers;

const TIMED_OUT: u8 = 124;
/// How often a lost connection is opened again: about three minutes. The command continues without it.
const MAX_ATTEMPTS: u32 = 10;

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
    let started = started.map_err(|failure| explain(refused(failure)))?;
    let id = parsed::<Command>(started)?.command_id;
    let may_run = |failure: Failure| failure.and(&format!("the command {id} may still run"));
    // Once for the whole run: between two waits a signal must not be lost.
    let mut interrupts = Interrupts::listen().map_err(may_run)?;
    let mut run = Run { call, server: &server, command_id: id, place: 0 };
    let outcome = run.finish(&mut interrupts).await.map_err(may_run)?;
    if call.out.format == Format::Json {
        let ended = interrupts.unless_pressed(call.api.get(&run.path(), &[])).await.flatten();
        call.out.json(&ended.map_err(|failure| failure.and(&format!("the command {id} {}", outcome.words())))?)?;
    }
    verdict(outcome, order).map_err(explain)
}

/// A command that the service stored and could not send at once is never sent, unlike a batch: `busy` says that it does not run.
fn refused(failure: Failure) -> Failure {
    if failure.code() == "busy" { failure.and("the command was not started") } else { not_started(failure, "command") }
}

/// A command that runs.
struct Run<'a> {
    call: &'a Call,
    server: &'a Server,
    command_id: Uuid,
    /// The offset of the output that comes next.
    place: u64,
}

impl Run<'_> {
    fn path(&self) -> String {
        format!("/commands/{}/{}", self.server.id, self.command_id)
    }

    async fn finish(&mut self, interrupts: &mut Interrupts) -> Result<Outcome, Failure> {
        let mut backoff = Backoff::default();
        let mut attempts = 0;
        loop {
            let before = self.place;
            let failure = match self.follow(interrupts).await {
                Err(failure) if failure.is_passing() => failure,
                outcome => return outcome,
            };
            if self.place > before {
                attempts = 0;
                backoff.reset();
            }
            attempts += 1;
            if attempts > MAX_ATTEMPTS {
                return Err(failure);
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.pause()) => {}
                count = interrupts.next() => self.interrupted(count).await?,
            }
        }
    }

    /// Until the command ends or the connection does.
    async fn follow(&mut self, interrupts: &mut Interrupts) -> Result<Outcome, Failure> {
        let mut socket = self.open(interrupts).await?;
        loop {
            let message = tokio::select! {
                message = socket.next() => message,
                count = interrupts.next() => {
                    self.interrupted(count).await?;
                    continue;
                }
            };
            match message {
                Ok(FeedMessage::Output { stream, data, offset }) => self.print(stream, &data, offset)?,
                Ok(FeedMessage::LeftOut { bytes }) => self.left_out(bytes),
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

    async fn open(&self, interrupts: &mut Interrupts) -> Result<Socket, Failure> {
        let path = format!("/ws{}", self.path());
        let mut opening = pin!(Socket::open(&self.call.api, &path, &[]));
        loop {
            tokio::select! {
                opened = &mut opening => return opened,
                count = interrupts.next() => self.interrupted(count).await?,
            }
        }
    }

    /// Output that a socket before this one has brought is not printed again.
    fn print(&mut self, stream: Option<Stream>, data: &str, offset: Option<u64>) -> Result<(), Failure> {
        let offset = offset.unwrap_or(self.place);
        let known = usize::try_from(self.place.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(fresh) = data.get(known..).filter(|fresh| !fresh.is_empty()) else { return Ok(()) };
        self.place = offset.saturating_add(data.len() as u64);
        if self.call.out.format == Format::Json {
            return Ok(());
        }
        match stream {
            Some(Stream::Stderr) => {
                let mut stderr = io::stderr().lock();
                stderr.write_all(fresh.as_bytes())?;
                stderr.flush()?;
            }
            Some(Stream::Stdout) | None => self.call.out.raw(fresh.as_bytes())?,
        }
        Ok(())
    }

    fn left_out(&mut self, bytes: u64) {
        self.place = self.place.saturating_add(bytes);
        output::complain(&format!("the service did not keep {bytes} bytes of the output here"));
    }

    /// The first time it cancels the command, the second time it leaves it alone.
    async fn interrupted(&self, count: u32) -> Result<(), Failure> {
        if count > 1 {
            return Err(Failure::Interrupted("interrupted".to_owned()));
        }
        output::note("\ncancelling; press Ctrl-C again to leave it to the server");
        let (api, path) = (std::sync::Arc::clone(&self.call.api), format!("{}/cancel", self.path()));
        // The answer comes when the command has ended; its output comes before that.
        tokio::spawn(async move {
            if let Err(failure) = api.act(&path, &[]).await {
                output::complain(&format!("cannot cancel: {failure}"));
            }
        });
        Ok(())
    }
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
fn exit_code(status: &str, code: Option<i32>) -> u8 {
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
    use crate::error::Refusal;

    #[test]
    fn a_busy_service_has_not_started_a_command_and_a_proxy_does_not_know() {
        let of = |body: &[u8]| refused(Failure::Refused(Refusal::of(503, body))).to_string();

        assert_eq!(of(br#"{"detail": "no", "code": "busy"}"#), "no; the command was not started");
        assert!(of(b"").ends_with("; it is not known whether the command was started"));
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
