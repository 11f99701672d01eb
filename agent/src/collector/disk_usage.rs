//! The usage of one mounted file system. Each mount is a collector of its own, so that one that hangs affects no other.

use std::io;
use std::path::PathBuf;

use rustix::fs::{StatVfs, statvfs};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::DiskUsage;
use signalbox_protocol::series::Unit;

use super::Collector;
use super::mounts::Mount;
use crate::catalog::{Metric, Values};

/// The list of a sample that has mounts.
pub const LIST: &str = "disk_usage";

const INODES: Metric<'_> = Metric::gauge(
    "inodes_used",
    Unit::Percent,
    "Share of a file system's inodes that is used; without free ones no file can be made.",
);

pub struct MountUsage {
    name: String,
    path: PathBuf,
    is_read_only: bool,
    usage: DiskUsage,
    inodes_percent: Option<f64>,
}

impl MountUsage {
    /// The collector's name for a mount: the same file system at the same path, while it is writable, or while it is not.
    pub fn name_of(mount: &Mount) -> String {
        let access = if mount.is_read_only() { " ro" } else { "" };
        format!("{LIST} {} {}{access}", mount.device, mount.path.display())
    }

    pub fn new(mount: &Mount) -> Self {
        let usage = DiskUsage { path: mount.path.to_string_lossy().into_owned(), ..DiskUsage::default() };
        Self {
            name: Self::name_of(mount),
            path: mount.path.clone(),
            is_read_only: mount.is_read_only(),
            usage,
            inodes_percent: None,
        }
    }

    /// Stores a reading. An image that was made to fit is always full and is no disk; a disk that failed while it was full has
    /// some blocks left, which are reserved for root.
    fn take(&mut self, stat: &StatVfs) {
        measure(stat, &mut self.usage);
        self.inodes_percent = inodes_percent(stat);
        if self.is_read_only && stat.f_bfree == 0 {
            self.usage.total = 0;
        }
    }
}

impl Collector for MountUsage {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self) -> io::Result<()> {
        self.take(&statvfs(&self.path)?);
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        if self.usage.total > 0 {
            sample.disk_usage.push(self.usage.clone());
        }
    }

    fn values(&self, values: &mut Values<'_>) {
        if let Some(percent) = self.inodes_percent.filter(|_| self.usage.total > 0) {
            values.push(INODES, Some(&self.usage.path), percent);
        }
    }
}

/// Calculates as `df` does: blocks reserved for root are neither used nor free, and percent is used of used and free.
fn measure(stat: &StatVfs, usage: &mut DiskUsage) {
    let unit = if stat.f_frsize > 0 { stat.f_frsize } else { stat.f_bsize };
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    usage.total = stat.f_blocks.saturating_mul(unit);
    usage.used = used.saturating_mul(unit);
    usage.free = stat.f_bavail.saturating_mul(unit);
    let usable = used.saturating_add(stat.f_bavail);
    usage.percent = if usable > 0 { used as f64 / usable as f64 * 100.0 } else { 0.0 };
}

/// Calculates as `df -i` does. None where inodes are created on demand, so that they cannot run out.
fn inodes_percent(stat: &StatVfs) -> Option<f64> {
    let used = stat.f_files.saturating_sub(stat.f_ffree);
    let usable = used.saturating_add(stat.f_favail);
    (stat.f_files > 0 && usable > 0).then(|| used as f64 / usable as f64 * 100.0)
}

#[cfg(test)]
mod tests {
    use rustix::fs::StatVfsMountFlags;

    use super::*;
    use crate::collector::fixture::{named, values_of};

    fn stat(blocks: u64, free: u64, available: u64) -> StatVfs {
        StatVfs {
            f_bsize: 65_536,
            f_frsize: 4096,
            f_blocks: blocks,
            f_bfree: free,
            f_bavail: available,
            f_files: 0,
            f_ffree: 0,
            f_favail: 0,
            f_fsid: 0,
            f_flag: StatVfsMountFlags::empty(),
            f_namemax: 255,
        }
    }

    fn mounted(is_read_only: bool) -> MountUsage {
        let usage = DiskUsage { path: "/".into(), ..DiskUsage::default() };
        MountUsage { name: String::new(), path: "/".into(), is_read_only, usage, inodes_percent: None }
    }

    #[test]
    fn inodes_are_reported_where_the_file_system_counts_them() {
        let told = |files, free, blocks| {
            let mut usage = mounted(false);
            usage.take(&StatVfs { f_files: files, f_ffree: free, f_favail: free, ..stat(blocks, 400, 300) });
            values_of(|values| usage.values(values))
        };

        assert_eq!(told(1_000, 250, 1_000), named([("inodes_used:/", 75.0)]));
        assert_eq!(told(0, 0, 1_000), [], "a file system that makes them as they are needed");
        assert_eq!(told(1_000, 250, 0), [], "what is no disk");
    }

    #[test]
    fn percent_ignores_blocks_reserved_for_root() {
        let mut usage = DiskUsage { path: "/".into(), ..DiskUsage::default() };

        measure(&stat(1000, 400, 300), &mut usage);

        let expected = DiskUsage {
            path: "/".into(),
            total: 1000 * 4096,
            used: 600 * 4096,
            free: 300 * 4096,
            percent: 600.0 / 900.0 * 100.0,
        };
        assert_eq!(usage, expected);
    }

    #[test]
    fn a_file_system_without_blocks_is_left_out() {
        let mount = Mount {
            device: "0:1".into(),
            root: "/".into(),
            path: "/proc".into(),
            kind: "ext4".into(),
            super_options: String::new(),
        };
        let mut collector = MountUsage::new(&mount);
        let mut sample = Sample::default();

        collector.read().unwrap();
        collector.fill(&mut sample);

        assert_eq!(sample.disk_usage, []);
    }

    #[test]
    fn a_file_system_that_is_full_is_an_image_where_it_cannot_be_written() {
        let usage_of = |is_read_only, free| {
            let mut usage = mounted(is_read_only);
            let mut sample = Sample::default();
            usage.take(&stat(1000, free, 0));
            usage.fill(&mut sample);
            sample.disk_usage.len()
        };

        assert_eq!(
            [(true, 0), (true, 50), (false, 0)].map(|(is_read_only, free)| usage_of(is_read_only, free)),
            [0, 1, 1]
        );
    }
}
