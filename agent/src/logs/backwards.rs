//! Reads a file from its end: only what is requested, however large it is.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::lines::{MAX_LINE_BYTES, text};

/// Bytes of one read.
const CHUNK: u64 = 64 * 1024;

/// How far back it looks for the beginning of the last lines.
pub const FARTHEST: u64 = 8 * 1024 * 1024;

/// Where the last `count` whole lines begin, or those of them within the last [`FARTHEST`] bytes.
pub fn tail_start(file: &File, size: u64, count: u32) -> io::Result<u64> {
    let end = size.saturating_sub(FARTHEST);
    let mut position = size;
    // One newline more than lines: the last one ends the last line; what follows is no line yet.
    let mut missing = u64::from(count) + 1;
    let mut first_seen = size;
    while position > end {
        let begin = position.saturating_sub(CHUNK).max(end);
        let bytes = read(file, begin, position)?;
        for at in memchr::memrchr_iter(b'\n', &bytes) {
            first_seen = begin + at as u64 + 1;
            missing -= 1;
            if missing == 0 {
                return Ok(first_seen);
            }
        }
        position = begin;
    }
    Ok(if end == 0 { 0 } else { first_seen })
}

/// How many lines end in a part of a file.
pub fn count_lines(file: &File, mut begin: u64, end: u64) -> io::Result<u64> {
    let mut count = 0;
    while begin < end {
        let bytes = read(file, begin, end.min(begin + CHUNK))?;
        if bytes.is_empty() {
            break;
        }
        count += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        begin += bytes.len() as u64;
    }
    Ok(count)
}

/// The bytes of a part of a file, as far as it has them.
fn read(file: &File, begin: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(begin)).unwrap_or_default()];
    let count = file.read_at(&mut bytes, begin)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// The result of a step back through a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Line(String),
    /// The line begins farther back.
    Nothing,
    /// The file's beginning.
    Start,
}

/// The lines of a file, last first, in bounded steps.
pub struct Backwards<'a> {
    file: &'a File,
    /// Where the bytes begin that were read and not returned yet.
    begin: u64,
    /// Where the returned lines begin.
    end: u64,
    /// The bytes from `begin` on; of a long line only its beginning.
    bytes: Vec<u8>,
}

impl<'a> Backwards<'a> {
    pub fn new(file: &'a File, size: u64) -> Self {
        Self { file, begin: size, end: size, bytes: Vec::new() }
    }

    /// Returns the line before the last returned one. Reads at most one chunk. A line may lack its newline.
    pub fn step(&mut self) -> io::Result<Step> {
        if self.end == 0 {
            return Ok(Step::Start);
        }
        // The newline that ends the line is not the one before it.
        let inner = usize::try_from(self.end - 1 - self.begin.min(self.end - 1)).unwrap_or(usize::MAX);
        let searched = self.bytes.get(..inner.min(self.bytes.len())).unwrap_or_default();
        if let Some(at) = memchr::memrchr(b'\n', searched) {
            return Ok(Step::Line(self.take(at + 1)));
        }
        if self.begin == 0 {
            return Ok(Step::Line(self.take(0)));
        }
        self.read_on()?;
        Ok(Step::Nothing)
    }

    fn read_on(&mut self) -> io::Result<()> {
        let before = self.begin.saturating_sub(CHUNK);
        let mut bytes = read(self.file, before, self.begin)?;
        if (bytes.len() as u64) < self.begin - before {
            // The file was truncated: nothing is left to be read in order.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.append(&mut self.bytes);
        bytes.truncate(usize::try_from(CHUNK).unwrap_or_default() + MAX_LINE_BYTES + 1);
        (self.begin, self.bytes) = (before, bytes);
        Ok(())
    }

    /// The line that begins at this index of the bytes.
    fn take(&mut self, at: usize) -> String {
        let line_begin = self.begin + at as u64;
        let length = self.end - line_begin;
        let kept = self.bytes.split_off(at.min(self.bytes.len()));
        self.end = line_begin;
        let is_whole = kept.len() as u64 >= length;
        let kept = kept.get(..usize::try_from(length).unwrap_or(usize::MAX)).unwrap_or(&kept);
        let line = kept.strip_suffix(b"\n").filter(|_| is_whole).unwrap_or(kept);
        let shown = line.get(..MAX_LINE_BYTES).unwrap_or(line);
        // The bytes that count as cut include the newline, where there is one.
        let cut =
            if is_whole { line.len() - shown.len() } else { usize::try_from(length).unwrap_or_default() - shown.len() };
        text(shown, cut as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn backwards(bytes: &[u8]) -> Vec<String> {
        let file = file(bytes);
        let mut reader = Backwards::new(&file, bytes.len() as u64);
        let mut lines = Vec::new();
        loop {
            match reader.step().unwrap() {
                Step::Line(line) => lines.push(line),
                Step::Nothing => {}
                Step::Start => return lines,
            }
        }
    }

    fn tail(bytes: &[u8], count: u32) -> u64 {
        tail_start(&file(bytes), bytes.len() as u64, count).unwrap()
    }

    #[test]
    fn lines_come_last_first() {
        assert_eq!(backwards(b"one\n\ntwo\n"), ["two", "", "one"]);
        assert_eq!(backwards(b"one\ntwo"), ["two", "one"]);
        assert_eq!(backwards(b"\n"), [""]);
        assert!(backwards(b"").is_empty());
    }

    #[test]
    fn lines_over_the_borders_of_chunks_are_whole() {
        let lines: Vec<String> = (0..50_000).map(|number| format!("{number} {}", "x".repeat(number % 97))).collect();
        let text = lines.join("\n");

        let mut found = backwards(text.as_bytes());
        found.reverse();

        assert_eq!(found, lines);
    }

    #[test]
    fn a_line_longer_than_anything_kept_is_cut() {
        let long = "y".repeat(300 * 1024);

        let found = backwards(format!("first\n{long}\nlast\n").as_bytes());

        assert_eq!(found.len(), 3, "{:?}", found.iter().map(String::len).collect::<Vec<_>>());
        assert!(found[1].starts_with(&long[..MAX_LINE_BYTES]) && found[1].contains("bytes cut]"), "{}", found[1].len());
        assert_eq!((found[0].as_str(), found[2].as_str()), ("last", "first"));
    }

    #[test]
    fn the_last_lines_begin_where_they_should() {
        assert_eq!(tail(b"a\nb\nc\n", 2), 2);
        assert_eq!(tail(b"a\nb\nc\npart", 2), 2);
        assert_eq!(tail(b"a\nb\nc\npart", 0), 6);
        assert_eq!(tail(b"a\nb\nc\n", 0), 6);
        assert_eq!(tail(b"a\nb\nc\n", 3), 0);
        assert_eq!(tail(b"a\nb\n", 100), 0);
        assert_eq!(tail(b"", 5), 0);
        let many = b"0123456789abcde\n".repeat(100_000);
        assert_eq!(tail(&many, 10_000), 90_000 * 16);
    }

    #[test]
    fn lines_are_counted_in_a_part() {
        let many = b"0123456789abcde\n".repeat(10_000);

        assert_eq!(count_lines(&file(&many), 0, many.len() as u64).unwrap(), 10_000);
        assert_eq!(count_lines(&file(&many), 16, 48).unwrap(), 2);
        assert_eq!(count_lines(&file(b"x"), 0, 100).unwrap(), 0);
    }
}
