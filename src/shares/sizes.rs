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
    pub fleet_views: Limits,
    pub bodies: Limits,
    pub reads: Limits,
    pub answers: Limits,
    pub exports: Limits,
    pub overviews: Limits,
    pub outputs: Limits,
    pub listings: Limits,
    pub searches: Limits,
    pub enrolments: Limits,
    pub downloads: Limits,
    pub sign_ins: Limits,
    pub logouts: Limits,
    pub finished_sign_ins: usize,
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

/// Parts of 500 servers in the lists that sockets of all servers hold (`/ws/fleet`), some 60 KB each: 500 MB if all are taken, and a
/// core, because each server in them is compared once a second. An account gets half of them: for 4,000 sockets that show up to 500
/// servers, or 200 that show 10,000.
const FLEET_VIEWS: usize = 8_192;

/// A body has at most 1 MiB, so these take at most 64 MiB.
const BODIES: usize = 64;
const BODIES_WAITING: usize = 1_024;

/// Reads per core that unpack history: enough to keep it busy while the others wait for the disk. An account gets half
/// of them: on the smallest machine, those of one page's charts.
const READS_A_CORE: usize = 2;
const LEAST_READS: usize = 8;
const READS_WAITING: usize = 1_024;

/// Answers of the history that may have at most 200,000 points: those of charts. As many as fill a quarter of the memory budget, but never
/// fewer than the pages of a large team ask for at the same time.
const ANSWERS: usize = 4_096;
const LEAST_ANSWERS: usize = 32;
const ANSWER_BYTES: u64 = 12 * 1024 * 1024;
const ANSWERS_WAITING: usize = 1_024;

/// All other answers of the history, which have up to two million points. As many as fill half of the memory budget, but never fewer than
/// are read at the same time on the smallest machine.
const EXPORTS: usize = 256;
const LEAST_EXPORTS: usize = LEAST_READS;
const EXPORT_BYTES: u64 = 100 * 1024 * 1024;
const EXPORTS_WAITING: usize = 1_024;

/// Reads of one server each for answers about many. They may be as large as an export, but no client holds them up: as many as fill a
/// quarter of the memory budget.
const OVERVIEWS: usize = 256;
const LEAST_OVERVIEWS: usize = LEAST_READS;
const OVERVIEWS_WAITING: usize = 1_024;

/// Parts of the output of commands, which is in memory until it is stored: at most 1 GiB. As many as fill a quarter of the memory budget,
/// but never fewer than 64 MiB: an account gets half of that, which is all that 32 commands may say.
const OUTPUTS: usize = 16_384;
const LEAST_OUTPUTS: usize = 1_024;
pub const OUTPUT_BYTES: usize = 64 * 1024;

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

/// Sign-ins that ask the identity provider at the same time; each holds an answer of some kilobytes, and takes as long as the provider.
const SIGN_INS: usize = 32;
const SIGN_INS_WAITING: usize = 256;

/// Messages about the end of sessions that are checked at the same time. They have places of their own, so that nobody holds
/// up a logout with sign-ins.
const LOGOUTS: usize = 8;
const LOGOUTS_WAITING: usize = 256;

/// Finished sign-ins that are remembered as long as their cookies are good: some 2 MB.
const FINISHED_SIGN_INS: usize = 10_000;

impl Default for Sizes {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Self {
            connections: Limits { places: CONNECTIONS, waiting: 0, stay: Stay::Long },
            silent_agents: SILENT_AGENTS,
            keys: Limits { places: KEYS, waiting: KEYS_WAITING, stay: Stay::Brief },
            arrivals: Limits { places: ARRIVALS, waiting: ARRIVALS_WAITING, stay: Stay::Brief },
            dashboards: Limits { places: DASHBOARDS, waiting: 0, stay: Stay::Long },
            fleet_views: Limits { places: FLEET_VIEWS, waiting: 0, stay: Stay::Long },
            bodies: Limits { places: BODIES, waiting: BODIES_WAITING, stay: Stay::Long },
            reads: Limits { places: (cores * READS_A_CORE).max(LEAST_READS), waiting: READS_WAITING, stay: Stay::Long },
            answers: Limits { places: ANSWERS, waiting: ANSWERS_WAITING, stay: Stay::Long },
            exports: Limits { places: EXPORTS, waiting: EXPORTS_WAITING, stay: Stay::Long },
            overviews: Limits { places: OVERVIEWS, waiting: OVERVIEWS_WAITING, stay: Stay::Long },
            outputs: Limits { places: OUTPUTS, waiting: 0, stay: Stay::Long },
            listings: Limits { places: LISTINGS, waiting: LISTINGS_WAITING, stay: Stay::Long },
            searches: Limits { places: SEARCHES, waiting: SEARCHES_WAITING, stay: Stay::Long },
            enrolments: Limits { places: ENROLMENTS, waiting: ENROLMENTS_WAITING, stay: Stay::Long },
            downloads: Limits { places: DOWNLOADS, waiting: DOWNLOADS_WAITING, stay: Stay::Long },
            sign_ins: Limits { places: SIGN_INS, waiting: SIGN_INS_WAITING, stay: Stay::Long },
            logouts: Limits { places: LOGOUTS, waiting: LOGOUTS_WAITING, stay: Stay::Long },
            finished_sign_ins: FINISHED_SIGN_INS,
        }
    }
}

impl Sizes {
    /// The same, with no more answers of the history and output of commands than the memory budget has room for.
    pub fn within(mut self, memory_budget: u64) -> Self {
        let room = |part: u64, bytes: u64| usize::try_from(memory_budget / part / bytes).unwrap_or(usize::MAX);
        let Self { answers, exports, overviews, outputs, .. } = &mut self;
        answers.places = answers.places.min(room(4, ANSWER_BYTES).max(LEAST_ANSWERS));
        exports.places = exports.places.min(room(2, EXPORT_BYTES).max(LEAST_EXPORTS));
        overviews.places = overviews.places.min(room(4, EXPORT_BYTES).max(LEAST_OVERVIEWS));
        outputs.places = outputs.places.min(room(4, OUTPUT_BYTES as u64).max(LEAST_OUTPUTS));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * 1024 * 1024;

    #[test]
    fn one_account_holds_less_of_the_history_than_the_memory_budget() {
        for budget in [GIB, 2 * GIB, 16 * GIB, 256 * GIB] {
            let Sizes { answers, exports, overviews, .. } = Sizes::default().within(budget);

            // A share gets at most half of the places.
            let half = |limits: Limits| limits.places.div_ceil(2) as u64;
            let most = half(answers) * ANSWER_BYTES + (half(exports) + half(overviews)) * EXPORT_BYTES;
            assert!(most < budget, "{most} of {budget}");
        }
    }

    #[test]
    fn on_a_small_machine_answers_wait_no_longer_than_their_reads() {
        let sizes = Sizes::default().within(1);

        assert_eq!((sizes.answers.places, sizes.exports.places), (LEAST_ANSWERS, LEAST_READS));
        assert_eq!(sizes.overviews.places, LEAST_READS);
    }

    #[test]
    fn the_output_of_commands_fills_a_quarter_of_the_memory_budget() {
        let places = [1, GIB, 256 * GIB].map(|budget| Sizes::default().within(budget).outputs.places);

        assert_eq!(places, [LEAST_OUTPUTS, 4_096, OUTPUTS]);
    }

    #[test]
    fn a_smaller_pool_stays_as_it_is() {
        let mut sizes = Sizes::default();
        (sizes.answers.places, sizes.exports.places) = (3, 2);

        let sizes = sizes.within(u64::MAX);

        assert_eq!((sizes.answers.places, sizes.exports.places), (3, 2));
    }
}
