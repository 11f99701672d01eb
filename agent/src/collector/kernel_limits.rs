//! Resources that the whole machine shares and can exhaust: file handles and entropy.

use std::io;

use signalbox_protocol::series::Unit;

use super::Collector;
use super::file::KernelFile;
use crate::catalog::{Metric, Values};
use crate::config::Roots;

const FILE_HANDLES: Metric<'_> =
    Metric::gauge("file_handles", Unit::Count, "File handles that all processes together have open.");
const ENTROPY: Metric<'_> =
    Metric::gauge("entropy", Unit::Count, "Bits of entropy that the kernel has; 256 is all since Linux 5.18.");

pub struct KernelLimits {
    file_nr: KernelFile,
    entropy_avail: KernelFile,
    handles: Option<u64>,
    entropy: Option<u64>,
}

impl KernelLimits {
    pub fn new(roots: &Roots) -> Self {
        let sys = roots.proc.join("sys");
        Self {
            file_nr: KernelFile::new(sys.join("fs/file-nr")),
            entropy_avail: KernelFile::new(sys.join("kernel/random/entropy_avail")),
            handles: None,
            entropy: None,
        }
    }
}

impl Collector for KernelLimits {
    fn name(&self) -> &str {
        "kernel_limits"
    }

    fn read(&mut self) -> io::Result<()> {
        self.handles = first_number(&mut self.file_nr);
        self.entropy = first_number(&mut self.entropy_avail);
        Ok(())
    }

    fn values(&self, values: &mut Values<'_>) {
        for (metric, count) in [(FILE_HANDLES, self.handles), (ENTROPY, self.entropy)] {
            if let Some(count) = count {
                values.push(metric, None, count as f64);
            }
        }
    }
}

fn first_number(file: &mut KernelFile) -> Option<u64> {
    file.read_text().ok()?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::{named, read, roots, write};

    #[test]
    fn handles_and_entropy_are_the_first_numbers_of_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut limits = KernelLimits::new(&roots(dir.path()));

        let without = read(&mut limits);
        write(&dir.path().join("proc/sys/fs/file-nr"), "2284\t0\t9223372036854775807\n");
        let handles = read(&mut limits);
        write(&dir.path().join("proc/sys/kernel/random/entropy_avail"), "256\n");

        assert_eq!(without, []);
        assert_eq!(handles, named([("file_handles", 2_284.0)]));
        assert_eq!(read(&mut limits), named([("file_handles", 2_284.0), ("entropy", 256.0)]));
    }
}
