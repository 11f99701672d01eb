//! What the agent reads from its machine, one file per collector.

mod battery;
pub mod cgroup;
mod containers;
mod cpu;
mod cpu_modes;
mod disk_activity;
mod disk_io;
mod disk_usage;
mod fans;
mod file;
#[cfg(test)]
mod fixture;
mod interfaces;
mod kernel_limits;
mod live;
mod load;
mod machine;
mod memory;
mod mounts;
mod network;
mod network_errors;
mod page_cache;
mod pids;
mod pressure;
mod process_stat;
mod processes;
mod ranking;
mod rate;
mod scheduler;
mod sockets;
mod temperature;
mod top_processes;
mod users;
mod worker;
mod zfs_arc;

use std::io;

use signalbox_protocol::Sample;

pub use machine::Machine;

use crate::catalog::Values;

/// Reads one part of a sample. Reading and filling in are separate, because only the reading can hang: it runs on a [`worker`],
/// the filling in runs where the sample is combined.
trait Collector: Send {
    /// For the log, and to recognise the collector.
    fn name(&self) -> &str;

    /// Reads the machine. After an error the part is left out of the sample.
    fn read(&mut self) -> io::Result<()>;

    /// Writes the last reading into `sample`.
    fn fill(&self, _sample: &mut Sample) {}

    /// Adds the open series of the last reading, which have no field in a sample. It omits what the machine does not have.
    fn values(&self, _values: &mut Values<'_>) {}
}
