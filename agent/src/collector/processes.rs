//! How many processes there are: the directories of `/proc` that are numbers.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use rustix::fs::RawDir;
use signalbox_protocol::Sample;

use super::Collector;
use crate::config::Roots;

/// Some 600 names a call.
const BUFFER_BYTES: usize = 16 * 1024;

pub struct Processes {
    proc: PathBuf,
    buffer: Vec<u8>,
    count: u64,
}

impl Processes {
    pub fn new(roots: &Roots) -> Self {
        Self { proc: roots.proc.clone(), buffer: Vec::with_capacity(BUFFER_BYTES), count: 0 }
    }
}

impl Collector for Processes {
    fn name(&self) -> &str {
        "processes"
    }

    fn read(&mut self) -> io::Result<()> {
        let mut entries = RawDir::new(File::open(&self.proc)?, self.buffer.spare_capacity_mut());
        let mut count = 0;
        while let Some(entry) = entries.next() {
            let is_number = entry?.file_name().to_bytes().iter().all(u8::is_ascii_digit);
            count += u64::from(is_number);
        }
        self.count = count;
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
}
