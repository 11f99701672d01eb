//! Ids of requests: UUIDs of version 7, which sort by time.
//!
//! A worker fetches random bytes for many ids at once. Otherwise each request would wait for the system's generator,
//! and for the counter that all workers of the process share.

use std::cell::RefCell;

use signalbox_protocol::Timestamp;
use uuid::{Builder, Uuid};

use crate::random;

/// Random bytes in one id.
const BYTES: usize = 10;

/// Bytes that are fetched at once: for 64 ids.
const POOL: usize = 64 * BYTES;

thread_local! {
    static RANDOM: RefCell<Random> = const { RefCell::new(Random { bytes: [0; POOL], used: POOL }) };
}

/// Random bytes, each used for only one id.
struct Random {
    bytes: [u8; POOL],
    used: usize,
}

impl Random {
    fn take(&mut self) -> Option<[u8; BYTES]> {
        if self.used >= POOL {
            self.bytes = random::bytes().ok()?;
            self.used = 0;
        }
        let taken = self.bytes.get(self.used..)?.first_chunk().copied();
        self.used += BYTES;
        taken
    }
}

/// A new id, unique among all requests.
pub fn fresh() -> Uuid {
    let Some(random) = RANDOM.with_borrow_mut(Random::take) else { return Uuid::now_v7() };
    let millis = u64::try_from(Timestamp::now().as_millis()).unwrap_or_default();
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use uuid::Version;

    use super::*;

    #[test]
    fn ids_are_of_version_7_carry_the_present_time_and_do_not_repeat() {
        let before = Timestamp::now().as_millis();

        let ids: HashSet<Uuid> = (0..1_000).map(|_| fresh()).collect();

        assert_eq!(ids.len(), 1_000);
        let after = Timestamp::now().as_millis();
        for id in ids {
            assert_eq!(id.get_version(), Some(Version::SortRand));
            let (seconds, nanos) = id.get_timestamp().unwrap().to_unix();
            let millis = i64::try_from(seconds).unwrap() * 1_000 + i64::from(nanos) / 1_000_000;
            assert!((before..=after).contains(&millis), "{millis} is not between {before} and {after}");
        }
    }
}
