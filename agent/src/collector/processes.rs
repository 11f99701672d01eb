//! The number of processes: the directories of `/proc` that are numbers.
//!
//! Listing them costs the kernel a microsecond each, at every sample. The link count of `/proc` rises and falls with the
//! machine's processes, so they are counted now and then, and in between the difference of link counts is added.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use signalbox_protocol::Sample;

use super::Collector;
use super::pids::Pids;
use crate::config::Roots;

/// Readings between two counts: five minutes at the default interval.
const COUNT_EVERY: u32 = 60;
/// The name of the outermost process namespace, the same on every Linux. Link counts are those of that one.
const OUTERMOST: &str = "pid:[4026531836]";

pub struct Processes {
    proc: PathBuf,
    pids: Pids,
    count: u64,
    /// Whether link counts are about the processes that are visible here.
    is_outermost: bool,
    /// Links of `/proc` that are not processes, at the last count.
    other_links: u64,
    readings: u32,
}

impl Processes {
    pub fn new(roots: &Roots) -> Self {
        let namespace = fs::read_link(roots.proc.join("self/ns/pid"));
        Self {
            proc: roots.proc.clone(),
            pids: Pids::new(),
            count: 0,
            is_outermost: namespace.is_ok_and(|name| name == Path::new(OUTERMOST)),
            other_links: 0,
            readings: 0,
        }
    }

    fn list(&mut self) -> io::Result<u64> {
        let mut count = 0;
        self.pids.list(&self.proc, |_| count += 1)?;
        Ok(count)
    }
}

impl Collector for Processes {
    fn name(&self) -> &str {
        "processes"
    }

    fn read(&mut self) -> io::Result<()> {
        let is_due = self.readings.is_multiple_of(COUNT_EVERY);
        self.readings = self.readings.wrapping_add(1);
        // The same width on every processor, unlike the field of the kernel's own structure.
        let links = fs::metadata(&self.proc)?.nlink();
        if is_due || !self.is_outermost {
            self.count = self.list()?;
            self.other_links = links.saturating_sub(self.count);
        } else {
            self.count = links.saturating_sub(self.other_links);
        }
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        sample.process_count = self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_processes() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1", "4711", "self", "12a", "sys"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let roots = Roots { proc: dir.path().into(), ..Roots::default() };
        let mut collector = Processes::new(&roots);
        let mut sample = Sample::default();

        collector.read().unwrap();
        collector.fill(&mut sample);

        assert_eq!(sample.process_count, 2);
    }

    #[test]
    fn link_counts_follow_the_processes_of_this_machine() {
        // Other programs start and end, also while the first reading compares both: try until a moment when none did.
        let agrees = (0..1000).any(|_| {
            let mut collector = Processes::new(&Roots::default());
            collector.read().unwrap();
            let before = collector.list().unwrap();
            collector.read().unwrap();
            let by_links = collector.count;
            before == collector.list().unwrap() && by_links == before
        });

        assert!(agrees);
    }
}
