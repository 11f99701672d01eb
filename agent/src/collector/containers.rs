//! What each container uses, from its control group and its network. These are the kernel's own counters, so the engine has
//! nothing to do. It reads version 1 and version 2, with any driver and parent of the engine, because a container's first
//! process names its group.
//!
//! Values that cannot be read are omitted: zero would be wrong.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use signalbox_protocol::Sample;
use signalbox_protocol::sample::{ContainerUsage, MAX_NAME_BYTES};
use signalbox_protocol::traffic::in_total;

use super::Collector;
use super::cgroup::{Hierarchy, Version, field, hierarchy};
use super::file::number;
use super::network;
use crate::config::Roots;
use crate::docker::{Running, RunningContainers};

pub struct Containers {
    proc: PathBuf,
    sys: PathBuf,
    running: RunningContainers,
    /// By container and first process: a restarted container is another one.
    seen: HashMap<(String, u32), Seen>,
    rows: Vec<ContainerUsage>,
}

/// What one reading keeps for the next.
struct Seen {
    groups: Groups,
    /// Processor time, and when it was read.
    before: Option<(u64, Instant)>,
}

/// Where a container's counters are.
struct Groups {
    cpu: (Version, PathBuf),
    memory: (Version, PathBuf),
}

impl Containers {
    pub fn new(roots: &Roots, running: RunningContainers) -> Self {
        Self { proc: roots.proc.clone(), sys: roots.sys.clone(), running, seen: HashMap::new(), rows: Vec::new() }
    }

    fn read_at(&mut self, now: Instant) {
        self.rows.clear();
        let running = self.running.get();
        let mut before = std::mem::take(&mut self.seen);
        let mut mountinfo = None;
        for container in running.iter() {
            let key = (container.id.clone(), container.pid);
            let known = before.remove(&key).or_else(|| {
                let mounts =
                    mountinfo.get_or_insert_with(|| fs::read(self.proc.join("self/mountinfo")).unwrap_or_default());
                let groups = find_groups(&self.proc, &self.sys, mounts, container)?;
                Some(Seen { groups, before: None })
            });
            let Some(mut seen) = known else { continue };
            let Some(cpu_nanos) = seen.groups.cpu_nanos() else { continue };
            let latest = seen.before.replace((cpu_nanos, now));
            // The first reading of a container yields no share.
            if let Some((nanos, then)) = latest {
                let cpu_percent = percent(cpu_nanos.saturating_sub(nanos), now.duration_since(then).as_nanos());
                self.rows.extend(self.row(container, &seen.groups, cpu_percent));
            }
            self.seen.insert(key, seen);
        }
    }

    fn row(&self, container: &Running, groups: &Groups, cpu_percent: f64) -> Option<ContainerUsage> {
        let memory_bytes = groups.memory_bytes()?;
        let (network_rx_bytes, network_tx_bytes) =
            if container.has_own_network { carried(&self.proc, container.pid) } else { (0, 0) };
        Some(ContainerUsage {
            id: bounded(&container.id),
            name: bounded(&container.name),
            cpu_percent,
            memory_bytes,
            network_rx_bytes,
            network_tx_bytes,
        })
    }
}

impl Collector for Containers {
    fn name(&self) -> &str {
        "containers"
    }

    fn read(&mut self) -> io::Result<()> {
        self.read_at(Instant::now());
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        sample.containers.clone_from(&self.rows);
    }
}

impl Groups {
    fn cpu_nanos(&self) -> Option<u64> {
        let (version, dir) = &self.cpu;
        match version {
            Version::V1 => number(&dir.join("cpuacct.usage")),
            Version::V2 => {
                let stat = fs::read_to_string(dir.join("cpu.stat")).ok()?;
                field(&stat, "usage_usec").map(|micros| micros.saturating_mul(1000))
            }
        }
    }

    /// Without the file cache that was not used recently, as `docker stats` counts it.
    fn memory_bytes(&self) -> Option<u64> {
        let (version, dir) = &self.memory;
        let (usage, cache) = match version {
            Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::V2 => ("memory.current", "inactive_file"),
        };
        let used: u64 = number(&dir.join(usage))?;
        let stat = fs::read_to_string(dir.join("memory.stat")).ok()?;
        Some(used.saturating_sub(field(&stat, cache).unwrap_or(0)))
    }
}

/// The groups of a container's first process. None when the process is no longer the container's, or may not be read.
fn find_groups(proc: &Path, sys: &Path, mountinfo: &[u8], container: &Running) -> Option<Groups> {
    let membership = fs::read_to_string(proc.join(container.pid.to_string()).join("cgroup")).ok()?;
    let group = |controller| {
        let hierarchy = hierarchy(&membership, mountinfo, sys, controller)?;
        Some((hierarchy.version, group_of(hierarchy, &container.id)?))
    };
    Some(Groups { cpu: group("cpuacct")?, memory: group("memory")? })
}

/// The container's own group; the process may be in one below it. A process whose groups do not name the container is another
/// one that reused the number.
fn group_of(hierarchy: Hierarchy, id: &str) -> Option<PathBuf> {
    let names_it = |level: &&PathBuf| level.file_name().is_some_and(|name| name.to_string_lossy().contains(id));
    hierarchy.levels.iter().rev().find(names_it).cloned()
}

/// Bytes received and sent on the interfaces of the process's network, each byte once.
fn carried(proc: &Path, pid: u32) -> (u64, u64) {
    let text = fs::read_to_string(proc.join(pid.to_string()).join("net/dev")).unwrap_or_default();
    let interfaces: Vec<_> = network::parse(&text).collect();
    let counts = in_total(&interfaces);
    let counted = interfaces.iter().filter(|it| counts(it));
    counted.fold((0, 0), |(received, sent), it| (received + it.bytes_recv, sent + it.bytes_sent))
}

fn percent(used_nanos: u64, elapsed_nanos: u128) -> f64 {
    if elapsed_nanos == 0 { 0.0 } else { used_nanos as f64 / elapsed_nanos as f64 * 100.0 }
}

fn bounded(text: &str) -> String {
    text.get(..text.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "containers_tests.rs"]
mod tests;
