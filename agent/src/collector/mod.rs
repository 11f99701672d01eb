//! What the agent reads of its machine, one file a collector.

pub mod cgroup;
mod containers;
mod cpu;
mod disk_io;
mod disk_usage;
mod file;
mod lane;
mod load;
mod machine;
mod memory;
mod mounts;
mod network;
mod pids;
mod process_stat;
mod processes;
mod ranking;
mod temperature;
mod top_processes;
mod users;

use std::io;

use signalbox_protocol::Sample;

pub use machine::Machine;

/// Reads one part of a sample. Reading and telling are apart, because only the reading can hang: it is done on a
/// [`lane`], the telling by whoever puts the sample together.
trait Collector: Send {
    /// For the log, and to know it again.
    fn name(&self) -> &str;

    /// Reads the machine. After an error the part is left out of the sample.
    fn read(&mut self) -> io::Result<()>;

    /// Writes what was read last into `sample`.
    fn fill(&self, sample: &mut Sample);
}
