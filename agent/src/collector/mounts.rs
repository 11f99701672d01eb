//! The mounted file systems that hold data, from `/proc/self/mountinfo` (proc(5)).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signalbox_protocol::sample::MAX_LIST;

use super::file::KernelFile;
use crate::config::Roots;

/// File systems without data of their own, or images that are always full.
const LEFT_OUT: &[&str] = &[
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "cramfs",
    "debugfs",
    "devfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "erofs",
    "fuse.dwarfs",
    "fuse.fuseiso",
    "fuse.gvfsd-fuse",
    "fuse.lxcfs",
    "fuse.portal",
    "fuse.snapfuse",
    "fuse.squashfuse",
    "fuse.squashfuse_ll",
    "fusectl",
    "hugetlbfs",
    "iso9660",
    "mqueue",
    "nsfs",
    "overlay",
    "proc",
    "pstore",
    "ramfs",
    "romfs",
    "rootfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// Container engines mount these single files from the host's disk.
const CONTAINER_FILES: &[&str] = &["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];

/// Programs with a file system of their own name it at the end of its kind: `fuse.<name>.AppImage`.
const APP_IMAGE: &str = ".AppImage";

/// File systems whose server may be gone, so that a call to them may hang.
const NETWORK: &[&str] =
    &["9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "lustre", "nfs", "nfs4", "ocfs2", "smb3"];

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `major:minor`.
    pub device: String,
    /// The directory of the file system that is mounted.
    pub root: String,
    pub path: PathBuf,
    pub kind: String,
    pub super_options: String,
}

impl Mount {
    /// Whether a call may wait for another machine, or for a program.
    pub fn is_remote(&self) -> bool {
        NETWORK.contains(&self.kind.as_str()) || self.kind == "fuse" || self.kind.starts_with("fuse.")
    }

    /// Whether the file system itself cannot be written. A writable one may still be mounted read-only somewhere, such as a
    /// host's disk in a container.
    pub fn is_read_only(&self) -> bool {
        self.super_options.split(',').any(|option| option == "ro")
    }

    fn holds_data(&self) -> bool {
        let is_container_root = self.kind == "overlay" && self.path == Path::new("/");
        let is_file = CONTAINER_FILES.iter().any(|file| self.path == Path::new(file));
        let is_image = self.kind.ends_with(APP_IMAGE) || (self.kind == "udf" && self.is_read_only());
        is_container_root || !(is_file || is_image || LEFT_OUT.contains(&self.kind.as_str()))
    }
}

/// Returns every well-formed line.
pub fn parse(mountinfo: &[u8]) -> impl Iterator<Item = Mount> {
    mountinfo.split(|byte| *byte == b'\n').filter_map(parse_line)
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let device = text(words.nth(2)?);
    let root = text(&unescape(words.next()?));
    let path = PathBuf::from(OsString::from_vec(unescape(words.next()?)));
    // Optional fields end with a single dash.
    words.find(|word| *word == b"-")?;
    let kind = text(words.next()?);
    let super_options = text(words.nth(1)?);
    Some(Mount { device, root, path, kind, super_options })
}

/// Spaces, tabs, newlines and backslashes are written as a backslash and three octal digits.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((byte, after)) = rest.split_first() {
        match after.split_first_chunk::<3>().map(|(digits, behind)| (octal(digits), behind)) {
            Some((Some(value), behind)) if *byte == b'\\' => {
                plain.push(value);
                rest = behind;
            }
            _ => {
                plain.push(*byte);
                rest = after;
            }
        }
    }
    plain
}

fn octal(digits: &[u8; 3]) -> Option<u8> {
    let all = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let value = digits.iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit.wrapping_sub(b'0')));
    all.then(|| u8::try_from(value).ok()).flatten()
}

/// One mount per device, at its shortest path; those on this machine first, and no more than a sample lists.
fn with_data(mountinfo: &[u8]) -> Vec<Mount> {
    let mut chosen: Vec<Mount> = Vec::new();
    for mount in parse(mountinfo).filter(Mount::holds_data) {
        // A later mount on the same path hides the earlier one.
        chosen.retain(|other| other.path != mount.path);
        match chosen.iter_mut().find(|other| other.device == mount.device) {
            Some(other) if other.path.as_os_str().len() <= mount.path.as_os_str().len() => {}
            Some(other) => *other = mount,
            None => chosen.push(mount),
        }
    }
    chosen.sort_by_key(Mount::is_remote);
    chosen.truncate(MAX_LIST);
    chosen
}

/// The table, read again only when the kernel reports a change.
pub struct MountTable {
    file: KernelFile,
}

impl MountTable {
    pub fn new(roots: &Roots) -> Self {
        Self { file: KernelFile::of_long_records(roots.proc.join("self/mountinfo")) }
    }

    /// The mounts with data, the first time and after each change; none otherwise.
    pub fn changed(&mut self) -> io::Result<Option<Vec<Mount>>> {
        if self.file.file().is_some() && !self.was_changed() {
            return Ok(None);
        }
        Ok(Some(with_data(self.file.read()?)))
    }

    /// The kernel flags the open table as exceptional when it changed since it was last read.
    fn was_changed(&self) -> bool {
        let Some(file) = self.file.file() else { return true };
        let mut table = [PollFd::new(file, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let polled = poll(&mut table, Some(&at_once));
        let events = table.first().map_or(PollFlags::empty(), PollFd::revents);
        polled.is_err() || events.intersects(PollFlags::PRI | PollFlags::ERR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
22 27 0:21 / /proc rw,relatime - proc proc rw\n\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
28 27 254:0 /var/lib/data /srv rw,relatime shared:1 master:2 - ext4 /dev/vda rw\n\
29 27 8:17 /sub /mnt/a/very/long/path rw - xfs /dev/sdb1 rw\n\
30 27 8:17 / /mnt/my\\040disk rw - xfs /dev/sdb1 rw\n\
31 27 0:44 / /mnt/nas rw - nfs4 nas:/export rw,vers=4.2\n\
32 27 0:45 / /run rw - tmpfs tmpfs rw\n\
33 27 7:1 / /snap/core rw - squashfs /dev/loop1 ro\n\
34 27 0:46 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw\n\
35 27 8:33 / /data rw - ext4 /dev/sdc1 rw\n\
nonsense\n";

    #[test]
    fn one_row_a_device_at_its_shortest_path_with_remote_ones_last() {
        let chosen = with_data(TABLE);

        let rows: Vec<_> = chosen.iter().map(|mount| (mount.path.to_str().unwrap(), mount.is_remote())).collect();
        assert_eq!(rows, [("/", false), ("/mnt/my disk", false), ("/data", false), ("/mnt/nas", true)]);
    }

    #[test]
    fn images_that_are_always_full_are_not_disks() {
        let table = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      2 1 11:0 / /media/dvd ro - udf /dev/sr0 ro,utf8\n\
                      3 1 8:17 / /media/stick rw - udf /dev/sdb1 rw,utf8\n\
                      4 1 0:60 / /tmp/.mount_krita ro - fuse.krita-5.2.AppImage krita ro,user_id=0\n\
                      5 1 0:61 / /snap/x ro - fuse.squashfuse_ll squashfuse_ll ro,user_id=0\n\
                      6 1 7:1 / /media/iso ro - iso9660 /dev/loop1 ro\n";

        let paths: Vec<_> = with_data(table).into_iter().map(|mount| mount.path).collect();

        assert_eq!(paths, [Path::new("/"), Path::new("/media/stick")]);
    }

    #[test]
    fn a_file_system_that_can_be_written_is_not_read_only_where_a_mount_of_it_is() {
        let table =
            b"1 0 8:1 / /host ro - ext4 /dev/sda1 rw,errors=remount-ro\n2 1 8:2 / /mnt ro - ext4 /dev/sda2 ro\n";

        let read_only: Vec<_> = with_data(table).iter().map(Mount::is_read_only).collect();

        assert_eq!(read_only, [false, true]);
    }

    #[test]
    fn an_overlay_is_shown_where_it_is_the_containers_root() {
        let table = b"1 0 0:50 / / rw - overlay overlay rw\n\
                      2 1 254:0 /etc/hosts /etc/hosts rw - ext4 /dev/vda rw\n\
                      3 1 254:0 /volumes/x /data rw - ext4 /dev/vda rw\n";

        let paths: Vec<_> = with_data(table).into_iter().map(|mount| mount.path).collect();

        assert_eq!(paths, [Path::new("/"), Path::new("/data")]);
    }

    #[test]
    fn the_last_mount_on_a_path_counts() {
        let table = b"1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n2 1 8:2 / /data rw - xfs /dev/sda2 rw\n";

        let devices: Vec<_> = with_data(table).into_iter().map(|mount| mount.device).collect();

        assert_eq!(devices, ["8:2"]);
    }

    #[test]
    fn octal_escapes_are_decoded_and_other_backslashes_kept() {
        let cases: [(&[u8], &[u8]); 5] =
            [(b"a\\040b", b"a b"), (b"\\134", b"\\"), (b"a\\", b"a\\"), (b"\\0", b"\\0"), (b"\\999", b"\\999")];

        for (escaped, plain) in cases {
            assert_eq!(unescape(escaped), plain);
        }
    }

    #[test]
    fn the_real_table_is_read_once_while_nothing_changes() {
        let mut table = MountTable::new(&Roots::default());

        assert!(table.changed().unwrap().is_some_and(|mounts| !mounts.is_empty()));
        assert_eq!(table.changed().unwrap(), None);
    }
}
