//! A terminal on a server, in this one.

mod escape;
mod input;
mod keys;
mod line;
mod resize;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use clap::Args;
use crossterm::terminal;
use serde_json::json;
use signalbox_protocol::frontend::FeedMessage;

use super::Call;
use super::interrupts::Ends;
use super::prompt::Raw;
use super::refused::{Action, explained};
use crate::api::socket::{End, Socket};
use crate::api::types::Reason;
use crate::error::Failure;
use crate::output;
use crate::output::time::parse_duration;
use crate::signing::options::{HEADING, Servers, Signing};
use crate::signing::order::Subject;
use escape::{Escape, Outcome};
use keys::Keys;
use line::{Line, Shown};
use resize::Resizes;

/// Open a terminal on a server
///
/// Runs the login shell of the agent's user. At the beginning of a line ~. ends it, ~~ types ~, and ~? lists these. A connection
/// that breaks is opened again for two minutes.
#[derive(Debug, Args)]
pub struct Shell {
    /// Name or id of the server
    #[arg(value_name = "SERVER")]
    server: String,
    /// Send ~ like every other character
    #[arg(long)]
    no_escape: bool,
    /// With --sign: how long it may stay open, at most 1d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h", requires = "keys",
        help_heading = HEADING)]
    open_for: Duration,
    #[command(flatten)]
    signing: Signing,
}

/// What programs may have switched on: mouse reports, bracketed paste, a hidden cursor, colours.
const CALM: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[0m";
/// A program that was cut off has not left the second screen.
const FIRST_SCREEN: &str = "\x1b[?1049l";
/// Colours and modes may have been changed by output that is missing.
const RESET: &str = "\x1b[!p\x1b[0m";
const HELP: &str = "\r\n~.  end the terminal\r\n~~  type ~\r\n~?  show this\r\n";
/// The service takes at most as many.
const MAX_SIZE: u16 = 1000;

/// How a terminal ended.
enum Ended {
    /// Its shell did.
    Exited,
    /// The user, or a signal.
    Left,
}

/// What comes after a connection.
enum Left {
    Ended(Ended),
    /// It broke, and the terminal may still be there.
    Lost(Failure),
}

impl Shell {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        call.out.expect_no_csv()?;
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Err(Failure::usage("a shell needs a terminal: for scripts use `signalboxctl exec`"));
        }
        self.signing.check(false)?;
        let server = call.api.server(&self.server).await?;
        let servers = Servers { servers: std::slice::from_ref(&server), typed: Some(&self.server) };
        let subject = Subject::Terminal { open_seconds: self.open_for.as_secs() };
        let signed = self.signing.sign(&servers, subject).await?;
        let explain = |failure| explained(failure, &server, Action::Terminal, &call.api.service(), &signed.keys);
        // An upgrade has no body.
        let proof = signed.value.as_ref().map(|value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string()));
        let line = Line::new(&call.api, server.id);
        // Before the size is read for the first time: a change in between would be lost.
        let resizes = Resizes::listen()?;
        let socket = line.open(proof).await.map_err(explain)?;
        let mut ends = Ends::listen()?;
        let raw = Raw::begin()?;
        let escape = if self.no_escape { Escape::none() } else { Escape::new() };
        let talk = Talk { line, keys: Keys::begin(escape, &mut ends), resizes, shown: Shown::default() };
        let ended = talk.run(socket).await;
        calm(ended.is_err())?;
        drop(raw);
        match ended.map_err(explain)? {
            Ended::Exited => Ok(()),
            Ended::Left => {
                output::note("The terminal has ended.");
                Ok(())
            }
        }
    }
}

fn size() -> (u16, u16) {
    let (columns, rows) = terminal::size().unwrap_or((80, 24));
    (columns.clamp(1, MAX_SIZE), rows.clamp(1, MAX_SIZE))
}

fn calm(is_cut_off: bool) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    if is_cut_off {
        stdout.write_all(FIRST_SCREEN.as_bytes())?;
    }
    stdout.write_all(CALM.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// A terminal with its user, over one connection after the other.
struct Talk<'a> {
    line: Line<'a>,
    keys: Keys<'a>,
    resizes: Resizes,
    shown: Shown,
}

impl Talk<'_> {
    async fn run(mut self, mut socket: Socket) -> Result<Ended, Failure> {
        loop {
            let lost = match self.over(socket).await? {
                Left::Ended(ended) => return Ok(ended),
                Left::Lost(lost) => lost,
            };
            socket = self.line.reopen(&lost, self.shown, &mut self.keys).await?;
        }
    }

    /// Until the terminal or this connection ends.
    async fn over(&mut self, mut socket: Socket) -> Result<Left, Failure> {
        loop {
            let sent = tokio::select! {
                message = socket.next() => match message {
                    Ok(message) => match self.take(message)? {
                        None => continue,
                        Some(Left::Ended(ended)) => {
                            socket.close().await;
                            return Ok(Left::Ended(ended));
                        }
                        Some(lost) => return Ok(lost),
                    },
                    Err(End::Over) => return Ok(Left::Ended(Ended::Exited)),
                    Err(end) => Err(end),
                },
                typed = self.keys.next() => match typed {
                    Outcome::Send(text) => send(&mut socket, &text).await,
                    Outcome::Help(text) => {
                        print(HELP)?;
                        send(&mut socket, &text).await
                    }
                    Outcome::Leave => {
                        socket.close().await;
                        return Ok(Left::Ended(Ended::Left));
                    }
                },
                () = self.resizes.next() => {
                    let (columns, rows) = size();
                    socket.send(&json!({"type": "resize", "data": {"columns": columns, "rows": rows}})).await
                }
            };
            match sent {
                Ok(()) => {}
                Err(End::Lost(reason)) => return Ok(Left::Lost(Failure::Unreachable(reason))),
                Err(end) => return Err(end.into()),
            }
        }
    }

    /// Takes a message. Returns what ends the connection.
    fn take(&mut self, message: FeedMessage) -> Result<Option<Left>, Failure> {
        match message {
            FeedMessage::Output { data, offset, .. } => {
                self.shown.add(&data, offset);
                print(&data)?;
            }
            FeedMessage::Kept { terminal_id, secret, seconds } => {
                let was_away = self.line.kept(terminal_id, secret, Duration::from_secs(seconds));
                print(if was_away { "[connected again]\r\n" } else { "" })?;
            }
            FeedMessage::LeftOut { bytes } => {
                print(&format!("{RESET}\r\n[{bytes} bytes of output are missing here]\r\n"))?
            }
            FeedMessage::Exit { .. } => return Ok(Some(Left::Ended(Ended::Exited))),
            FeedMessage::Error { code, detail, reason } => {
                let failure = Failure::from(Reason { code, detail, reason });
                return if self.line.survives(failure.code()) { Ok(Some(Left::Lost(failure))) } else { Err(failure) };
            }
            _ => {}
        }
        Ok(None)
    }
}

async fn send(socket: &mut Socket, text: &str) -> Result<(), End> {
    if text.is_empty() {
        return Ok(());
    }
    socket.send(&json!({"type": "input", "data": {"data": text}})).await
}

/// As it is: it is meant for a terminal.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
