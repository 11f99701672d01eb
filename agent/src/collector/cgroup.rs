//! The limits of the control group that the agent runs in, so that a container shows its own resources and not its host's.
//!
//! It reads version 1, version 2 and the mixture of both. A limit may be set at any level above the agent; it reads all visible
//! ones, and the tightest counts. It ignores the agent's own systemd unit, because the limits of `agent.service` say nothing
//! about the machine.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::file::{KernelFile, number, short_text};
use super::mounts;
use crate::config::Roots;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// The directories of one controller, from the agent's group up to the highest visible one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    pub version: Version,
    pub levels: Vec<PathBuf>,
}

/// A cgroup's limit of processors, where that is less than the machine has.
#[derive(Debug, PartialEq)]
pub struct CpuLimit {
    /// May be a fraction.
    pub cores: f64,
    /// The cores it is bound to; none for any.
    pub allowed: Option<HashSet<u32>>,
    /// Processor time that the limited group has used.
    pub usage_nanos: Option<u64>,
}

impl CpuLimit {
    pub fn allows(&self, core: u32) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&core))
    }
}

/// A cgroup's limit of memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimit {
    pub limit: u64,
    /// Without the file cache, which the kernel frees on demand.
    pub used: u64,
    /// Limit and usage of swap, where the group has them.
    pub swap: Option<(u64, u64)>,
}

/// On a machine without limits, which is the common case, it looks for them once in this many readings: once a minute at the
/// default interval. It reads a known limit each time.
const LOOK_EVERY: u32 = 12;

/// Finds the agent's groups again when the agent was moved to others.
pub struct Cgroups {
    /// Readings until it looks for limits again.
    rest: u32,
    membership: KernelFile,
    seen: Vec<u8>,
    mountinfo: PathBuf,
    sys: PathBuf,
    cpu: Option<Hierarchy>,
    cpuset: Option<Hierarchy>,
    cpuacct: Option<Hierarchy>,
    memory: Option<Hierarchy>,
}

impl Cgroups {
    pub fn new(roots: &Roots) -> Self {
        Self {
            rest: 0,
            membership: KernelFile::new(roots.proc.join("self/cgroup")),
            seen: Vec::new(),
            mountinfo: roots.proc.join("self/mountinfo"),
            sys: roots.sys.clone(),
            cpu: None,
            cpuset: None,
            cpuacct: None,
            memory: None,
        }
    }

    /// The tightest limit below the machine's own `cores`.
    pub fn cpu_limit(&mut self, cores: usize) -> Option<CpuLimit> {
        self.seldom_in_vain(|cgroups| cgroups.find_cpu_limit(cores))
    }

    /// The tightest limit below the machine's own `total` bytes.
    pub fn memory_limit(&mut self, total: u64) -> Option<MemoryLimit> {
        self.seldom_in_vain(|cgroups| cgroups.find_memory_limit(total))
    }

    fn seldom_in_vain<T>(&mut self, find: impl Fn(&Self) -> Option<T>) -> Option<T> {
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        self.refresh();
        let found = find(self);
        self.rest = if found.is_some() { 0 } else { LOOK_EVERY - 1 };
        found
    }

    fn find_cpu_limit(&self, cores: usize) -> Option<CpuLimit> {
        let quota = self.cpu.as_ref().and_then(tightest_quota).filter(|(quota, _)| *quota < cores as f64);
        let allowed = self.cpuset.as_ref().and_then(smallest_cpuset).filter(|(set, _)| set.len() < cores);
        let (limiting, level) = match (&quota, &allowed) {
            (Some((_, level)), _) => (self.cpu.as_ref()?, *level),
            (None, Some((_, level))) => (self.cpuset.as_ref()?, *level),
            (None, None) => return None,
        };
        let bound = allowed.as_ref().map_or(cores, |(set, _)| set.len()) as f64;
        Some(CpuLimit {
            cores: quota.as_ref().map_or(bound, |(quota, _)| quota.min(bound)),
            usage_nanos: self.usage_nanos(limiting, level),
            allowed: allowed.map(|(set, _)| set),
        })
    }

    fn find_memory_limit(&self, total: u64) -> Option<MemoryLimit> {
        let hierarchy = self.memory.as_ref()?;
        let limits = hierarchy.levels.iter().filter_map(|level| Some((memory_max(hierarchy.version, level)?, level)));
        let (limit, level) = limits.filter(|(limit, _)| *limit < total).min_by_key(|(limit, _)| *limit)?;
        Some(MemoryLimit {
            limit,
            used: memory_used(hierarchy.version, level)?.min(limit),
            swap: swap(hierarchy.version, level),
        })
    }

    fn refresh(&mut self) {
        let Ok(membership) = self.membership.read() else { return };
        if membership == self.seen {
            return;
        }
        self.seen = membership.to_vec();
        let membership = String::from_utf8_lossy(&self.seen);
        let mounted = fs::read(&self.mountinfo).unwrap_or_default();
        let find = |controller| hierarchy(&membership, &mounted, &self.sys, controller);
        (self.cpu, self.cpuset) = (find("cpu"), find("cpuset"));
        (self.cpuacct, self.memory) = (find("cpuacct"), find("memory"));
    }

    /// The usage of the group `level` steps above the agent's in `limiting`. Version 1 may count usage in another hierarchy, in
    /// which the agent may be in another group; then the usage is unknown.
    fn usage_nanos(&self, limiting: &Hierarchy, level: usize) -> Option<u64> {
        if limiting.version == Version::V1 {
            let counting = self.cpuacct.as_ref().filter(|counting| counting.levels.len() == limiting.levels.len())?;
            return number(&counting.levels.get(level)?.join("cpuacct.usage"));
        }
        let stat = fs::read_to_string(limiting.levels.get(level)?.join("cpu.stat")).ok()?;
        field(&stat, "usage_usec").map(|micros| micros.saturating_mul(1000))
    }
}

/// Finds one controller's directories from `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub fn hierarchy(membership: &str, mountinfo: &[u8], sys: &Path, controller: &str) -> Option<Hierarchy> {
    let path_of = |wanted: &dyn Fn(&str) -> bool| {
        membership.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then_some(path)
        })
    };
    let version_1 = mounts::parse(mountinfo)
        .find(|mount| mount.kind == "cgroup" && mount.super_options.split(',').any(|option| option == controller));
    let (version, mount, path) = match version_1 {
        Some(mount) => (Version::V1, mount, path_of(&|list| list.split(',').any(|name| name == controller))?),
        None => {
            let mount = mounts::parse(mountinfo).find(|mount| mount.kind == "cgroup2")?;
            (Version::V2, mount, path_of(&str::is_empty)?)
        }
    };
    let mounted_at = match mount.path.strip_prefix("/sys") {
        Ok(inside) => sys.join(inside),
        Err(_) => mount.path.clone(),
    };
    Some(Hierarchy { version, levels: levels(&mounted_at, &mount.root, path) })
}

/// A group outside of what is mounted (shown with `..`) is read at the mounted root.
fn levels(mounted_at: &Path, mounted_root: &str, path: &str) -> Vec<PathBuf> {
    let inside = if mounted_root == "/" { Some(path) } else { path.strip_prefix(mounted_root) };
    let mut names: Vec<&str> = inside.unwrap_or_default().split('/').filter(|name| !name.is_empty()).collect();
    if names.contains(&"..") {
        names.clear();
    }
    if names.last().is_some_and(|name| name.ends_with(".service")) {
        names.pop();
    }
    let mut dir = mounted_at.to_owned();
    let mut levels = vec![dir.clone()];
    for name in names {
        dir.push(name);
        levels.push(dir.clone());
    }
    levels.reverse();
    levels
}

/// The number of cores, and the level that sets it.
fn tightest_quota(hierarchy: &Hierarchy) -> Option<(f64, usize)> {
    let quotas = hierarchy.levels.iter().enumerate().filter_map(|(level, dir)| {
        let (quota, period) = match hierarchy.version {
            Version::V1 => (number(&dir.join("cpu.cfs_quota_us"))?, number(&dir.join("cpu.cfs_period_us"))?),
            Version::V2 => parse_cpu_max(short_text(&dir.join("cpu.max"), &mut [0; 64])?)?,
        };
        (quota > 0.0 && period > 0.0).then_some((quota / period, level))
    });
    quotas.min_by(|(one, _), (other, _)| one.total_cmp(other))
}

/// Quota and period of `cpu.max`; none for `max`.
fn parse_cpu_max(text: &str) -> Option<(f64, f64)> {
    let mut words = text.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

fn smallest_cpuset(hierarchy: &Hierarchy) -> Option<(HashSet<u32>, usize)> {
    let name = match hierarchy.version {
        Version::V1 => "cpuset.effective_cpus",
        Version::V2 => "cpuset.cpus.effective",
    };
    let sets = hierarchy.levels.iter().enumerate().filter_map(|(level, dir)| {
        let set = parse_cpu_list(short_text(&dir.join(name), &mut [0; 4096])?);
        (!set.is_empty()).then_some((set, level))
    });
    sets.min_by_key(|(set, _)| set.len())
}

/// The numbers of a list such as `0-3,8`.
fn parse_cpu_list(text: &str) -> HashSet<u32> {
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

fn memory_max(version: Version, dir: &Path) -> Option<u64> {
    number(&dir.join(match version {
        Version::V1 => "memory.limit_in_bytes",
        Version::V2 => "memory.max",
    }))
}

fn memory_used(version: Version, dir: &Path) -> Option<u64> {
    let (usage, prefix) = match version {
        Version::V1 => ("memory.usage_in_bytes", "total_"),
        Version::V2 => ("memory.current", ""),
    };
    let used: u64 = number(&dir.join(usage))?;
    let stat = fs::read_to_string(dir.join("memory.stat")).unwrap_or_default();
    let cache = |name: &str| field(&stat, &format!("{prefix}{name}")).unwrap_or(0);
    Some(used.saturating_sub(cache("inactive_file")).saturating_sub(cache("active_file")))
}

/// Version 1 counts memory and swap in one sum, which cannot be separated exactly, so the machine's own swap is shown there.
fn swap(version: Version, dir: &Path) -> Option<(u64, u64)> {
    if version == Version::V1 {
        return None;
    }
    let most = number(&dir.join("memory.swap.max")).unwrap_or(u64::MAX);
    Some((most, number(&dir.join("memory.swap.current"))?))
}

/// The number after `name` in a file of `name number` lines.
pub fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
