//! What the kernel caches of files in memory, from `/proc/meminfo`.

use signalbox_protocol::series::Unit;

use crate::catalog::{Metric, Values};

const CACHE: Metric<'_> =
    Metric::gauge("memory_page_cache", Unit::Bytes, "Contents of files and shared memory that the kernel keeps.");
const BUFFERS: Metric<'_> = Metric::gauge(
    "memory_buffers",
    Unit::Bytes,
    "Blocks of devices that the kernel keeps, such as file system metadata.",
);
const DIRTY: Metric<'_> = Metric::gauge("memory_dirty", Unit::Bytes, "Memory that waits to be written to a disk.");

#[derive(Debug, Default)]
pub struct PageCache {
    cache: Option<u64>,
    buffers: Option<u64>,
    dirty: Option<u64>,
}

impl PageCache {
    pub fn read(&mut self, meminfo: &str) {
        *self = Self::default();
        for line in meminfo.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let field = match name {
                "Cached" => &mut self.cache,
                "Buffers" => &mut self.buffers,
                "Dirty" => &mut self.dirty,
                _ => continue,
            };
            let kibibytes = value.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            *field = kibibytes.map(|kibibytes| kibibytes.saturating_mul(1024));
            // The last of the three; many lines follow.
            if name == "Dirty" {
                return;
            }
        }
    }

    pub fn values(&self, values: &mut Values<'_>) {
        for (metric, bytes) in [(CACHE, self.cache), (BUFFERS, self.buffers), (DIRTY, self.dirty)] {
            if let Some(bytes) = bytes {
                values.push(metric, None, bytes as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::fixture::{named, values_of};

    #[test]
    fn cached_buffered_and_dirty_memory_is_in_bytes_and_missing_lines_omitted() {
        let meminfo =
            "MemTotal: 1000 kB\nBuffers: 1 kB\nCached: 500 kB\nSwapCached: 7 kB\nDirty: 9 kB\nWriteback: 3 kB\n";
        let mut cache = PageCache::default();
        cache.read(meminfo);

        let whole = values_of(|values| cache.values(values));
        cache.read("MemTotal: 1000 kB\nCached: x kB\nDirty: 0 kB\n");

        let expected = [("memory_page_cache", 512_000.0), ("memory_buffers", 1_024.0), ("memory_dirty", 9_216.0)];
        assert_eq!(whole, named(expected));
        assert_eq!(values_of(|values| cache.values(values)), named([("memory_dirty", 0.0)]));
    }
}
