//! How full one mounted file system is. Each mount is a collector of its own, so that one that hangs takes no other along.

use std::io;
use std::path::PathBuf;

use rustix::fs::{StatVfs, statvfs};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::DiskUsage;

use super::Collector;
use super::mounts::Mount;

pub struct MountUsage {
    name: String,
    path: PathBuf,
    usage: DiskUsage,
}

impl MountUsage {
    /// The collector's name for a mount: the same file system at the same path.
    pub fn name_of(mount: &Mount) -> String {
        format!("disk_usage {} {}", mount.device, mount.path.display())
    }

    pub fn new(mount: &Mount) -> Self {
        let usage = DiskUsage { path: mount.path.to_string_lossy().into_owned(), ..DiskUsage::default() };
        Self { name: Self::name_of(mount), path: mount.path.clone(), usage }
    }
}

impl Collector for MountUsage {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self) -> io::Result<()> {
        let stat = statvfs(&self.path)?;
        measure(&stat, &mut self.usage);
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        if self.usage.total > 0 {
            sample.disk_usage.push(self.usage.clone());
        }
    }
}

/// As `df` counts: what is kept for root is neither used nor free, and percent is used of used and free.
fn measure(stat: &StatVfs, usage: &mut DiskUsage) {
    let unit = if stat.f_frsize > 0 { stat.f_frsize } else { stat.f_bsize };
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    usage.total = stat.f_blocks.saturating_mul(unit);
    usage.used = used.saturating_mul(unit);
    usage.free = stat.f_bavail.saturating_mul(unit);
    let usable = used.saturating_add(stat.f_bavail);
    usage.percent = if usable > 0 { used as f64 / usable as f64 * 100.0 } else { 0.0 };
}

#[cfg(test)]
mod tests {
    use rustix::fs::StatVfsMountFlags;

    use super::*;

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

    #[test]
    fn percent_leaves_out_what_is_kept_for_root() {
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
}
