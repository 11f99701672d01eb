//! A child that leads a process group.
//!
//! It is reaped last: until then its number belongs to no other process, so that a signal to its group never reaches a
//! stranger.

use std::io;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use super::members::{Identity, terminate};

/// Dropped before [`Group::end`], it kills the whole group.
#[derive(Debug)]
pub struct Group {
    id: Pid,
    /// None once it is reaped.
    leader: Option<Leader>,
}

#[derive(Debug)]
struct Leader {
    child: Child,
    /// Signals that some child has died. (A pidfd would say which, but kernels before 5.3 have none.)
    deaths: SignalStream,
}

impl Group {
    /// Starts the leader. `spawn` must make it the leader of a group or of a session.
    pub fn start(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Self> {
        // Before the child, or its death could be missed.
        let deaths = signal(SignalKind::child())?;
        let child = spawn()?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { id, leader: Some(Leader { child, deaths }) })
    }

    pub fn id(&self) -> Pid {
        self.id
    }

    pub fn identity(&self, proc: &Path) -> Option<Identity> {
        Identity::of(proc, self.id)
    }

    /// The leader, for its pipes.
    pub fn child(&mut self) -> Option<&mut Child> {
        self.leader.as_mut().map(|leader| &mut leader.child)
    }

    /// Resolves when the leader has ended, whether or not the others have.
    pub async fn exited(&mut self) {
        let Some(leader) = &mut self.leader else { return };
        while !has_exited(self.id) {
            if leader.deaths.recv().await.is_none() {
                return;
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        if self.leader.is_some() {
            // A failure means that nothing is left to signal.
            let _ = kill_process_group(self.id, signal);
        }
    }

    /// Ends the leader and every process of its group, by force after `grace`.
    pub async fn terminate(&self, proc: &Path, grace: Duration) {
        terminate(proc, self.id, grace).await;
    }

    /// Releases the group, whose leader has ended, and returns how. The other processes continue to run.
    ///
    /// None for a leader that hangs in the kernel: it is killed as soon as the kernel releases it.
    pub fn end(mut self) -> Option<ExitStatus> {
        let status = self.leader.as_mut()?.child.try_wait().ok()??;
        self.leader = None;
        Some(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let (Some(leader), Ok(runtime)) = (self.leader.take(), Handle::try_current()) {
            runtime.spawn(reap(leader));
        }
    }
}

/// Removes the ended leader's number from the kernel's table.
async fn reap(mut leader: Leader) {
    while let Ok(None) = leader.child.try_wait() {
        if leader.deaths.recv().await.is_none() {
            return;
        }
    }
}

/// Does not reap it.
fn has_exited(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None) | Err(rustix::io::Errno::INTR))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::super::members::gone;
    use super::*;

    fn start(script: &str) -> Group {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        Group::start(|| command.spawn()).unwrap()
    }

    /// Waits until the script has written something.
    fn is_ready(group: &mut Group) {
        let mut line = [0];
        std::io::Read::read_exact(group.child().unwrap().stdout.as_mut().unwrap(), &mut line).unwrap();
    }

    #[tokio::test]
    async fn the_end_of_the_leader_has_its_code() {
        let mut group = start("exit 7");

        group.exited().await;

        assert_eq!(group.end().unwrap().code(), Some(7));
    }

    #[tokio::test]
    async fn a_dropped_group_is_killed_with_all_its_children() {
        let mut group = start("(trap '' TERM HUP; sleep 100) & echo; wait");
        is_ready(&mut group);
        let id = group.id();

        drop(group);

        gone(id).await;
    }

    #[tokio::test]
    async fn a_process_that_ignores_the_request_to_end_is_killed() {
        let mut group = start("(trap '' TERM; echo; while :; do sleep 100; done) & wait");
        is_ready(&mut group);
        let began = tokio::time::Instant::now();

        group.terminate(Path::new("/proc"), Duration::from_millis(100)).await;

        assert!(began.elapsed() >= Duration::from_millis(100));
        gone(group.id()).await;
        assert_eq!(group.end().unwrap().signal(), Some(15));
    }

    #[tokio::test]
    async fn a_stopped_process_is_ended_at_once() {
        let mut group = start("echo; exec sleep 100");
        is_ready(&mut group);
        group.signal(Signal::STOP);
        let began = tokio::time::Instant::now();

        group.terminate(Path::new("/proc"), Duration::from_secs(60)).await;

        assert!(began.elapsed() < Duration::from_secs(10));
        gone(group.id()).await;
    }

    #[test]
    fn a_group_is_ended_by_force_while_lookups_that_hang_hold_all_threads() {
        const PATIENCE: Duration = Duration::from_secs(60);
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
        let (_release, hanging) = mpsc::channel::<()>();
        runtime.block_on(async {
            tokio::task::spawn_blocking(move || _ = hanging.recv());
            let mut group = start("trap '' TERM; echo; while :; do sleep 100; done");
            is_ready(&mut group);

            let ended = group.terminate(Path::new("/proc"), Duration::from_millis(100));
            timeout(PATIENCE, ended).await.unwrap();
            timeout(PATIENCE, group.exited()).await.unwrap();

            assert_eq!(group.end().unwrap().signal(), Some(9));
        });
    }
}
