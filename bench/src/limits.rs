//! The limits of one process.

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, for this process and every later child: each simulated agent is a
/// socket, here and in the service.
pub fn raise_open_files() -> anyhow::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .context("the limit of open files cannot be raised to the hard limit")
}

/// Refuses a number of connections that the limit cannot hold, rather than failing in the middle of a run.
pub fn check_connections(connections: usize) -> anyhow::Result<()> {
    /// Standard streams, the database, listeners, REST connections, timers: generously.
    const OTHER_FILES: u64 = 512;

    let wanted = connections as u64 + OTHER_FILES;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < wanted => {
            anyhow::bail!("{connections} connections need {wanted} open files, the limit is {limit}")
        }
        _ => Ok(()),
    }
}
