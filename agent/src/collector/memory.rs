//! Memory and swap, from `/proc/meminfo` or from a limited cgroup.

use std::io;

use signalbox_protocol::Sample;

use super::Collector;
use super::cgroup::{Cgroups, MemoryLimit};
use super::file::{KernelFile, unexpected};
use super::page_cache::PageCache;
use crate::catalog::Values;
use crate::config::Roots;

pub struct Memory {
    meminfo: KernelFile,
    cgroups: Cgroups,
    usage: Usage,
    page_cache: PageCache,
}

/// Bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    total: u64,
    used: u64,
    swap_total: u64,
    swap_used: u64,
}

impl Memory {
    pub fn new(roots: &Roots) -> Self {
        Self {
            meminfo: KernelFile::new(roots.proc.join("meminfo")),
            cgroups: Cgroups::new(roots),
            usage: Usage::default(),
            page_cache: PageCache::default(),
        }
    }
}

impl Collector for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn read(&mut self) -> io::Result<()> {
        let meminfo = self.meminfo.read_text()?;
        let machine = parse(meminfo).ok_or_else(|| unexpected("/proc/meminfo"))?;
        self.page_cache.read(meminfo);
        let limit = self.cgroups.memory_limit(machine.total);
        self.usage = limit.map_or(machine, |limit| within(machine, limit));
        Ok(())
    }

    fn fill(&self, sample: &mut Sample) {
        let usage = self.usage;
        sample.memory_total = usage.total;
        sample.memory_used = usage.used;
        sample.memory_percent = if usage.total > 0 { usage.used as f64 / usage.total as f64 * 100.0 } else { 0.0 };
        sample.swap_total = usage.swap_total;
        sample.swap_used = usage.swap_used;
    }

    fn values(&self, values: &mut Values<'_>) {
        self.page_cache.values(values);
    }
}

/// Used memory is what is not available. Kernels before 3.14 do not report what is available, but its main parts.
fn parse(text: &str) -> Option<Usage> {
    let (mut total, mut available, mut without_it) = (None, None, 0_u64);
    let mut swap = (0, 0);
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let Some(kibibytes) = value.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok()) else {
            continue;
        };
        let bytes = kibibytes.saturating_mul(1024);
        match name {
            "MemTotal" => total = Some(bytes),
            "MemAvailable" => available = Some(bytes),
            "MemFree" | "Buffers" | "Cached" => without_it = without_it.saturating_add(bytes),
            "SwapTotal" => swap.0 = bytes,
            // The last interesting line; some thirty follow.
            "SwapFree" => {
                swap.1 = bytes;
                break;
            }
            _ => {}
        }
    }
    let total = total.filter(|total| *total > 0)?;
    let (swap_total, swap_free) = swap;
    Some(Usage {
        total,
        used: total.saturating_sub(available.unwrap_or(without_it)),
        swap_total,
        swap_used: swap_total.saturating_sub(swap_free),
    })
}

fn within(machine: Usage, limit: MemoryLimit) -> Usage {
    let (swap_total, swap_used) = match limit.swap {
        Some((most, used)) => (machine.swap_total.min(most), used),
        None => (machine.swap_total, machine.swap_used),
    };
    Usage { total: limit.limit, used: limit.used, swap_total, swap_used: swap_used.min(swap_total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_is_what_is_not_available() {
        let text = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    700 kB\nBuffers: 1 kB\n\
                    Cached: 500 kB\nSwapCached: 0 kB\nSwapTotal:       50 kB\nSwapFree:         40 kB\nDirty: 9 kB\n";

        let expected = Usage { total: 1000 << 10, used: 300 << 10, swap_total: 50 << 10, swap_used: 10 << 10 };
        assert_eq!(parse(text), Some(expected));
    }

    #[test]
    fn an_old_kernel_counts_free_and_cached_as_available() {
        let text = "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 50 kB\nCached: 250 kB\n";

        assert_eq!(parse(text).map(|usage| usage.used), Some(600 << 10));
    }

    #[test]
    fn a_broken_file_is_not_taken_for_a_machine_without_memory() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("MemTotal: x kB\n"), None);
    }

    #[test]
    fn a_limited_group_has_no_more_swap_than_it_may_use() {
        let machine = Usage { total: 1000, used: 500, swap_total: 100, swap_used: 90 };

        let limited = within(machine, MemoryLimit { limit: 200, used: 50, swap: Some((30, 10)) });
        let unlimited_swap = within(machine, MemoryLimit { limit: 200, used: 50, swap: Some((u64::MAX, 10)) });

        assert_eq!(limited, Usage { total: 200, used: 50, swap_total: 30, swap_used: 10 });
        assert_eq!(unlimited_swap, Usage { total: 200, used: 50, swap_total: 100, swap_used: 10 });
    }
}
