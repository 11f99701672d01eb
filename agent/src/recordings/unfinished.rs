//! Ends a recording whose agent was killed.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use signalbox_protocol::agent::TerminalRecorded;
use uuid::Uuid;

use super::cast::{Header, time_of};
use crate::state::open_regular;
use crate::text::hex;

/// Cuts a file after its last whole line. None for one without a first line.
pub fn end_unfinished(path: &Path, id: Uuid, most: u64) -> io::Result<Option<TerminalRecorded>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    if length > most {
        return Err(io::Error::other("the file is longer than a recording can be"));
    }
    let (mut lines, mut hash, mut line) = (BufReader::new(file), Context::new(&SHA256), Vec::new());
    let (mut bytes, mut seconds, mut header) = (0, 0.0, None);
    while lines.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
        match &header {
            None => header = Some(Header::parse(&line)),
            Some(_) => seconds = time_of(&line).unwrap_or(seconds),
        }
        hash.update(&line);
        bytes += line.len() as u64;
        line.clear();
    }
    let Some(Header { size, started_at, by }) = header.flatten() else { return Ok(None) };
    if bytes < length {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(bytes)?;
        file.sync_all()?;
    }
    Ok(Some(TerminalRecorded {
        stream_id: id,
        by,
        started_at,
        seconds,
        bytes,
        sha256: hex(hash.finish().as_ref()),
        columns: size.columns,
        rows: size.rows,
        interrupted: true,
    }))
}
