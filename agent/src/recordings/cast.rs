//! The form of a recording: asciicast version 2. A line says when what was shown, as JSON; the first line describes the terminal.

use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::TerminalSize;

/// The only version that this reads and writes.
const VERSION: u8 = 2;

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub size: TerminalSize,
    /// Without fractions of a second.
    pub started_at: Timestamp,
    /// Who opened the terminal, as the service said.
    pub by: String,
}

/// The first line. Players ignore `by`.
#[derive(Debug, Serialize, Deserialize)]
struct FirstLine {
    version: u8,
    width: u16,
    height: u16,
    /// Unix time.
    timestamp: i64,
    #[serde(default)]
    by: String,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The terminal showed this.
    Output(&'a str),
    Resized(TerminalSize),
}

impl Header {
    pub fn new(size: TerminalSize, now: Timestamp, by: String) -> Self {
        let seconds = now.as_millis().div_euclid(1_000);
        Self { size, started_at: Timestamp::from_millis(seconds.saturating_mul(1_000)), by }
    }

    pub fn line(&self) -> serde_json::Result<String> {
        let TerminalSize { columns: width, rows: height } = self.size;
        let timestamp = self.started_at.as_millis().div_euclid(1_000);
        let first = FirstLine { version: VERSION, width, height, timestamp, by: self.by.clone() };
        Ok(serde_json::to_string(&first)? + "\n")
    }

    /// Reads a first line. None for anything else.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let FirstLine { version, width, height, timestamp, by } = serde_json::from_slice(line).ok()?;
        let started_at = Timestamp::from_millis(timestamp.checked_mul(1_000)?);
        let size = TerminalSize { columns: width, rows: height };
        (version == VERSION).then_some(Self { size, started_at, by })
    }
}

impl Event<'_> {
    /// The line of an event this many seconds after the beginning.
    pub fn line(self, seconds: f64) -> serde_json::Result<String> {
        let (code, data) = match self {
            Self::Output(text) => ("o", serde_json::to_string(text)?),
            Self::Resized(size) => ("r", format!("\"{}x{}\"", size.columns, size.rows)),
        };
        Ok(format!("[{seconds:.6}, \"{code}\", {data}]\n"))
    }
}

/// The time of an event's line, in seconds.
pub fn time_of(line: &[u8]) -> Option<f64> {
    let (seconds, _, _): (f64, String, String) = serde_json::from_slice(line).ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: TerminalSize = TerminalSize { columns: 100, rows: 30 };

    #[test]
    fn the_first_line_says_what_players_need_and_who_opened_it() {
        let header = Header::new(SIZE, Timestamp::from_millis(1_700_000_000_987), "ada from ::1".into());

        let line = header.line().unwrap();

        let expected = r#"{"version":2,"width":100,"height":30,"timestamp":1700000000,"by":"ada from ::1"}"#;
        assert_eq!(line, format!("{expected}\n"));
        assert_eq!(Header::parse(line.as_bytes()), Some(header));
    }

    #[test]
    fn other_first_lines_are_none() {
        for line in ["", "[1, \"o\", \"x\"]", r#"{"version":3,"width":1,"height":1,"timestamp":1}"#, "{\"version\":2"] {
            assert_eq!(Header::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn an_event_is_a_line_whatever_its_text() {
        let shown = Event::Output("grüße\r\n\u{1b}[0m\"\\\u{0}").line(1.5).unwrap();
        let resized = Event::Resized(SIZE).line(61.000_000_4).unwrap();

        assert_eq!(shown, "[1.500000, \"o\", \"grüße\\r\\n\\u001b[0m\\\"\\\\\\u0000\"]\n");
        assert_eq!(resized, "[61.000000, \"r\", \"100x30\"]\n");
        assert_eq!((time_of(shown.as_bytes()), time_of(resized.as_bytes())), (Some(1.5), Some(61.0)));
        assert_eq!(time_of(b"[\"o\"]\n"), None);
    }
}
