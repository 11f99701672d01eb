//! Joins the records of an engine's log to lines. Pure.

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;

use super::frames::{Record, Stream};

/// The most bytes of one line; of a longer one it is stated how much is missing.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Joins lines. The streams' lines are separated even where their pieces are mixed.
#[derive(Default)]
pub struct Lines {
    stdout: Piece,
    stderr: Piece,
}

/// The beginning of a line.
#[derive(Default)]
struct Piece {
    /// The time of its first record; the outer is none while there is no record.
    began: Option<Option<Timestamp>>,
    text: Vec<u8>,
    left_out: usize,
}

impl Lines {
    /// Returns the line that this record ends, if it ends one.
    pub fn add(&mut self, record: &Record) -> Option<LogLine> {
        let piece = match record.stream {
            Stream::Stdout | Stream::Terminal => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        piece.began.get_or_insert(record.timestamp);
        let (text, is_end) = match record.text.strip_suffix(b"\n") {
            Some(text) => (text, true),
            None => (record.text.as_ref(), false),
        };
        let room = MAX_LINE_BYTES - piece.text.len();
        piece.text.extend(text.iter().take(room));
        piece.left_out += text.len().saturating_sub(room);
        if is_end { piece.finish(record.stream) } else { None }
    }

    /// The lines whose end will not come.
    pub fn rest(&mut self, is_terminal: bool) -> impl Iterator<Item = LogLine> {
        let stdout = self.stdout.finish(if is_terminal { Stream::Terminal } else { Stream::Stdout });
        let stderr = self.stderr.finish(Stream::Stderr);
        stdout.into_iter().chain(stderr)
    }
}

impl Piece {
    fn finish(&mut self, stream: Stream) -> Option<LogLine> {
        let Self { began, mut text, left_out } = std::mem::take(self);
        let timestamp = began?;
        if stream == Stream::Terminal && left_out == 0 && text.last() == Some(&b'\r') {
            text.pop();
        }
        let mut message = String::from_utf8_lossy(&text).into_owned();
        if left_out > 0 {
            message.push_str(&format!(" [{left_out} bytes left out]"));
        }
        let stream = if stream == Stream::Stderr { "stderr" } else { "stdout" };
        Some(LogLine { timestamp, stream: Some(stream.to_owned()), message })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn record(stream: Stream, second: i64, text: &[u8]) -> Record {
        let timestamp = Some(Timestamp::from_millis(second * 1000));
        Record { stream, timestamp, text: Bytes::copy_from_slice(text) }
    }

    fn line(stream: &str, second: i64, message: &str) -> LogLine {
        let timestamp = Some(Timestamp::from_millis(second * 1000));
        LogLine { timestamp, stream: Some(stream.into()), message: message.into() }
    }

    #[test]
    fn a_long_line_is_one_line_with_the_moment_of_its_beginning() {
        let mut lines = Lines::default();

        assert_eq!(lines.add(&record(Stream::Stdout, 1, &[b'a'; 16_384])), None);
        assert_eq!(lines.add(&record(Stream::Stdout, 2, &[b'a'; 16_384])), None);
        let whole = lines.add(&record(Stream::Stdout, 3, b"end\n"));

        assert_eq!(whole, Some(line("stdout", 1, &("a".repeat(32_768) + "end"))));
    }

    #[test]
    fn pieces_of_the_two_streams_do_not_mix() {
        let mut lines = Lines::default();

        assert_eq!(lines.add(&record(Stream::Stdout, 1, b"out ")), None);
        assert_eq!(lines.add(&record(Stream::Stderr, 2, b"err\n")), Some(line("stderr", 2, "err")));
        assert_eq!(lines.add(&record(Stream::Stdout, 3, b"put\n")), Some(line("stdout", 1, "out put")));
    }

    #[test]
    fn a_line_that_never_ends_takes_no_more_memory_than_a_long_one() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert_eq!(lines.add(&record(Stream::Stdout, 1, &[b'x'; 8_192])), None);
        }

        let cut = lines.add(&record(Stream::Stdout, 2, b"\n")).unwrap();

        let left_out = 100 * 8_192 - MAX_LINE_BYTES;
        assert_eq!(cut.message, "x".repeat(MAX_LINE_BYTES) + &format!(" [{left_out} bytes left out]"));
    }

    #[test]
    fn a_line_without_an_end_comes_with_the_rest() {
        let mut lines = Lines::default();
        lines.add(&record(Stream::Stderr, 1, b"fatal"));
        lines.add(&record(Stream::Stdout, 2, b""));

        let rest: Vec<LogLine> = lines.rest(false).collect();

        assert_eq!(rest, [line("stdout", 2, ""), line("stderr", 1, "fatal")]);
        assert_eq!(lines.rest(false).count(), 0);
    }

    #[test]
    fn a_terminals_return_is_no_part_of_the_line() {
        let mut lines = Lines::default();

        assert_eq!(lines.add(&record(Stream::Terminal, 1, b"a\r\n")), Some(line("stdout", 1, "a")));
        assert_eq!(lines.add(&record(Stream::Stdout, 1, b"a\r\n")), Some(line("stdout", 1, "a\r")));
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        let mut lines = Lines::default();

        assert_eq!(lines.add(&record(Stream::Stdout, 1, b"a\xff\n")), Some(line("stdout", 1, "a\u{fffd}")));
    }
}
