//! A terminal on a server, in this one.

mod escape;
mod input;
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
use input::Input;
use resize::Resizes;

/// Open a terminal on a server
///
/// Runs the login shell of the agent's user. At the beginning of a line ~. ends it, ~~ types ~, and ~? lists these.
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
        let (columns, rows) = size();
        let mut query = vec![("columns", columns.to_string()), ("rows", rows.to_string())];
        // An upgrade has no body.
        query.extend(signed.value.as_ref().map(|value| ("signed", BASE64_URL_SAFE_NO_PAD.encode(value.to_string()))));
        let socket = Socket::open(&call.api, &format!("/ws/terminal/{}", server.id), &query).await.map_err(explain)?;
        let mut ends = Ends::listen()?;
        let raw = Raw::begin()?;
        let escape = if self.no_escape { Escape::none() } else { Escape::new() };
        let ended = talk(socket, escape, &mut ends).await;
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

async fn talk(mut socket: Socket, mut escape: Escape, ends: &mut Ends) -> Result<Ended, Failure> {
    let mut input = Input::begin();
    let mut resizes = Resizes::listen()?;
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Ok(FeedMessage::Output { data, .. }) => print(&data)?,
                Ok(FeedMessage::Exit { .. }) => {
                    socket.close().await;
                    return Ok(Ended::Exited);
                }
                Ok(FeedMessage::Error { code, detail }) => return Err(Reason { code, detail, reason: None }.into()),
                Ok(_) => {}
                Err(End::Over) => return Ok(Ended::Exited),
                Err(End::Lost(reason)) => return Err(Failure::failed(format!("{reason}; the terminal has ended"))),
                Err(end) => return Err(end.into()),
            },
            text = input.next() => match escape.pass(&text) {
                Outcome::Send(text) => send(&mut socket, &text).await?,
                Outcome::Help(text) => {
                    print(HELP)?;
                    send(&mut socket, &text).await?;
                }
                Outcome::Leave => {
                    socket.close().await;
                    return Ok(Ended::Left);
                }
            },
            () = resizes.next() => {
                let (columns, rows) = size();
                socket.send(&json!({"type": "resize", "data": {"columns": columns, "rows": rows}})).await?;
            }
            () = ends.next() => {
                socket.close().await;
                return Ok(Ended::Left);
            }
        }
    }
}

async fn send(socket: &mut Socket, text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    socket.send(&json!({"type": "input", "data": {"data": text}})).await?;
    Ok(())
}

/// As it is: it is meant for a terminal.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
