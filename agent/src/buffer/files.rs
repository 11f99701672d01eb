//! The files of the buffer: opened on a thread, and again where that failed. At the agent's start a disk may be full, its owner
//! wrong or its mount late.

use std::time::{Duration, Instant};

use super::disk::{DiskLog, Left};
use crate::catalog::Catalog;
use crate::config::BufferLimits;
use crate::state::{DiskWorker, OpenError, Opening, StateDir};

/// The consequence, for people, while the disk is away.
const CONSEQUENCE: &str = "samples are kept in memory until it is back";

/// The state of the files.
#[derive(Debug)]
pub enum Disk {
    /// There is no directory, or it cannot be this agent's.
    Missing,
    /// The directory could not be used. It is tried again at this time.
    Failed(StateDir, Instant),
    /// The files are being opened: half a gigabyte is read at worst, and a disk may hang.
    Opening(StateDir, Opening<DiskLog, Left, OpenError>),
    Open(DiskWorker<DiskLog>),
}

#[derive(Debug)]
pub struct Files {
    pub disk: Disk,
    limits: BufferLimits,
    catalog: Catalog,
}

impl Files {
    pub fn new(limits: BufferLimits, catalog: Catalog) -> Self {
        Self { disk: Disk::Missing, limits, catalog }
    }

    /// Begins to open the files in this directory.
    pub fn open(&mut self, state: StateDir) -> Result<(), OpenError> {
        let (claimed, limits, catalog) = (state.clone(), self.limits, self.catalog.clone());
        match DiskWorker::open(CONSEQUENCE, move || DiskLog::open(claimed, limits, catalog)) {
            Ok(opening) => {
                self.disk = Disk::Opening(state, opening);
                Ok(())
            }
            Err(error) => Err(self.fail(state, error.into())),
        }
    }

    /// What earlier runs left, where the files have been opened since the last call, or why they could not be. Waits for at most
    /// `limit`.
    pub fn look(&mut self, limit: Duration) -> Option<Result<Left, OpenError>> {
        match std::mem::replace(&mut self.disk, Disk::Missing) {
            Disk::Opening(state, opening) => match opening.wait(limit) {
                Ok(Ok((worker, left))) => {
                    self.disk = Disk::Open(worker);
                    Some(Ok(left))
                }
                Ok(Err(error)) => Some(Err(self.fail(state, error))),
                Err(still) => {
                    self.disk = Disk::Opening(state, still);
                    None
                }
            },
            Disk::Failed(state, retry_at) if Instant::now() >= retry_at => self.open(state).err().map(Err),
            other @ (Disk::Missing | Disk::Failed(..) | Disk::Open(_)) => {
                self.disk = other;
                None
            }
        }
    }

    /// The open files.
    pub fn worker(&mut self) -> Option<&mut DiskWorker<DiskLog>> {
        match &mut self.disk {
            Disk::Open(worker) => Some(worker),
            Disk::Missing | Disk::Failed(..) | Disk::Opening(..) => None,
        }
    }

    /// Leaves the directory for later, unless an operator has to fix it. Returns the error.
    fn fail(&mut self, state: StateDir, error: OpenError) -> OpenError {
        self.disk = if error.is_misconfiguration() {
            Disk::Missing
        } else {
            Disk::Failed(state, Instant::now() + self.limits.open_again_after)
        };
        error
    }
}
