//! A helper for tests of samples on a disk that does not respond.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::segment::Segment;

/// A file that hangs: a thread that opens it to read waits until the test releases it.
pub struct HangingFile {
    path: PathBuf,
    /// The path of its contents until then.
    contents: PathBuf,
}

impl HangingFile {
    /// Makes the oldest file of the buffer in this directory hang.
    pub fn oldest(dir: &Path) -> Self {
        let path = Segment::paths(dir).unwrap().remove(0);
        let contents = path.with_extension("contents");
        fs::rename(&path, &contents).unwrap();
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Self { path, contents }
    }

    /// Lets the waiting thread read the file, which hangs no more.
    pub fn release(self) {
        fs::write(&self.path, fs::read(&self.contents).unwrap()).unwrap();
        fs::rename(&self.contents, &self.path).unwrap();
    }
}
