//! Whether the last records of a log hold its last lines. Docker counts records: the pieces of long lines one by one, and those of
//! both streams. Pure.

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;

use super::frames::Record;

/// The length of Docker's pieces. A terminal's line comes as one record, however many pieces it has.
const PIECE_BYTES: usize = 16 * 1024;
/// Additional records to request at first, because lines may have several.
const MORE_RECORDS: usize = 32;
/// How many times as many records to request next. All reads but the last then cost a third of it.
const GROWTH: usize = 4;

/// The last records of a log, as many as are requested.
pub struct Window {
    /// None for all.
    requested: Option<usize>,
    received: usize,
    /// The time of the first record.
    began: Option<Timestamp>,
    /// Whether a line of this stream has come.
    has_stdout: bool,
    has_stderr: bool,
}

impl Window {
    /// The whole log.
    pub fn whole_log() -> Self {
        Self::of(None)
    }

    /// Enough records for so many lines, unless they are long.
    pub fn of_last(lines: usize) -> Self {
        Self::of(Some(lines.saturating_add(MORE_RECORDS)))
    }

    /// What to read when this was not enough.
    pub fn wider(&self) -> Self {
        Self::of(self.requested.map(|requested| requested.saturating_mul(GROWTH)))
    }

    fn of(requested: Option<usize>) -> Self {
        Self { requested, received: 0, began: None, has_stdout: false, has_stderr: false }
    }

    /// The engine's parameter `tail`.
    pub fn tail(&self) -> String {
        self.requested.map_or_else(|| "all".to_owned(), |requested| requested.to_string())
    }

    /// Whether it is requested by a number of records.
    pub fn is_counted(&self) -> bool {
        self.requested.is_some()
    }

    /// Counts a record that came.
    pub fn count(&mut self, record: &Record) {
        if self.received == 0 {
            self.began = record.timestamp;
        }
        self.received += record.text.len().div_ceil(PIECE_BYTES).max(1);
    }

    /// Whether the next line surely has its beginning. Only the first line of a stream may lack it; and as Docker writes the time
    /// of a line's first piece to all of them, only one that is not later than the first record.
    pub fn is_whole(&mut self, line: &LogLine) -> bool {
        let has_line =
            if line.stream.as_deref() == Some("stderr") { &mut self.has_stderr } else { &mut self.has_stdout };
        let is_first = !std::mem::replace(has_line, true);
        let is_later = line.timestamp.zip(self.began).is_some_and(|(at, began)| at > began);
        !is_first || is_later
    }

    /// Whether the log may have records before these.
    pub fn is_cut(&self) -> bool {
        self.requested.is_some_and(|requested| self.received >= requested)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::frames::Stream;
    use super::*;

    fn record(stream: Stream, second: i64, length: usize) -> Record {
        Record { stream, timestamp: at(second), text: Bytes::from(vec![b'x'; length]) }
    }

    fn line(stream: &str, second: i64) -> LogLine {
        LogLine { timestamp: at(second), stream: Some(stream.into()), message: "x".into() }
    }

    fn at(second: i64) -> Option<Timestamp> {
        Some(Timestamp::from_millis(second * 1000))
    }

    #[test]
    fn a_window_that_is_not_full_has_the_whole_log() {
        let mut window = Window::of_last(1);
        assert_eq!(window.tail(), "33");

        (0..32).for_each(|second| window.count(&record(Stream::Stdout, second, 0)));
        assert!(!window.is_cut());
        window.count(&record(Stream::Stderr, 32, 16_384));

        assert!(window.is_cut());
        assert_eq!(window.wider().tail(), "132");
    }

    #[test]
    fn a_terminals_long_line_counts_as_its_pieces() {
        let mut window = Window::of_last(0);

        (0..10).for_each(|second| window.count(&record(Stream::Terminal, second, 16_384 * 3 + 2)));

        assert!(window.is_cut());
    }

    #[test]
    fn the_whole_log_is_never_cut() {
        let mut window = Window::whole_log();

        (0..100).for_each(|second| window.count(&record(Stream::Stdout, second, 1)));

        assert_eq!((window.tail(), window.is_cut(), window.is_counted()), ("all".to_owned(), false, false));
    }

    #[test]
    fn the_first_line_of_a_stream_may_have_begun_before_the_first_record() {
        let mut window = Window::of_last(10);
        window.count(&record(Stream::Stdout, 5, 1));

        assert!(!window.is_whole(&line("stdout", 5)));
        assert!(window.is_whole(&line("stdout", 5)));
        assert!(!window.is_whole(&line("stderr", 4)));
        assert!(window.is_whole(&line("stderr", 5)));
    }

    #[test]
    fn a_line_that_began_after_the_first_record_is_whole() {
        let mut window = Window::of_last(10);
        window.count(&record(Stream::Stdout, 5, 1));

        assert!(window.is_whole(&line("stderr", 6)));
    }
}
