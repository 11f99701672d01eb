//! What the agent reads of its machine, one file a collector.

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
mod lane;
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
mod zfs_arc;

use std::io;

use signalbox_protocol::Sample;

pub use machine::Machine;

use crate::catalog::Values;

/// Reads one part of a sample. Reading and telling are apart, because only the reading can hang: it is done on a
/// [`lane`], the telling by whoever puts the sample together.
trait Collector: Send {
    /// For the log, and to know it again.
    fn name(&self) -> &str;

    /// Reads the machine. After an error the part is left out of the sample.
    fn read(&mut self) -> io::Result<()>;

    /// Writes what was read last into `sample`.
    fn fill(&self, _sample: &mut Sample) {}

    /// Adds the open series that were read last: what has no field in a sample. What the machine does not have is left out.
    fn values(&self, _values: &mut Values<'_>) {}
}
