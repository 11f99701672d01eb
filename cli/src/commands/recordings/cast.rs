//! Reads a recording: an asciicast file of version 2, line by line. Of its events only output and sizes are kept.

use std::io::{BufRead, Read};
use std::time::Duration;

use serde_json::Value;

use crate::error::Failure;

/// An agent writes much shorter lines.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;

/// No terminal is open for longer than 10 years.
const MAX_SECONDS: f64 = 10.0 * 366.0 * 86_400.0;

/// The largest width and height of a terminal that an agent opens.
const MAX_SIDE: u64 = 1_000;

/// What a terminal showed, or its new size.
#[derive(Debug, PartialEq)]
pub enum Event {
    Output { at: Duration, text: String },
    Size { columns: u64, rows: u64 },
}

/// A recording while it is read.
pub struct Cast<R> {
    lines: R,
    last: Duration,
    pub columns: u64,
    pub rows: u64,
    /// Lines that are no events: the last one is cut if the file was not ended in an orderly way.
    pub unreadable: u64,
}

impl<R: BufRead> Cast<R> {
    pub fn open(mut lines: R) -> Result<Self, Failure> {
        let header = line_of(&mut lines)?.and_then(|line| serde_json::from_slice::<Value>(&line).ok());
        let side = |name: &str| {
            let side = header.as_ref()?.get(name)?.as_u64()?;
            (1..=MAX_SIDE).contains(&side).then_some(side)
        };
        let is_of_version_2 = header.as_ref().and_then(|header| header.get("version")) == Some(&Value::from(2));
        match (is_of_version_2, side("width"), side("height")) {
            (true, Some(columns), Some(rows)) => Ok(Self { lines, last: Duration::ZERO, columns, rows, unreadable: 0 }),
            _ => Err(Failure::failed("the file is no asciicast of version 2")),
        }
    }

    /// The next event, no earlier than the one before it.
    pub fn next(&mut self) -> Result<Option<Event>, Failure> {
        while let Some(line) = line_of(&mut self.lines)? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<(f64, String, String)>(&line) {
                Ok((seconds, kind, data)) if (0.0..=MAX_SECONDS).contains(&seconds) => {
                    let at = self.last.max(Duration::from_secs_f64(seconds));
                    match (kind.as_str(), size_of(&data)) {
                        ("o", _) => {
                            self.last = at;
                            return Ok(Some(Event::Output { at, text: data }));
                        }
                        ("r", Some((columns, rows))) => return Ok(Some(Event::Size { columns, rows })),
                        // What was typed is never shown, and markers of other programs have no meaning here.
                        _ => {}
                    }
                }
                _ => self.unreadable += 1,
            }
        }
        Ok(None)
    }
}

fn size_of(data: &str) -> Option<(u64, u64)> {
    let (columns, rows) = data.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=MAX_SIDE).contains(side));
    Some((side(columns)?, side(rows)?))
}

fn line_of(lines: &mut impl BufRead) -> Result<Option<Vec<u8>>, Failure> {
    let mut line = Vec::new();
    lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    if line.len() as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        return Err(Failure::failed("a line of the file is longer than 4 MiB, so it is no recording of an agent"));
    }
    Ok((!line.is_empty()).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_sizes_are_read_and_times_never_go_back() {
        let text = "{\"version\":2,\"width\":80,\"height\":24}\n[1.5,\"o\",\"a\"]\n[0.5,\"o\",\"b\"]\n[2,\"i\",\"secret\"]\n\n\
                    [3,\"r\",\"100x30\"]\n[4,\"r\",\"9999x1\"]\nno event\n[1e300,\"o\",\"x\"]\n[5,\"o\",\"c";
        let mut cast = Cast::open(text.as_bytes()).unwrap();
        let at = Duration::from_secs_f64(1.5);

        assert_eq!((cast.columns, cast.rows), (80, 24));
        assert_eq!(cast.next().unwrap(), Some(Event::Output { at, text: "a".to_owned() }));
        assert_eq!(cast.next().unwrap(), Some(Event::Output { at, text: "b".to_owned() }));
        assert_eq!(cast.next().unwrap(), Some(Event::Size { columns: 100, rows: 30 }));
        assert_eq!(cast.next().unwrap(), None);
        assert_eq!(cast.unreadable, 3);
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        for text in
            ["", "{}", "{\"version\":3,\"width\":80,\"height\":24}", "{\"version\":2,\"width\":0,\"height\":24}"]
        {
            assert!(Cast::open(text.as_bytes()).is_err(), "{text}");
        }
        let long = format!("{{\"version\":2,\"width\":80,\"height\":24}}\n{}", "x".repeat(5 << 20));
        assert!(Cast::open(long.as_bytes()).unwrap().next().is_err());
    }
}
