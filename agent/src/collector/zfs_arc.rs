//! The memory that ZFS uses as a cache, from the ARC's statistics.

use std::io;

use signalbox_protocol::series::Unit;

use super::Collector;
use super::file::KernelFile;
use crate::catalog::{Metric, Values};
use crate::config::Roots;

const SIZE: Metric<'_> = Metric::gauge("zfs_arc", Unit::Bytes, "Memory that ZFS uses as its read cache (ARC).");

pub struct ZfsArc {
    arcstats: KernelFile,
    bytes: Option<u64>,
}

impl ZfsArc {
    pub fn new(roots: &Roots) -> Self {
        Self { arcstats: KernelFile::new(roots.proc.join("spl/kstat/zfs/arcstats")), bytes: None }
    }
}

impl Collector for ZfsArc {
    fn name(&self) -> &str {
        "zfs_arc"
    }

    fn read(&mut self) -> io::Result<()> {
        // Most machines have no ZFS.
        self.bytes = self.arcstats.read_text().ok().and_then(parse);
        Ok(())
    }

    fn values(&self, values: &mut Values<'_>) {
        if let Some(bytes) = self.bytes {
            values.push(SIZE, None, bytes as f64);
        }
    }
}

/// Reads lines of name, type and value.
fn parse(text: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("size")).then(|| words.nth(1)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::{named, read, roots, write};

    #[test]
    fn the_size_is_reported_where_there_is_zfs() {
        let dir = tempfile::tempdir().unwrap();
        let mut arc = ZfsArc::new(&roots(dir.path()));

        let without = read(&mut arc);
        let arcstats = "9 1 0x01 123 33456 7231 9187\nname                            type data\nhits 4 5\nc_max 4 7\nsize                            4    8251392\n";
        write(&dir.path().join("proc/spl/kstat/zfs/arcstats"), arcstats);

        assert_eq!(without, []);
        assert_eq!(read(&mut arc), named([("zfs_arc", 8_251_392.0)]));
    }
}
