//! Recordings of terminals: what a server's agent keeps, if its policy says so.

mod cast;
mod safe;

use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest;
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::Call;
use super::approvals::short;
use super::interrupts::Ends;
use crate::api::{parsed, text_of};
use crate::error::Failure;
use crate::output;
use crate::output::table::Table;
use crate::output::text::clean;
use crate::output::time::local;
use cast::{Cast, Event};
use safe::Filter;

/// List, play and download the recordings of terminals on a server
///
/// A server's agent records terminals if its policy says `record = "on"`, and keeps the files itself. Each play and download has an
/// entry in the audit log. A token of a program cannot use them.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct RecordingsCommand {
    /// The server whose recordings to list, by its name or id
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    #[command(subcommand)]
    command: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Play a recording in this terminal
    ///
    /// Sequences that would do more than draw, such as those that set the clipboard or ask the terminal for an answer, are left out.
    Play {
        #[command(flatten)]
        which: Which,
        /// How many times as fast
        #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = factor)]
        speed: f64,
        /// Wait at most so many seconds between two pieces of output
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        max_pause: Option<Duration>,
    },
    /// Download a recording, as an asciicast file of version 2
    Get {
        #[command(flatten)]
        which: Which,
        /// The new file
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
struct Which {
    /// The server, by its name or id
    #[arg(value_name = "SERVER")]
    server: String,
    /// The id, or the end of it that `recordings SERVER` shows
    #[arg(value_name = "RECORDING")]
    recording: String,
}

/// A recording in a list.
#[derive(Debug, Deserialize)]
struct Recording {
    id: Uuid,
    by: String,
    started_at: Timestamp,
    seconds: f64,
    bytes: u64,
    sha256: String,
    interrupted: bool,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.parse().ok().filter(|factor| (0.01..=1_000.0).contains(factor));
    factor.ok_or_else(|| format!("{text:?} is no factor between 0.01 and 1000"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| format!("{text:?} is no number of seconds up to a day"))
}

impl RecordingsCommand {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        match (self.command, self.server) {
            (Some(Verb::Play { which, speed, max_pause }), _) => play(call, &which, speed, max_pause).await,
            (Some(Verb::Get { which, file }), _) => get(call, &which, &file).await,
            (None, Some(server)) => list(call, &server).await,
            (None, None) => Err(Failure::usage("name a server: signalboxctl recordings SERVER")),
        }
    }
}

async fn list(call: &Call, server: &str) -> Result<(), Failure> {
    let server_id = call.api.server(server).await?.id;
    let values = call.api.list(&format!("/servers/{server_id}/recordings"), &[]).await?;
    let mut table = Table::new(["STARTED", "SECONDS", "BY", "BYTES", "SHA256", "ID"]);
    for value in &values {
        let recording: Recording = parsed(value.clone())?;
        let seconds = format!("{:.0}{}", recording.seconds, if recording.interrupted { " (interrupted)" } else { "" });
        table.row([
            local(recording.started_at).into(),
            seconds.into(),
            recording.by.into(),
            recording.bytes.to_string().into(),
            recording.sha256.chars().take(16).collect::<String>().into(),
            short(recording.id).into(),
        ]);
    }
    call.out.list(&table, &values)
}

async fn play(call: &Call, which: &Which, speed: f64, max_pause: Option<Duration>) -> Result<(), Failure> {
    call.out.expect_no_csv()?;
    let mut file = tempfile::tempfile()?;
    fetch(call, which, &mut file).await?;
    file.rewind()?;
    let mut cast = Cast::open(BufReader::new(file))?;
    if call.out.is_terminal
        && let Ok((columns, rows)) = crossterm::terminal::size()
        && (u64::from(columns) < cast.columns || u64::from(rows) < cast.rows)
    {
        output::note(&format!(
            "the recording has {} columns and {} rows, and this terminal {columns} and {rows}: make it larger",
            cast.columns, cast.rows
        ));
    }
    let mut filter = Filter::default();
    let mut ends = Ends::listen()?;
    let played = tokio::select! {
        played = show(&mut cast, &mut filter, speed, max_pause) => played,
        () = ends.next() => Ok(()),
    };
    if call.out.is_terminal {
        write(&filter.restore())?;
    }
    played?;
    if cast.unreadable > 0 {
        output::note(&format!("{} lines of the recording are no events", cast.unreadable));
    }
    Ok(())
}

async fn show(
    cast: &mut Cast<BufReader<File>>,
    filter: &mut Filter,
    speed: f64,
    max_pause: Option<Duration>,
) -> Result<(), Failure> {
    let mut before = Duration::ZERO;
    while let Some(event) = cast.next()? {
        // The size of this terminal is its user's.
        let Event::Output { at, text } = event else { continue };
        let pause = at.saturating_sub(before).div_f64(speed);
        before = at;
        tokio::time::sleep(max_pause.map_or(pause, |most| pause.min(most))).await;
        write(&filter.pass(&text))?;
    }
    Ok(())
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

async fn get(call: &Call, which: &Which, path: &Path) -> Result<(), Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::usage(format!("cannot create {}: {error}", path.display()));
    if path.exists() {
        return Err(cannot(&"the file exists"));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(|error| cannot(&error))?;
    let value = fetch(call, which, file.as_file_mut()).await?;
    file.as_file().sync_all()?;
    // Only a whole file with the right hash gets its name.
    file.persist_noclobber(path).map_err(|error| cannot(&error.error))?;
    let recording: Recording = parsed(value.clone())?;
    call.out.done(&format!("{} bytes, SHA-256 {}.", recording.bytes, clean(&recording.sha256)), &value)
}

/// Writes a recording to a file, and compares its hash with that of the list. Returns its entry there.
async fn fetch(call: &Call, which: &Which, file: &mut File) -> Result<Value, Failure> {
    let server_id = call.api.server(&which.server).await?.id;
    let path = format!("/servers/{server_id}/recordings");
    let value = found(&call.api.list(&path, &[]).await?, &which.recording)?;
    let recording: Recording = parsed(value.clone())?;
    let mut response = call.api.open(&format!("{path}/{}", recording.id)).await?;
    let mut hash = digest::Context::new(&digest::SHA256);
    let mut left = recording.bytes;
    while let Some(chunk) = crate::api::http::chunk(&mut response).await? {
        left = left.checked_sub(chunk.len() as u64).ok_or_else(|| {
            Failure::failed(
                "the file is longer than the list says: compare it with the entry terminal.recorded of the audit log",
            )
        })?;
        hash.update(&chunk);
        file.write_all(&chunk)?;
    }
    let hash: String = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    if hash == recording.sha256 {
        Ok(value)
    } else {
        Err(Failure::failed(format!(
            "the file has the SHA-256 {hash}, and the list says {}: it was changed or cut; compare it with the entry \
             terminal.recorded of the audit log",
            clean(&recording.sha256)
        )))
    }
}

fn found(all: &[Value], wanted: &str) -> Result<Value, Failure> {
    let plain = wanted.to_lowercase().replace('-', "");
    let is_meant =
        |recording: &&Value| !plain.is_empty() && text_of(recording, "id").replace('-', "").ends_with(&plain);
    let mut matching = all.iter().filter(is_meant);
    match (matching.next(), matching.next()) {
        (Some(recording), None) => Ok(recording.clone()),
        (None, _) => Err(Failure::failed(format!("no recording of this server has an id that ends with {wanted:?}"))),
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("several recordings have an id that ends with {wanted:?}: write the whole id")))
        }
    }
}
