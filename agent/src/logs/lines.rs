//! Splits bytes into lines: bounded, and always text.

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;

/// The most bytes of a line. Longer ones are cut, and say so.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Joins lines from the pieces in which they are read.
pub struct Splitter {
    most: usize,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    /// How many bytes of it were omitted.
    cut: u64,
}

impl Splitter {
    /// Keeps at most this many bytes of a line.
    pub fn new(most: usize) -> Self {
        Self { most, begun: Vec::new(), cut: 0 }
    }

    /// The next line that `bytes` complete; none when they are used up.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<String> {
        let end = memchr::memchr(b'\n', bytes);
        let (head, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.keep(head);
        *bytes = rest.get(1..).unwrap_or_default();
        end.map(|_| self.finish())
    }

    /// The unfinished rest, as a line of its own.
    pub fn rest(&mut self) -> Option<String> {
        (!self.begun.is_empty()).then(|| self.finish())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.most.saturating_sub(self.begun.len());
        let (kept, cut) = bytes.split_at(room.min(bytes.len()));
        self.begun.extend_from_slice(kept);
        self.cut += cut.len() as u64;
    }

    fn finish(&mut self) -> String {
        let line = text(&self.begun, self.cut);
        self.begun.clear();
        // A long line must not hold its memory for ever.
        self.begun.shrink_to(4 * 1024);
        self.cut = 0;
        line
    }
}

/// The text of a line of which this many bytes were cut. Bytes that are not UTF-8 are replaced.
pub fn text(bytes: &[u8], cut: u64) -> String {
    let text = String::from_utf8_lossy(bytes);
    match cut {
        0 => text.strip_suffix('\r').unwrap_or(&text).to_owned(),
        _ => format!("{text}… [{cut} bytes cut]"),
    }
}

/// A text of any length, cut like a line.
pub fn bounded(mut text: String) -> String {
    if text.len() > MAX_LINE_BYTES {
        let kept = text.floor_char_boundary(MAX_LINE_BYTES);
        let cut = text.len() - kept;
        text.truncate(kept);
        text.push_str(&format!("… [{cut} bytes cut]"));
    }
    text
}

/// A line of a file. Its time is the one that it begins with, if any.
pub fn file_line(message: String) -> LogLine {
    LogLine { timestamp: timestamp_of(&message), stream: None, message }
}

/// The time with which a line begins, if that is RFC 3339 with an offset, as rsyslog and many programs write it.
fn timestamp_of(line: &str) -> Option<Timestamp> {
    let bytes = line.as_bytes();
    if bytes.get(4) != Some(&b'-') || bytes.get(10) != Some(&b'T') {
        return None;
    }
    let word = line.split([' ', '\t']).next()?;
    let zone = word.get(19..)?;
    // Without an offset it is a local time of an unknown zone.
    let has_offset = zone.ends_with(['Z', 'z']) || zone.contains(['+', '-']);
    has_offset.then(|| Timestamp::parse(word)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]], most: usize) -> (Vec<String>, Option<String>) {
        let mut splitter = Splitter::new(most);
        let mut lines = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while let Some(line) = splitter.next(&mut rest) {
                lines.push(line);
            }
        }
        (lines, splitter.rest())
    }

    #[test]
    fn lines_are_put_together_from_any_pieces() {
        let whole: &[u8] = b"one\n\ntwo\r\nthree";
        let pieces: Vec<&[u8]> = whole.chunks(1).collect();
        let expected = (vec!["one".to_owned(), String::new(), "two".to_owned()], Some("three".to_owned()));

        assert_eq!(lines(&[whole], 100), expected);
        assert_eq!(lines(&pieces, 100), expected);
    }

    #[test]
    fn a_long_line_is_cut_and_says_so() {
        assert_eq!(lines(&[b"123456", b"789\nx\n"], 4).0, ["1234… [5 bytes cut]", "x"]);
        assert_eq!(bounded("ä".repeat(MAX_LINE_BYTES)).len(), MAX_LINE_BYTES + "… [65536 bytes cut]".len());
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        assert_eq!(lines(&[b"a\xffb\n"], 100).0, ["a\u{fffd}b"]);
    }

    #[test]
    fn only_a_time_with_an_offset_is_the_lines_time() {
        let time = |line: &str| file_line(line.to_owned()).timestamp.map(|time| time.to_string());

        assert_eq!(time("2026-11-20T10:30:00.5+01:00 web sshd: hi").as_deref(), Some("2026-11-20T09:30:00.500Z"));
        assert_eq!(time("2026-11-20T09:30:00Z").as_deref(), Some("2026-11-20T09:30:00.000Z"));
        for line in ["2026-11-20T09:30:00 local", "Nov 20 09:30:00 web", "", "2026-11-20", "äöüßäöüßäöüß-T"]
        {
            assert_eq!(time(line), None, "{line}");
        }
    }
}
