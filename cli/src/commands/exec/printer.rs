//! What `exec` prints. That nobody reads it, as after `| head`, is no failure: the command continues, and how it ends counts.

use std::io::{self, IsTerminal, Write};

use signalbox_protocol::agent::Stream;

use crate::error::Failure;
use crate::output::writer::Writer;
use crate::output::{self, Out};

/// Prints in a thread of its own.
pub struct Printer(Writer<Piece>);

enum Piece {
    Output(Stream, String),
    Complaint(String),
    Note(String),
}

impl Printer {
    pub fn start(out: Out) -> Self {
        let mut stdout = Target::new(out.is_terminal);
        let mut stderr = Target::new(io::stderr().is_terminal());
        Self(Writer::start(move |piece: Piece| {
            match piece {
                Piece::Output(Stream::Stdout, text) => return stdout.write(|| out.raw(text.as_bytes())),
                Piece::Output(Stream::Stderr, text) => return stderr.write(|| to_stderr(&text)),
                Piece::Complaint(text) => output::complain(&text),
                Piece::Note(text) => output::note(&text),
            }
            Ok(())
        }))
    }

    /// Text as it is.
    pub async fn print(&self, stream: Stream, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.0.write(Piece::Output(stream, text.to_owned()), text.len()).await
    }

    /// A line about the output, at its place.
    pub async fn complain(&self, text: String) -> Result<(), Failure> {
        let bytes = text.len();
        self.0.write(Piece::Complaint(text), bytes).await
    }

    /// A line for people who wait, unless too much waits to be printed.
    pub fn note(&self, text: String) {
        self.0.offer(Piece::Note(text));
    }

    /// Why nothing can be printed any more, as soon as that is so.
    pub async fn failed(&self) -> Failure {
        self.0.failed().await
    }

    /// Waits until everything is printed.
    pub async fn finish(self) -> Result<(), Failure> {
        self.0.finish().await
    }
}

fn to_stderr(text: &str) -> Result<(), Failure> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes())?;
    stderr.flush()?;
    Ok(())
}

/// Standard output or error, as long as somebody reads it.
struct Target {
    is_terminal: bool,
    is_read: bool,
}

impl Target {
    /// Whether it is a terminal has to be known before: one that was closed does not say so.
    fn new(is_terminal: bool) -> Self {
        Self { is_terminal, is_read: true }
    }

    fn write(&mut self, write: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        if !self.is_read {
            return Ok(());
        }
        let written = write();
        // A terminal has room for everything, until it is closed.
        self.is_read = !(matches!(written, Err(Failure::NoReader)) || written.is_err() && self.is_terminal);
        if self.is_read { written } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_more_is_written_where_nobody_reads() {
        let mut pipe = Target::new(false);
        let mut terminal = Target::new(true);

        assert!(pipe.write(|| Err(Failure::NoReader)).is_ok());
        assert!(terminal.write(|| Err(Failure::failed("Input/output error"))).is_ok());

        for mut target in [pipe, terminal] {
            assert!(target.write(|| panic!("nobody reads it")).is_ok());
        }
    }

    #[test]
    fn what_cannot_be_written_to_a_file_is_a_failure() {
        let mut file = Target::new(false);

        assert!(file.write(|| Err(Failure::failed("No space left on device"))).is_err());
        assert!(file.write(|| Ok(())).is_ok());
    }
}
