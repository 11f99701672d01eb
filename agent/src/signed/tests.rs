//! The record of what has run, on a disk that is slow or cannot be used for a moment.

use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use signalbox_signing::Signers;
use tempfile::TempDir;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// In memory: on a disk under load a call may take as long as on one that hangs.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Where the record is opened like this.
fn inner(open: impl FnOnce() -> Nonces + Send + 'static) -> Inner {
    let (name, signers, allowed) = ("web-1".to_owned(), Signers::default(), Allowed::default());
    let demands = Arc::new(Demands { name, signers, approvals: 1, allowed });
    let opening = DiskWorker::open(CONSEQUENCE, move || Ok::<_, OpenError>((open(), ()))).unwrap();
    let Ok(Ok((worker, ()))) = opening.wait(PATIENCE) else { panic!("the record is not open") };
    Inner { demands, nonces: Mutex::new(NoncesState::Open(worker)) }
}

impl Inner {
    /// Asks whether the only order of these tests may run.
    fn ask(&self) -> Result<(), RequestError> {
        let now = Timestamp::now();
        let key = "0123456789abcdef0123456789abcdef".to_owned();
        self.use_once(vec![Use { key, not_before: now, expires_at: now.plus_millis(600_000) }], Uuid::nil(), now)
    }

    /// The same, until the disk is no reason to refuse it any more.
    fn ask_until_decided(&self) -> Result<(), RequestError> {
        let began = Instant::now();
        loop {
            match self.ask() {
                Err(error) if error.reason.is_none() && began.elapsed() < PATIENCE => thread::yield_now(),
                decided => return decided,
            }
        }
    }

    fn expect_to_run_once(&self) {
        assert_eq!(self.ask_until_decided(), Ok(()));
        assert_eq!(self.ask_until_decided().unwrap_err().reason.as_deref(), Some("replayed"));
    }
}

#[test]
fn an_order_that_was_refused_because_the_disk_was_slow_can_be_sent_again_and_runs_once() {
    let directory = directory();
    let state = StateDir::new(directory.path());
    let (write, written) = mpsc::channel();
    let inner = inner(move || {
        let mut nonces = Nonces::claiming(state, Start::now());
        nonces.slow_disk = Some(written);
        nonces
    });

    let refusal = inner.ask().unwrap_err();
    write.send(()).unwrap();

    assert!(refusal.reason.is_none() && refusal.detail.contains("hangs"), "{refusal:?}");
    inner.expect_to_run_once();
}

#[test]
fn a_state_directory_that_cannot_be_used_is_used_as_soon_as_it_can_be() {
    let directory = directory();
    // In place of the lock.
    let lock = directory.path().join("lock");
    fs::create_dir(&lock).unwrap();
    let state = StateDir::new(directory.path());
    let inner = inner(move || Nonces::claiming(state, Start::now()));

    let refusal = inner.ask().unwrap_err();
    fs::remove_dir(lock).unwrap();

    assert!(refusal.reason.is_none() && refusal.detail.contains("cannot record"), "{refusal:?}");
    inner.expect_to_run_once();
}
