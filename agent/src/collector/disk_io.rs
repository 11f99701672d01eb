//! Bytes read and written by each whole block device since boot, from `/proc/diskstats`.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use signalbox_protocol::Sample;
use signalbox_protocol::sample::{DiskIo as Row, MAX_LIST};

use super::Collector;
use super::disk_activity::DiskActivity;
use super::file::KernelFile;
use crate::catalog::Values;
use crate::config::Roots;

/// The kernel counts in sectors of this size, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;
/// Devices that are memory, or files on other devices.
const LEFT_OUT: &[&str] = &["loop", "ram", "zram"];

pub struct DiskIo {
    diskstats: KernelFile,
    block: PathBuf,
    /// Whether a name is a whole device. Partitions have no entry of their own in `/sys/block`.
    whole: HashMap<String, bool>,
    rows: Vec<Row>,
    activity: DiskActivity,
}

impl DiskIo {
    pub fn new(roots: &Roots) -> Self {
        Self {
            // The kernel writes a disk and all its partitions as one record.
            diskstats: KernelFile::of_long_records(roots.proc.join("diskstats")),
            block: roots.sys.join("block"),
            whole: HashMap::new(),
            rows: Vec::new(),
            activity: DiskActivity::default(),
        }
    }
}

impl Collector for DiskIo {
    fn name(&self) -> &str {
        "disk_io"
    }

    fn read(&mut self) -> io::Result<()> {
        self.rows.clear();
        let diskstats = self.diskstats.read_text()?;
        for (device, read_bytes, write_bytes) in parse(diskstats) {
            let is_whole = match self.whole.get(device) {
                Some(known) => *known,
                None => {
                    // In sysfs a slash in a device's name is an exclamation mark.
                    let is_whole = self.block.join(device.replace('/', "!")).exists();
                    self.whole.insert(device.to_owned(), is_whole);
                    is_whole
                }
            };
            if is_whole && self.rows.len() < MAX_LIST {
                self.rows.push(Row { device: device.to_owned(), read_bytes, write_bytes });
            }
        }
        self.activity.read(diskstats, &self.whole, Instant::now());
        // Devices come and go; now and then all names are forgotten, including those of missing devices.
        if self.whole.len() > 2 * MAX_LIST {
            self.whole.clear();
        }
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        sample.disk_io.extend_from_slice(&self.rows);
    }

    fn values(&self, values: &mut Values<'_>) {
        self.activity.values(values);
    }
}

/// Returns device, bytes read, bytes written.
fn parse(text: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(2);
        let device = words.next().filter(|device| !LEFT_OUT.iter().any(|prefix| device.starts_with(prefix)))?;
        let read: u64 = words.nth(2)?.parse().ok()?;
        let written: u64 = words.nth(3)?.parse().ok()?;
        Some((device, read.saturating_mul(SECTOR_BYTES), written.saturating_mul(SECTOR_BYTES)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISKSTATS: &str = "\
   7       0 loop0 9 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 259       0 nvme0n1 53641 10610 4654778 32675 10384 45370 6088904 26622 0 10012 60066 8743 27 642976 755 398 12
 259       1 nvme0n1p1 10 0 100 0 10 0 200 0 0 0 0
 253       0 zram0 1 0 1 0 0 0 0 0 0 0 0
 104       0 cciss/c0d0 1 0 2 0 3 0 4 0 0 0 0
   8       0 sda
";

    #[test]
    fn sectors_are_512_bytes() {
        let rows: Vec<_> = parse(DISKSTATS).collect();

        let expected = [
            ("nvme0n1", 4_654_778 * 512, 6_088_904 * 512),
            ("nvme0n1p1", 100 * 512, 200 * 512),
            ("cciss/c0d0", 2 * 512, 4 * 512),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn partitions_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let roots =
            Roots { proc: dir.path().into(), sys: dir.path().into(), etc: dir.path().into(), ..Roots::default() };
        std::fs::write(dir.path().join("diskstats"), DISKSTATS).unwrap();
        std::fs::create_dir_all(dir.path().join("block/nvme0n1")).unwrap();
        std::fs::create_dir_all(dir.path().join("block/cciss!c0d0")).unwrap();
        let mut collector = DiskIo::new(&roots);
        let mut sample = Sample::default();

        collector.read().unwrap();
        collector.fill(&mut sample);

        let devices: Vec<_> = sample.disk_io.iter().map(|row| row.device.as_str()).collect();
        assert_eq!(devices, ["nvme0n1", "cciss/c0d0"]);
    }
}
