//! How large the pools are, with the reason for each, in one place so that tests can shrink them.

use super::line::{Limits, Stay};

/// The sizes of the pools.
#[derive(Debug, Clone)]
pub struct Sizes {
    pub connections: Limits,
    pub silent_agents: usize,
    pub keys: Limits,
    pub arrivals: Limits,
    pub dashboards: Limits,
    pub bodies: Limits,
    pub reads: Limits,
    pub listings: Limits,
    pub searches: Limits,
}

/// Connections at a time, as the operating system lets us and the workers take them. A share gets half of them.
const CONNECTIONS: usize = 25_600;

/// Sockets that have said nothing, of some 7 KB each: a whole fleet that comes back passes through them within seconds.
const SILENT_AGENTS: usize = 4_096;

/// Look-ups of keys are a matter of a millisecond each. Many more at a time only queue in the database.
const KEYS: usize = 64;

/// Agents that wait for such a look-up hold a message of 16 KiB at most: 64 MiB in the worst case.
const KEYS_WAITING: usize = 4_096;

/// Agents that are let in wait for one commit, which many share.
const ARRIVALS: usize = 1_024;
const ARRIVALS_WAITING: usize = 8_192;

/// A dashboard's socket takes some 10 KB.
const DASHBOARDS: usize = 10_000;

/// A body has 1 MiB at most, so these are 64 MiB.
const BODIES: usize = 64;
const BODIES_WAITING: usize = 1_024;

/// Reads that unpack, a core: enough to keep it busy while the others wait for the disk. An account gets half of them: on
/// the smallest machine those of a page's charts.
const READS_A_CORE: usize = 2;
const LEAST_READS: usize = 8;
const READS_WAITING: usize = 1_024;

/// Reads of what there is at all, which may go through years of heads: one of an account.
const LISTINGS: usize = 2;
const LISTINGS_WAITING: usize = 256;

/// Searches of logs wait for agents, for up to a quarter of a minute. An answer has 4 MiB at most, so these are 128 MiB.
const SEARCHES: usize = 32;
const SEARCHES_WAITING: usize = 256;

impl Default for Sizes {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self {
            connections: Limits { places: CONNECTIONS, waiting: 0, stay: Stay::Long },
            silent_agents: SILENT_AGENTS,
            keys: Limits { places: KEYS, waiting: KEYS_WAITING, stay: Stay::Brief },
            arrivals: Limits { places: ARRIVALS, waiting: ARRIVALS_WAITING, stay: Stay::Brief },
            dashboards: Limits { places: DASHBOARDS, waiting: 0, stay: Stay::Long },
            bodies: Limits { places: BODIES, waiting: BODIES_WAITING, stay: Stay::Long },
            reads: Limits { places: (cores * READS_A_CORE).max(LEAST_READS), waiting: READS_WAITING, stay: Stay::Long },
            listings: Limits { places: LISTINGS, waiting: LISTINGS_WAITING, stay: Stay::Long },
            searches: Limits { places: SEARCHES, waiting: SEARCHES_WAITING, stay: Stay::Long },
        }
    }
}
