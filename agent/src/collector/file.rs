//! Reads one of the kernel's files repeatedly, without opening it or allocating each time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The kernel's files are read in as few calls as possible, because each call may generate them again.
const FIRST_BYTES: usize = 4096;
/// The kernel writes a file as one record, or as several, mostly lines. No record is longer, unless the caller says so.
const LONGEST_RECORD: usize = 1024;

#[derive(Debug)]
pub struct KernelFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
    longest_record: usize,
}

impl KernelFile {
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), file: None, buffer: Vec::new(), longest_record: LONGEST_RECORD }
    }

    /// A file of several records of any length.
    pub fn of_long_records(path: impl AsRef<Path>) -> Self {
        Self { longest_record: usize::MAX, ..Self::new(path) }
    }

    /// The open file, to watch it.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// The whole current file. A file that disappeared and came back is opened again.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let length = match self.file.as_ref().map(|file| read_all(file, &mut self.buffer, self.longest_record)) {
            Some(Ok(length)) => length,
            _ => {
                let file = self.file.insert(File::open(&self.path)?);
                read_all(file, &mut self.buffer, self.longest_record)?
            }
        };
        Ok(self.buffer.get(..length).unwrap_or_default())
    }

    /// The same, as text.
    pub fn read_text(&mut self) -> io::Result<&str> {
        std::str::from_utf8(self.read()?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

fn read_all(file: &File, buffer: &mut Vec<u8>, longest_record: usize) -> io::Result<usize> {
    if buffer.is_empty() {
        buffer.resize(FIRST_BYTES, 0);
    }
    let mut length = 0;
    loop {
        let room = buffer.get_mut(length..).unwrap_or_default();
        let room_bytes = room.len().min(FIRST_BYTES);
        let read = file.read_at(room, length as u64)?;
        length += read;
        // The kernel fills a page with whole records and stops before one that does not fit. Where another one would have
        // fitted there is none, and no further call is needed to find out.
        if read == 0 || read.saturating_add(longest_record) < room_bytes {
            return Ok(length);
        }
        if length == buffer.len() {
            buffer.resize(length * 2, 0);
        }
    }
}

/// The error of a collector that cannot understand the kernel's text.
pub fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("unexpected contents of {what}"))
}

/// The number in a file with nothing else; none for `max`, an unreadable file, or anything that is no number.
pub fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    let mut buffer = [0; 64];
    short_text(path, &mut buffer)?.parse().ok()
}

/// The text of a file that is shorter than `buffer`, read in one call.
pub fn short_text<'a>(path: &Path, buffer: &'a mut [u8]) -> Option<&'a str> {
    let length = File::open(path).ok()?.read_at(buffer, 0).ok()?;
    std::str::from_utf8(buffer.get(..length)?).ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_larger_than_the_first_read_is_read_whole_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        let long = "x".repeat(FIRST_BYTES * 3);
        std::fs::write(&path, &long).unwrap();
        let mut file = KernelFile::new(&path);

        assert_eq!(file.read_text().unwrap(), long);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(file.read_text().unwrap(), "short");
    }

    #[test]
    fn a_file_of_any_length_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        let mut files = [KernelFile::new(&path), KernelFile::of_long_records(&path)];

        for length in [0, 1, 3071, 3072, 3073, 4095, 4096, 4097, 7168, 7169, 8192, 20_000, 5] {
            let text = "x".repeat(length);
            std::fs::write(&path, &text).unwrap();
            assert!(files.iter_mut().all(|file| file.read_text().unwrap() == text), "{length}");
        }
    }

    #[test]
    fn a_missing_file_is_an_error_until_it_appears() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("late");
        let mut file = KernelFile::new(&path);

        assert!(file.read().is_err());
        std::fs::write(&path, "here").unwrap();
        assert_eq!(file.read_text().unwrap(), "here");
    }
}
