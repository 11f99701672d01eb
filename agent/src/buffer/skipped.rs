//! A file of the buffer that this run does not read.

use std::path::PathBuf;

use super::record;
use super::segment::Segment;

#[derive(Debug)]
pub struct SkippedFile {
    pub path: PathBuf,
    pub bytes: u64,
}

impl SkippedFile {
    pub fn at(path: PathBuf) -> Self {
        let bytes = path.symlink_metadata().map_or(0, |metadata| metadata.len());
        Self { path, bytes }
    }

    /// A number after all of its samples, as far as its name and length tell.
    pub fn end_at_most(&self) -> u64 {
        let samples = self.bytes / record::length(0) as u64;
        Segment::first_by_name(&self.path).map_or(0, |first| first.saturating_add(samples + 1))
    }
}
