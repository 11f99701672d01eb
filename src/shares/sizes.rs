//! The sizes of the pools, each with its reason, in one place so that tests can shrink them.

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
    pub enrolments: Limits,
    pub downloads: Limits,
}

/// Connections at the same time, limited further by the operating system and the workers. A share gets half of them.
const CONNECTIONS: usize = 25_600;

/// Sockets that have sent nothing, some 7 KB each: a whole fleet that reconnects passes through them within seconds.
const SILENT_AGENTS: usize = 4_096;

/// A lookup of a key takes about a millisecond. Many more at the same time would only queue in the database.
const KEYS: usize = 64;

/// Each agent that waits for a lookup holds a message of at most 16 KiB: 64 MiB in the worst case.
const KEYS_WAITING: usize = 4_096;

/// Agents in a handshake wait for one commit, which many share.
const ARRIVALS: usize = 1_024;
const ARRIVALS_WAITING: usize = 8_192;

/// A dashboard's socket takes some 10 KB. A terminal that waits for its client, or is remembered, has a place as well and takes up to
/// 512 KiB, of which a server has at most eight.
const DASHBOARDS: usize = 10_000;

/// A body has at most 1 MiB, so these take at most 64 MiB.
const BODIES: usize = 64;
const BODIES_WAITING: usize = 1_024;

/// Reads per core that unpack history: enough to keep it busy while the others wait for the disk. An account gets half
/// of them: on the smallest machine, those of one page's charts.
const READS_A_CORE: usize = 2;
const LEAST_READS: usize = 8;
const READS_WAITING: usize = 1_024;

/// Listings of the available series, which may read years of block heads: one per account.
const LISTINGS: usize = 2;
const LISTINGS_WAITING: usize = 256;

/// Searches of logs wait for agents, for up to a quarter of a minute. A response has at most 4 MiB, so these take at
/// most 128 MiB.
const SEARCHES: usize = 32;
const SEARCHES_WAITING: usize = 256;

/// Each machine that enrols has a connection to the database, of which there are 16, and those of one account follow each other there.
/// An account gets two: for the machine that enrols, and for the next one.
const ENROLMENTS: usize = 4;
const ENROLMENTS_WAITING: usize = 1_024;

/// Downloads of the agents' programs, with 64 KiB of memory each: enough for a fleet that a script sets up. They last as long as their
/// clients like, within limits; the machines of a network that share one address get half of them.
const DOWNLOADS: usize = 64;
const DOWNLOADS_WAITING: usize = 1_024;

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
            enrolments: Limits { places: ENROLMENTS, waiting: ENROLMENTS_WAITING, stay: Stay::Long },
            downloads: Limits { places: DOWNLOADS, waiting: DOWNLOADS_WAITING, stay: Stay::Long },
        }
    }
}
