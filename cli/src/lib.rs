//! `signalboxctl`: the service from the command line.
//!
//! The path of a call: [`cli`] reads the arguments, [`context`] finds the service and the token, [`api`] asks, one module of
//! [`commands`] per verb says what, and [`output`] prints. [`signing`] signs for servers that ask for it. The program speaks the public API and nothing else, so it works with any
//! service of which somebody has an account or a token.
//!
//! Everything that the service sends may come from a managed server, and so from anyone who controls it: what goes to a terminal passes
//! [`output::text::clean`] first, or [`output::text::escaped`] as JSON, except the output of commands and shells.

pub mod api;
pub mod cli;
pub mod commands;
pub mod context;
pub mod error;
pub mod output;
pub mod signing;

use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::Parser;

use cli::Cli;
use error::Failure;

/// Name lookups, the standard input, the output and the lock of the contexts block; nothing accumulates.
const BLOCKING_THREADS: usize = 8;

/// How long a program that was asked to end tries to say why.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Reads the arguments of this process and does what they say.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => {
            // Help and version are refusals, too, with code 0.
            let _ = refusal.print();
            return ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(Failure::USAGE));
        }
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(async {
                tokio::select! {
                    outcome = commands::run(cli) => outcome,
                    ended = commands::interrupts::unattended() => Err(ended),
                }
            });
            // A read of the standard input cannot be cancelled, and nobody needs it any more.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(Failure::failed(format!("cannot start: {error}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say_last(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Says why the program ends. If it was asked to end, a reader that has paused does not hold it up.
fn say_last(failure: &Failure) {
    let Some(line) = failure.line() else { return };
    if !matches!(failure, Failure::Interrupted { .. }) {
        output::complain(&line);
        return;
    }
    let (said, is_said) = mpsc::channel();
    std::thread::spawn(move || {
        output::complain(&line);
        said.send(())
    });
    let _ = is_said.recv_timeout(LAST_WORDS);
}
