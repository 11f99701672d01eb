//! The program: flags in, exit code out. It is a part of the library, because a future is compiled where it is polled, and what
//! the library polls as well would be compiled twice.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{Cli, LogFormat, LogLevel};
use crate::signed::explain::Owner;
use crate::{Config, Exit, updates};

/// Only name lookups block; one that hangs must not accumulate threads.
const BLOCKING_THREADS: usize = 4;

/// Reads the arguments of this process and does what they say.
pub fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    if Owner::is_asked(first.as_deref()) {
        return explain();
    }
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return misconfigured(&first_paragraph(&error.to_string())),
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    if let Err(unknown) = Cli::check_environment() {
        return misconfigured(&unknown.to_string());
    }
    start_log(cli.log, cli.log_format);
    match cli.into_config() {
        Ok(mut config) => {
            updates::program::start(&mut config);
            run(config)
        }
        Err(error) => misconfigured(&error.to_string()),
    }
}

/// Answers a question of the machine's owner: exit code 0 for a good answer, 1 for a bad one.
fn explain() -> ExitCode {
    let owner = match Owner::try_parse() {
        Ok(owner) => owner,
        Err(error) if error.use_stderr() => return misconfigured(&first_paragraph(&error.to_string())),
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    match owner.answer() {
        Ok(answer) => {
            let _ = std::io::stdout().write_all(answer.text.as_bytes());
            if answer.is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => misconfigured(&error.to_string()),
    }
}

fn run(config: Config) -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return misconfigured(&format!("cannot start: {error}")),
    };
    let exit = runtime.block_on(async {
        match stop_signal() {
            Ok(stop) => updates::program::run(config, stop).await,
            Err(error) => Exit::Misconfigured(format!("cannot listen for signals: {error}")),
        }
    });
    // A hanging name lookup must not delay the end.
    runtime.shutdown_background();
    match &exit {
        Exit::Stopped => tracing::info!("stopped"),
        Exit::Misconfigured(detail) => return misconfigured(detail),
        Exit::Update(_) | Exit::Works => tracing::info!("{exit}"),
        Exit::KeyRefused(_) | Exit::ServerDeleted => tracing::error!("ended: {exit}"),
    }
    ExitCode::from(exit.code())
}

/// Resolves at the first SIGTERM or SIGINT.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn start_log(level: LogLevel, format: LogFormat) {
    let own = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let targets = Targets::new().with_default(own.min(LevelFilter::WARN)).with_target("signalbox_agent", own);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let layer = match format {
        LogFormat::Text => layer.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(targets)).init();
}

/// One line to standard error, exit code 2.
fn misconfigured(detail: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "signalbox-agent: {detail}");
    ExitCode::from(2)
}

/// The error, without the usage that follows it.
fn first_paragraph(text: &str) -> String {
    let paragraph: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    paragraph.join(" ").trim_start_matches("error: ").to_owned()
}
