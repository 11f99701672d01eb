//! Ways to run a command on a host: ours, and the common alternatives.
//!
//! Each runs one command per request and returns how long it took. Programs are timed from before their start to after their
//! end; libraries by a small script, from the call to its return, without its start and the pipe to it.

mod ansible;
mod ours;
mod program;
mod salt;
mod signer;
mod sshd;
mod venv;
mod worker;

use std::time::Duration;

pub use self::ansible::ansible;
pub use self::ours::Ours;
pub use self::program::Program;
pub use self::salt::Salt;
pub use self::signer::Signer;
pub use self::sshd::Sshd;
pub use self::venv::Venvs;
use self::worker::Worker;

/// A way to run `true`.
#[derive(Debug)]
pub enum Way {
    Ours(Ours),
    Program(Program),
    Worker(Box<Worker>),
    Salt(Box<Salt>),
}

impl Way {
    /// Runs `true` once. An error when it did not run or did not succeed.
    pub async fn run(&mut self) -> anyhow::Result<Duration> {
        match self {
            Self::Ours(ours) => ours.run().await,
            Self::Program(program) => program.run().await,
            Self::Worker(worker) => worker.run().await,
            Self::Salt(salt) => salt.run().await,
        }
    }
}
