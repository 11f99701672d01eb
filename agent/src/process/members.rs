//! Which processes belong to a group, and how all of them are ended.
//!
//! A process that starts a session of its own leaves the group: daemons do so, and are not ended. A process that has ended and
//! was not reaped still has its number; it counts as gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout};

/// How long to wait for the effect of SIGKILL: only a process that hangs in the kernel takes longer.
const KILLED: Duration = Duration::from_secs(1);
/// How long a look may take: longer than on any busy machine. Name lookups that hang hold all threads, so that nothing can look.
const LOOK: Duration = Duration::from_secs(5);
/// A look reads every process's state, so looks become less frequent.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// Distinguishes a process from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// In clock ticks since boot.
    pub started_at: u64,
}

impl Identity {
    /// The identity of the process that has this number now.
    pub fn of(proc: &Path, pid: Pid) -> Option<Self> {
        let pid = pid.as_raw_nonzero().get();
        let stat = fs::read(proc.join(pid.to_string()).join("stat")).ok()?;
        Some(Self { pid, started_at: parse(&stat)?.started_at })
    }

    /// The process's number, if it is still the same process.
    pub fn still(self, proc: &Path) -> Option<Pid> {
        let pid = Pid::from_raw(self.pid)?;
        (Self::of(proc, pid) == Some(self)).then_some(pid)
    }
}

/// Ends every process of a group: asks them first, and ends by force what is left after `grace`. Returns when none is left.
pub async fn terminate(proc: &Path, group: Pid, grace: Duration) {
    // A failure means that there is nothing to end, or that it belongs to another user.
    let _ = kill_process_group(group, Signal::TERM);
    // A stopped process acts on a signal only when it continues.
    let _ = kill_process_group(group, Signal::CONT);
    if is_gone_within(proc, group, grace).await {
        return;
    }
    let _ = kill_process_group(group, Signal::KILL);
    is_gone_within(proc, group, KILLED).await;
}

async fn is_gone_within(proc: &Path, group: Pid, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    let mut pause = FIRST_LOOK;
    while is_alive(proc, group, None).await.unwrap_or(true) {
        if Instant::now() >= end {
            return false;
        }
        sleep_until(end.min(Instant::now() + pause)).await;
        pause *= 2;
    }
    true
}

/// Whether any process of this group is alive; of a single session where that is given. `None` if that cannot be seen.
pub async fn is_alive(proc: &Path, group: Pid, session: Option<Pid>) -> Option<bool> {
    let (proc, group, session) = (proc.to_owned(), number(group), session.map(number));
    // A machine may have many thousands of processes: reading them must not block everything else.
    let look = tokio::task::spawn_blocking(move || has_member(&proc, group, session));
    let looked = timeout(LOOK, look).await;
    if !matches!(looked, Ok(Ok(_))) {
        tracing::warn!("cannot look for the processes of a group");
    }
    looked.ok()?.ok()
}

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

fn has_member(proc: &PathBuf, group: i32, session: Option<i32>) -> bool {
    let Ok(entries) = fs::read_dir(proc) else { return false };
    let pids = entries.flatten().map(|entry| entry.path()).filter(|path| is_process(path));
    let mut stats = pids.filter_map(|path| fs::read(path.join("stat")).ok()).filter_map(|stat| parse(&stat));
    stats.any(|stat| stat.is_alive && stat.group == group && session.is_none_or(|session| session == stat.session))
}

fn is_process(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    is_alive: bool,
    group: i32,
    session: i32,
    started_at: u64,
}

/// Reads `/proc/PID/stat` (proc(5)). A program's name may contain spaces and parentheses; the interesting fields follow it.
fn parse(line: &[u8]) -> Option<Stat> {
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    let is_alive = !matches!(*fields.first()?, "Z" | "X" | "x");
    let [group, session] = [fields.get(2)?, fields.get(3)?].map(|field| field.parse().ok());
    Some(Stat { is_alive, group: group?, session: session?, started_at: fields.get(19)?.parse().ok()? })
}

/// Waits until no process of the group is alive, for tests.
#[cfg(test)]
pub async fn gone(group: Pid) {
    while is_alive(Path::new("/proc"), group, None).await.unwrap_or(true) {
        tokio::time::sleep(FIRST_LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "4711 (a) S 1 (b) S 1 4712 4713 0 -1 4194560 918 0 2 0 250 75 9 9 20 0 1 0 880123 12345678 512\n";

    #[test]
    fn a_stat_line_says_group_session_and_start_whatever_the_name() {
        let expected = Stat { is_alive: true, group: 4712, session: 4713, started_at: 880_123 };

        assert_eq!(parse(LINE.as_bytes()), Some(expected));
        assert_eq!(parse(LINE.replace(") S 1 4712", ") Z 1 4712").as_bytes()).map(|stat| stat.is_alive), Some(false));
        assert_eq!(parse(b"4711 (sh) S 1 4712"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn a_process_is_itself_and_no_later_one() {
        let proc = Path::new("/proc");
        let own = Identity::of(proc, rustix::process::getpid()).unwrap();

        assert_eq!(own.still(proc), Some(rustix::process::getpid()));
        assert_eq!(Identity { started_at: own.started_at + 1, ..own }.still(proc), None);
        assert_eq!(Identity { pid: i32::MAX, ..own }.still(proc), None);
    }
}
