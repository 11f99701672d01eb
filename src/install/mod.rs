//! The agent programs that this service offers for download, with their checksums.
//!
//! A program is a file `signalbox-agent-<os>-<arch>` in one directory, or for this service's own platform the file
//! `signalbox-agent` next to its executable. Files may be replaced while the service runs: each checksum is stored with
//! a stamp of the file, and computed once for each stamp.

mod download;
mod release;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use signalbox_protocol::agent::program_arch;
use tokio::sync::Mutex;

pub use self::download::{Download, Limits};
pub use self::release::OfferedRelease;
use crate::shares::Permit;

/// The beginning of every program's name.
const PROGRAM: &str = "signalbox-agent";

/// Bytes that are read from a file at a time.
const CHUNK: usize = 64 * 1024;

/// The most files of a directory that are listed, because the directory may contain anything.
const MAX_LISTED: usize = 64;

/// The longest name of an operating system or architecture.
const LONGEST_WORD: usize = 16;

/// The platform of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    pub os: String,
    pub arch: String,
}

impl Platform {
    /// The platform in a program's name. No valid name leads out of the directory.
    pub fn of_program(name: &str) -> Option<Self> {
        let (os, arch) = name.strip_prefix(PROGRAM)?.strip_prefix('-')?.split_once('-')?;
        let is_word = |text: &str, more: &[u8]| {
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || more.contains(&byte);
            (1..=LONGEST_WORD).contains(&text.len()) && text.bytes().all(fits)
        };
        (is_word(os, b"") && is_word(arch, b"_")).then(|| Self { os: os.to_owned(), arch: arch.to_owned() })
    }

    /// The name of the program for this platform.
    pub fn program(&self) -> String {
        format!("{PROGRAM}-{}-{}", self.os, self.arch)
    }

    /// This service's own platform, with the architecture as in `uname -m`, which `install.sh` uses.
    fn own() -> Self {
        Self { os: std::env::consts::OS.to_owned(), arch: program_arch().to_owned() }
    }
}

/// An available program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub platform: Platform,
    pub bytes: u64,
    /// In hexadecimal digits.
    pub sha256: String,
}

/// The programs. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Programs {
    shelf: Arc<Shelf>,
    /// Only one task at a time reads the files, so that a thousand concurrent requests compute one checksum.
    known: Arc<Mutex<Known>>,
    limits: Limits,
}

/// What is known about the files.
#[derive(Debug, Default)]
struct Known {
    checksums: HashMap<Platform, (Stamp, String)>,
    /// Unreadable files, each logged only once: clients may ask as often as they like.
    unreadable: HashSet<PathBuf>,
    /// The last release that could not be offered, logged only once as well.
    faulty_release: Option<Stamp>,
}

/// Where the programs are.
#[derive(Debug)]
struct Shelf {
    directory: Option<PathBuf>,
    own: Option<PathBuf>,
}

/// Distinguishes the versions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// A program that is about to be downloaded.
#[derive(Debug)]
pub struct Opened {
    pub program: Program,
    file: File,
}

/// Why a program is not available now.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the agents' programs: {0}")]
pub struct InstallError(#[from] io::Error);

impl Programs {
    /// The programs of a directory, or of the directory `agents` next to the executable.
    pub fn new(directory: Option<PathBuf>, limits: Limits) -> Self {
        let beside = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned));
        let shelf = Shelf {
            directory: directory.or_else(|| beside.as_ref().map(|beside| beside.join("agents"))),
            own: beside.map(|beside| beside.join(PROGRAM)),
        };
        Self { shelf: Arc::new(shelf), known: Arc::default(), limits }
    }

    /// All programs, sorted by platform.
    pub async fn list(&self) -> Result<Vec<Program>, InstallError> {
        self.look(|shelf, known| {
            let opened = shelf.platforms().into_iter().map(|platform| shelf.open(platform, known));
            opened.filter_map(|opened| opened.map(|opened| opened.map(|it| it.program)).transpose()).collect()
        })
        .await
    }

    /// The program for a platform, if there is one.
    pub async fn find(&self, platform: Platform) -> Result<Option<Opened>, InstallError> {
        self.look(|shelf, known| shelf.open(platform, known)).await
    }

    /// Runs on a blocking thread. The guard goes with it: if the client disconnects, the next caller still waits until
    /// it is done.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Shelf, &mut Known) -> io::Result<T> + Send + 'static,
    ) -> Result<T, InstallError> {
        let (shelf, mut known) = (self.shelf.clone(), self.known.clone().lock_owned().await);
        let looked = tokio::task::spawn_blocking(move || look(&shelf, &mut known)).await;
        Ok(looked.map_err(io::Error::other)??)
    }

    /// Starts a download, which keeps its place among the downloads until it ends or takes too long.
    pub fn download(&self, opened: Opened, place: Permit) -> Download {
        Download::new(opened.file, opened.program.bytes, place, self.limits.clone())
    }
}

impl Shelf {
    /// The platforms whose programs may exist.
    fn platforms(&self) -> Vec<Platform> {
        let entries = self.directory.as_ref().and_then(|directory| std::fs::read_dir(directory).ok());
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let listed = names.filter_map(|name| Platform::of_program(name.to_str()?)).take(MAX_LISTED);
        let mut platforms: Vec<Platform> = listed.chain([Platform::own()]).collect();
        platforms.sort_unstable();
        platforms.dedup();
        platforms
    }

    fn open(&self, platform: Platform, known: &mut Known) -> io::Result<Option<Opened>> {
        let in_directory = self.directory.as_ref().map(|directory| directory.join(platform.program()));
        let own = self.own.clone().filter(|_| platform == Platform::own());
        for path in in_directory.into_iter().chain(own) {
            let Some(mut file) = open(&path, known)? else { continue };
            let stamp = Stamp::of(&file)?;
            let sha256 = match known.checksums.get(&platform) {
                Some((of, sha256)) if *of == stamp => sha256.clone(),
                _ => {
                    let sha256 = digest(&mut file)?;
                    known.checksums.insert(platform.clone(), (stamp, sha256.clone()));
                    sha256
                }
            };
            let program = Program { platform, bytes: stamp.bytes, sha256 };
            return Ok(Some(Opened { program, file }));
        }
        Ok(None)
    }
}

/// Opens a regular file. A link may lead anywhere, and a pipe would never answer.
///
/// An unreadable file counts as missing: the others are still available.
fn open(path: &Path, known: &mut Known) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(error @ (Errno::ACCESS | Errno::PERM)) => {
            if known.unreadable.len() < MAX_LISTED && known.unreadable.insert(path.to_owned()) {
                tracing::warn!(path = %path.display(), %error, "cannot read an agent's program, so it is not available");
            }
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { inode: metadata.ino(), bytes: metadata.len(), modified: (metadata.mtime(), metadata.mtime_nsec()) })
    }
}

/// The SHA-256 of the whole file, which is then rewound.
fn digest(file: &mut File) -> io::Result<String> {
    let (mut hasher, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            break;
        }
        hasher.update(chunk.get(..length).unwrap_or_default());
    }
    io::Seek::rewind(file)?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_is_its_platform() {
        let platform = Platform::of_program("signalbox-agent-linux-x86_64").unwrap();

        assert_eq!((platform.os.as_str(), platform.arch.as_str()), ("linux", "x86_64"));
        assert_eq!(platform.program(), "signalbox-agent-linux-x86_64");
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_programs() {
        let names = [
            "signalbox-agent",
            "signalbox-agent-linux",
            "signalbox-agent-linux-",
            "signalbox-agent-linux-..",
            "signalbox-agent-linux-x86_64.sha256",
            "signalbox-agent-linux-x86_64/../../etc/passwd",
            "signalbox-agent-../-x",
            "signalbox-agent-linux-X86",
            "signalbox-agent-linux-x86_64\0",
            "signalbox-agent-linux-aaaaaaaaaaaaaaaaa",
            "../signalbox-agent-linux-x86_64",
        ];
        for name in names {
            assert_eq!(Platform::of_program(name), None, "{name}");
        }
    }

    #[test]
    fn this_services_own_platform_has_a_name() {
        let own = Platform::own();

        assert_eq!(Platform::of_program(&own.program()), Some(own));
    }

    #[tokio::test]
    async fn links_pipes_and_directories_are_no_programs() {
        let directory = tempfile::tempdir().unwrap();
        let at = |arch: &str| directory.path().join(format!("signalbox-agent-linux-{arch}"));
        std::fs::write(at("plain"), "program").unwrap();
        std::os::unix::fs::symlink(at("plain"), at("link")).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let programs = Programs::new(Some(directory.path().to_owned()), Limits::default());

        let listed = programs.list().await.unwrap();

        let architectures: Vec<&str> = listed.iter().map(|program| program.platform.arch.as_str()).collect();
        assert_eq!(architectures, ["plain"]);
    }

    #[tokio::test]
    async fn a_replaced_file_gets_a_new_checksum() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signalbox-agent-linux-riscv64");
        let programs = Programs::new(Some(directory.path().to_owned()), Limits::default());
        let mut checksums = Vec::new();

        for content in ["one", "two"] {
            std::fs::write(directory.path().join("new"), content).unwrap();
            std::fs::rename(directory.path().join("new"), &path).unwrap();
            let platform = Platform::of_program("signalbox-agent-linux-riscv64").unwrap();
            checksums.push(programs.find(platform).await.unwrap().unwrap().program.sha256);
        }

        // The checksums that sha256sum prints.
        assert_eq!(
            checksums,
            [
                "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
                "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
            ]
        );
    }
}
