//! Commands on the disk, so that a result outlives the agent and no command runs twice.
//!
//! One file per command, named by its id, of up to three records: `Begun` before the shell starts, `Spawned` right after it,
//! `Ended` with result and output before the result is first sent. A record that a kill truncated counts as not written. A command
//! that came when the agent could not answer any more has `Refused` alone: it never begins, and the next start refuses it.
//!
//! What was written survives the agent's end, not a power cut, because nothing is synced on the way (a sync costs more than the
//! shell). Nor is that necessary: after a power cut nothing of a command runs any more, nothing runs it again, and the service
//! reports it as lost. A result waits for the service only while the service is away, so it is synced when it was not
//! acknowledged within a second. Between the start of a shell and `Spawned` are some ten microseconds. An agent that is killed
//! within them later reports the command as lost but does not know what to end. The same is true for a shell that ended while
//! no agent ran: its number may belong to another process, so what it left in the background keeps running.
//!
//! All of this waits for the disk, so [`super::records`] runs it on a thread of its own.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signalbox_protocol::agent::{CommandResult, RequestError};
use signalbox_protocol::codec::MAX_DEPTH;
use uuid::Uuid;

use super::output::{Output, Piece};
use crate::process::Identity;
use crate::state::{OpenError, StateDir, close_to_others};

/// Output is kept up to 1 MiB; a hundred thousand changes between the streams would make it several times as long.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// Length and checksum.
const HEAD_BYTES: usize = 8;

#[derive(Debug, Serialize, Deserialize)]
enum Record {
    Begun { boot_id: String },
    Spawned(Identity),
    Ended { result: CommandResult, pieces: Vec<Piece> },
    Refused(RequestError),
}

#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    boot_id: String,
}

/// How a command ended.
#[derive(Debug, Clone)]
pub struct Ended {
    pub result: CommandResult,
    pub pieces: Vec<Piece>,
}

/// What an earlier run of the agent left of a command.
#[derive(Debug)]
pub enum RecoveredJob {
    Ended {
        result: CommandResult,
        output: Output,
    },
    /// It ran when the agent was killed. With its shell, unless the machine has rebooted since.
    Unfinished(Option<Identity>),
    /// It never began.
    Refused(RequestError),
}

impl Journal {
    /// Creates the directory. Only the agent may read it, because commands print secrets.
    pub fn open(state: &StateDir, proc: &Path) -> Result<Self, OpenError> {
        let dir = directory(state.claim()?);
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        close_to_others(&dir);
        let boot_id = fs::read_to_string(proc.join("sys/kernel/random/boot_id")).unwrap_or_default();
        Ok(Self { dir, boot_id })
    }

    /// Records that a command is about to start.
    pub fn begin(&self, command_id: Uuid) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(self.path(command_id))?;
        write(&mut file, &self.begun())
    }

    /// Records its shell. It adds nothing to a file without a beginning.
    pub fn spawned(&self, command_id: Uuid, shell: Identity) -> io::Result<()> {
        write(&mut self.append_to(command_id)?, &Record::Spawned(shell))
    }

    /// Records its end.
    pub fn ended(&self, command_id: Uuid, ended: Ended) -> io::Result<()> {
        write(&mut self.append_to(command_id)?, &ended.into())
    }

    /// Records that a command never begins. An error where it has a file.
    pub fn refused(&self, command_id: Uuid, refusal: RequestError) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(self.path(command_id))?;
        write(&mut file, &Record::Refused(refusal))
    }

    /// Writes all records of a command again, whatever its file contains.
    pub fn rewrite(&self, command_id: Uuid, shell: Option<Identity>, ended: Option<Ended>) -> io::Result<()> {
        self.remove(command_id);
        self.begin(command_id)?;
        shell.map_or(Ok(()), |identity| self.spawned(command_id, identity))?;
        ended.map_or(Ok(()), |end| self.ended(command_id, end))
    }

    pub fn remove(&self, command_id: Uuid) {
        if let Err(error) = fs::remove_file(self.path(command_id))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, job.id = %command_id, "cannot remove a command from the journal");
        }
    }

    /// What earlier runs left, in the order of the ids, at most `most`. Damaged files are removed. One that cannot be read at
    /// present stays for the next start.
    pub fn load(&self, most: usize) -> io::Result<Vec<(Uuid, RecoveredJob)>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            ids.extend(name.to_str().and_then(|name| Uuid::parse_str(name).ok()));
        }
        ids.sort_unstable();
        // The newest `most` count; the service gave up the others long ago.
        let too_many = ids.len().saturating_sub(most);
        ids.drain(..too_many).for_each(|id| self.remove(id));
        let found = ids.into_iter().filter_map(|id| Some((id, self.read(id)?)));
        Ok(found.collect())
    }

    fn read(&self, command_id: Uuid) -> Option<RecoveredJob> {
        match self.read_file(command_id) {
            Ok(bytes) => {
                let found = self.recover(&bytes);
                if found.is_none() {
                    tracing::warn!(job.id = %command_id, "removing a damaged command from the journal");
                    self.remove(command_id);
                }
                found
            }
            Err(error) => {
                tracing::warn!(
                    %error, job.id = %command_id,
                    "cannot read a command in the journal: the next start tries again"
                );
                None
            }
        }
    }

    fn read_file(&self, command_id: Uuid) -> io::Result<Vec<u8>> {
        close_to_others(&self.path(command_id));
        let mut bytes = Vec::new();
        File::open(self.path(command_id))?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// What the records of a file say; none where not even the first is whole.
    fn recover(&self, bytes: &[u8]) -> Option<RecoveredJob> {
        let (mut rest, mut runs_here, mut shell) = (bytes, None, None);
        while let Some((record, behind)) = split(rest) {
            rest = behind;
            match record {
                Record::Begun { boot_id } => runs_here = Some(boot_id == self.boot_id),
                Record::Spawned(identity) => shell = Some(identity),
                Record::Ended { result, pieces } => {
                    return Some(RecoveredJob::Ended { result, output: Output::of(&pieces) });
                }
                Record::Refused(refusal) => return Some(RecoveredJob::Refused(refusal)),
            }
        }
        Some(RecoveredJob::Unfinished(shell.filter(|_| runs_here == Some(true)))).filter(|_| runs_here.is_some())
    }

    fn begun(&self) -> Record {
        Record::Begun { boot_id: self.boot_id.clone() }
    }

    fn append_to(&self, command_id: Uuid) -> io::Result<File> {
        OpenOptions::new().append(true).open(self.path(command_id))
    }

    fn path(&self, command_id: Uuid) -> PathBuf {
        self.dir.join(command_id.to_string())
    }
}

impl From<Ended> for Record {
    fn from(Ended { result, pieces }: Ended) -> Self {
        Self::Ended { result, pieces }
    }
}

/// The directory of the commands within the state directory.
fn directory(state: &Path) -> PathBuf {
    state.join("commands")
}

/// Syncs a command's file to the disk. Takes milliseconds.
pub fn sync(state: &Path, command_id: Uuid) -> io::Result<()> {
    let dir = directory(state);
    File::open(dir.join(command_id.to_string()))?.sync_data()?;
    File::open(&dir)?.sync_all()
}

fn write(file: &mut File, record: &Record) -> io::Result<()> {
    let mut bytes = vec![0; HEAD_BYTES];
    let mut serializer = rmp_serde::Serializer::new(&mut bytes).with_struct_map().with_human_readable();
    record.serialize(&mut serializer).map_err(io::Error::other)?;
    let (head, payload) = bytes.split_at_mut(HEAD_BYTES);
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    head.copy_from_slice(&[length.to_le_bytes(), crc32fast::hash(payload).to_le_bytes()].concat());
    file.write_all(&bytes)
}

/// Returns the first record and the rest. None at the end, and where a kill truncated the file.
fn split(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let (payload, behind) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    if crc32fast::hash(payload) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(payload).with_human_readable();
    deserializer.set_max_depth(MAX_DEPTH);
    Some((Record::deserialize(&mut deserializer).ok()?, behind))
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::agent::Stream;
    use tempfile::TempDir;

    use super::*;

    const ID: Uuid = Uuid::from_u128(7);
    const SHELL: Identity = Identity { pid: 4711, started_at: 12 };

    fn journal() -> (TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&StateDir::new(dir.path()), Path::new("/proc")).unwrap();
        (dir, journal)
    }

    fn result() -> CommandResult {
        CommandResult { command_id: ID, status: "failed".into(), exit_code: Some(3), duration_ms: 12, truncated: false }
    }

    /// Result and pieces of an ended command, or the shell of another.
    fn only(journal: &Journal) -> (Option<(CommandResult, Vec<Piece>)>, Option<Identity>) {
        match journal.load(64).unwrap().pop().expect("one command") {
            (ID, RecoveredJob::Ended { result, output }) => (Some((result, output.pieces())), None),
            (ID, RecoveredJob::Unfinished(shell)) => (None, shell),
            (other, _) => panic!("{other}"),
        }
    }

    #[test]
    fn an_ended_command_is_found_with_its_output_until_it_is_removed() {
        let (dir, journal) = journal();
        let mut output = Output::default();
        output.push(Stream::Stdout, "hello\n");
        output.push(Stream::Stderr, "wörld\n");
        journal.begin(ID).unwrap();
        journal.spawned(ID, SHELL).unwrap();
        journal.ended(ID, Ended { result: result(), pieces: output.pieces() }).unwrap();

        sync(dir.path(), ID).unwrap();

        assert_eq!(only(&journal), (Some((result(), output.pieces())), None));
        journal.remove(ID);
        journal.remove(ID);
        assert!(journal.load(64).unwrap().is_empty());
    }

    #[test]
    fn a_command_that_ran_is_found_with_its_shell_only_in_the_same_boot() {
        let (_dir, mut journal) = journal();
        journal.begin(ID).unwrap();
        journal.spawned(ID, SHELL).unwrap();

        assert_eq!(only(&journal), (None, Some(SHELL)));
        journal.boot_id = "another".into();
        assert_eq!(only(&journal), (None, None));
    }

    #[test]
    fn a_refused_command_is_found_with_its_refusal_and_one_that_began_is_not_refused() {
        let (_dir, journal) = journal();
        let refusal = RequestError::new("agent_busy", "the agent ended");

        journal.refused(ID, refusal.clone()).unwrap();
        let found = journal.load(64).unwrap();
        journal.remove(ID);
        journal.begin(ID).unwrap();
        let too_late = journal.refused(ID, refusal.clone());

        assert!(matches!(found.as_slice(), [(ID, RecoveredJob::Refused(error))] if *error == refusal), "{found:?}");
        assert_eq!(too_late.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(only(&journal), (None, None));
    }

    #[test]
    fn a_truncated_file_has_its_whole_records() {
        let (_dir, journal) = journal();
        journal.begin(ID).unwrap();
        let begun = fs::read(journal.path(ID)).unwrap().len();
        journal.spawned(ID, SHELL).unwrap();
        let spawned = fs::read(journal.path(ID)).unwrap().len();
        journal.ended(ID, Ended { result: result(), pieces: Vec::new() }).unwrap();
        let whole = fs::read(journal.path(ID)).unwrap();

        for length in begun..whole.len() {
            fs::write(journal.path(ID), &whole[..length]).unwrap();
            assert_eq!(only(&journal), (None, (length >= spawned).then_some(SHELL)), "{length}");
        }
        fs::write(journal.path(ID), &whole[..begun - 1]).unwrap();
        assert!(journal.load(64).unwrap().is_empty());
        assert!(!journal.path(ID).exists(), "what says nothing is removed");
    }

    #[test]
    fn damaged_files_and_those_beyond_the_bound_are_removed() {
        let (_dir, journal) = journal();
        for number in 0..4 {
            journal.begin(Uuid::from_u128(number)).unwrap();
        }
        fs::write(journal.path(Uuid::from_u128(3)), [0xff; 100]).unwrap();

        let ids: Vec<Uuid> = journal.load(3).unwrap().into_iter().map(|(id, _)| id).collect();

        assert_eq!(ids, [Uuid::from_u128(1), Uuid::from_u128(2)]);
        assert!(!journal.path(Uuid::from_u128(0)).exists());
    }

    #[test]
    fn a_file_that_cannot_be_read_stays_for_a_later_start() {
        let (dir, journal) = journal();
        journal.begin(ID).unwrap();
        journal.ended(ID, Ended { result: result(), pieces: Vec::new() }).unwrap();
        let (path, contents) = (journal.path(ID), dir.path().join("contents"));
        fs::rename(&path, &contents).unwrap();
        // Not even root can open a link to itself.
        std::os::unix::fs::symlink(&path, &path).unwrap();

        let found = journal.load(64).unwrap();
        let stays = path.symlink_metadata().is_ok();
        fs::rename(&contents, &path).unwrap();

        assert!(found.is_empty(), "{found:?}");
        assert!(stays, "it was removed");
        assert_eq!(only(&journal), (Some((result(), vec![])), None));
    }

    #[test]
    fn a_rewritten_file_has_nothing_of_before() {
        let (_dir, journal) = journal();
        fs::write(journal.path(ID), [0xff; 100]).unwrap();

        journal.rewrite(ID, Some(SHELL), None).unwrap();
        let running = only(&journal);
        journal.rewrite(ID, None, Some(Ended { result: result(), pieces: Vec::new() })).unwrap();

        assert_eq!(running, (None, Some(SHELL)));
        assert_eq!(only(&journal), (Some((result(), vec![])), None));
    }

    #[test]
    fn nobody_else_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, journal) = journal();
        journal.begin(ID).unwrap();

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;

        assert_eq!((mode(&journal.dir), mode(&journal.path(ID))), (0o700, 0o600));
    }
}
