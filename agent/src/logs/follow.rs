//! Follows a growing file: its last lines, then each new one, across both kinds of rotation.
//!
//! The file is checked repeatedly, quickly while something happens and four times a second while nothing does. A renamed file
//! is read until it has been quiet for a while, because its writer may continue until it is notified; then the file that has
//! the name now is read from its beginning. A truncated file is read from its beginning: the last bytes that were read are
//! stored and compared, so that a file which has grown beyond them again is noticed, too. What was written between the last
//! check and a truncation is lost, and so is a file that existed only between two checks.
//!
//! A reader that is far behind skips to near the end and reports how many lines it omitted.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::Item;
use super::backwards::{FARTHEST, count_lines, tail_start};
use super::error::LogError;
use super::lines::{MAX_LINE_BYTES, Splitter, file_line};
use super::location::Location;

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;
/// What a thread needs in addition to its buffers on the heap, with room to spare.
const STACK_BYTES: usize = 256 * 1024;
/// How long to wait for more, at first and at most.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// A renamed file is left when nothing has come for this long, or after the second time in any case.
const QUIET: Duration = Duration::from_secs(1);
const LONGEST_FAREWELL: Duration = Duration::from_secs(10);
/// A reader that is further behind than this skips ...
const FAR_BEHIND: u64 = FARTHEST;
/// ... to this distance from the end.
const SKIPPED_TO: u64 = 1024 * 1024;
/// Lines are counted in this much of what is skipped; those of the rest are estimated from it.
const MAX_COUNTED: u64 = 64 * 1024 * 1024;
/// How many of the last bytes are stored.
const REMEMBERED: usize = 64;

/// Follows a file on a thread of its own. Ends when nobody receives the items any more, or with an error.
pub async fn follow(
    place: Location,
    tail: u32,
    threads: Arc<Semaphore>,
    items: mpsc::Sender<Item>,
) -> Result<(), LogError> {
    let permit = threads.try_acquire_owned().map_err(|_| LogError::Busy)?;
    on_a_thread(permit, move || FileFollower::open(place, tail)?.run(&items)).await
}

/// Runs `work` on a thread that holds `permit` until it is done, however long a file system hangs.
pub async fn on_a_thread<T: Send + 'static>(
    permit: OwnedSemaphorePermit,
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    let (done, is_done) = oneshot::channel();
    let thread = thread::Builder::new().name("log".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || {
        let outcome = work();
        // Before the outcome is there: what follows it may need a thread of its own.
        drop(permit);
        // Nobody waits any more when the stream was stopped.
        _ = done.send(outcome);
    })?;
    is_done.await.unwrap_or(Err(LogError::Ended))
}

struct FileFollower {
    place: Location,
    file: File,
    /// The offset up to which the file was read.
    offset: u64,
    /// The bytes before that.
    remembered: Vec<u8>,
    splitter: Splitter,
    farewell: Option<Farewell>,
}

/// The file was renamed.
struct Farewell {
    successor: File,
    since: Instant,
    last_read: Instant,
}

impl Farewell {
    fn is_over(&self) -> bool {
        self.last_read.elapsed() >= QUIET || self.since.elapsed() >= LONGEST_FAREWELL
    }
}

/// Whether a check of the file's surroundings changed what is to be read.
#[derive(PartialEq, Eq)]
enum Look {
    Same,
    Moved,
}

impl FileFollower {
    fn open(place: Location, tail: u32) -> Result<Self, LogError> {
        let file = place.open()?;
        let offset = tail_start(&file, file.metadata()?.len(), tail)?;
        let splitter = Splitter::new(MAX_LINE_BYTES);
        let mut follower = Self { place, file, offset, remembered: Vec::new(), splitter, farewell: None };
        follower.remember_from_file()?;
        Ok(follower)
    }

    fn run(mut self, items: &mpsc::Sender<Item>) -> Result<(), LogError> {
        let mut buffer = vec![0; REMEMBERED + CHUNK];
        let mut pause = SHORTEST_PAUSE;
        while !items.is_closed() {
            if !self.catch_up(items)? {
                return Ok(());
            }
            let fresh = self.read(&mut buffer)?;
            if !fresh.is_empty() {
                if !self.deliver(fresh, items) {
                    return Ok(());
                }
                pause = SHORTEST_PAUSE;
            } else if self.look(items)? == Look::Moved {
                pause = SHORTEST_PAUSE;
            } else {
                wait(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        Ok(())
    }

    /// Reads what follows the last byte read. Starts over where the file was truncated.
    fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let known = self.remembered.len();
        let count = self.file.read_at(buffer, self.offset.saturating_sub(known as u64))?;
        if buffer.get(..count).is_some_and(|bytes| bytes.starts_with(&self.remembered)) {
            return Ok(buffer.get(known..count).unwrap_or_default());
        }
        self.begin_anew();
        let count = self.file.read_at(buffer, 0)?;
        Ok(buffer.get(..count).unwrap_or_default())
    }

    fn begin_anew(&mut self) {
        self.offset = 0;
        self.remembered.clear();
    }

    /// Passes lines on, waiting while there is no room for them. False: nobody receives them any more.
    fn deliver(&mut self, fresh: &[u8], items: &mpsc::Sender<Item>) -> bool {
        if self.offset == 0
            && let Some(unfinished) = self.splitter.rest()
            && items.blocking_send(Item::Line(file_line(unfinished))).is_err()
        {
            return false;
        }
        let mut rest = fresh;
        while let Some(line) = self.splitter.next(&mut rest) {
            if items.blocking_send(Item::Line(file_line(line))).is_err() {
                return false;
            }
        }
        self.offset += fresh.len() as u64;
        self.remember(fresh);
        if let Some(farewell) = &mut self.farewell {
            farewell.last_read = Instant::now();
        }
        true
    }

    fn remember(&mut self, fresh: &[u8]) {
        self.remembered.extend_from_slice(fresh);
        let surplus = self.remembered.len().saturating_sub(REMEMBERED);
        self.remembered.drain(..surplus);
    }

    fn remember_from_file(&mut self) -> io::Result<()> {
        let begin = self.offset.saturating_sub(REMEMBERED as u64);
        let mut bytes = vec![0; usize::try_from(self.offset - begin).unwrap_or_default()];
        let count = self.file.read_at(&mut bytes, begin)?;
        bytes.truncate(count);
        self.remembered = bytes;
        Ok(())
    }

    /// Skips to near the end when that is too far away. False: nobody receives the lines any more.
    fn catch_up(&mut self, items: &mpsc::Sender<Item>) -> Result<bool, LogError> {
        let size = self.file.metadata()?.len();
        if size.saturating_sub(self.offset) <= FAR_BEHIND {
            return Ok(true);
        }
        let target = first_line_after(&self.file, size - SKIPPED_TO, size)?;
        let dropped = lines_between(&self.file, self.offset, target)?;
        // The line that had begun is among those that end in what is skipped.
        _ = self.splitter.rest();
        self.offset = target;
        self.remember_from_file()?;
        Ok(items.blocking_send(Item::Dropped(dropped)).is_ok())
    }

    /// Checks whether another file has the name now, once there is nothing left to read.
    fn look(&mut self, items: &mpsc::Sender<Item>) -> Result<Look, LogError> {
        if self.farewell.as_ref().is_some_and(Farewell::is_over)
            && let Some(farewell) = self.farewell.take()
        {
            self.file = farewell.successor;
            self.begin_anew();
            let unfinished = self.splitter.rest();
            // The loop notices when nobody receives.
            _ = unfinished.map(|line| items.blocking_send(Item::Line(file_line(line))));
            return Ok(Look::Moved);
        }
        if self.farewell.is_none()
            && let Ok(named) = self.place.open()
            && !is_same(&self.file, &named)?
        {
            let now = Instant::now();
            self.farewell = Some(Farewell { successor: named, since: now, last_read: now });
        }
        Ok(Look::Same)
    }
}

/// Pauses this thread, which serves nothing else.
#[expect(clippy::disallowed_methods, reason = "no worker thread is blocked")]
fn wait(pause: Duration) {
    thread::sleep(pause);
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Where the first line after `begin` begins; `end` when none does.
fn first_line_after(file: &File, mut begin: u64, end: u64) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK];
    while begin < end {
        let count = file.read_at(&mut buffer, begin)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if let Some(at) = memchr::memchr(b'\n', bytes) {
            return Ok(begin + at as u64 + 1);
        }
        if count == 0 {
            break;
        }
        begin += count as u64;
    }
    Ok(end)
}

/// How many lines end between two offsets: counted where they are near, estimated beyond that.
fn lines_between(file: &File, begin: u64, end: u64) -> io::Result<u64> {
    let counted_to = end.min(begin + MAX_COUNTED);
    let counted = count_lines(file, begin, counted_to)?;
    let share = end.saturating_sub(begin) as f64 / counted_to.saturating_sub(begin).max(1) as f64;
    Ok(if counted_to == end { counted } else { (counted as f64 * share) as u64 })
}
