//! The memory that the output of commands takes together, until it is stored: places of a pool that accounts share.

use uuid::Uuid;

use crate::shares::sizes::OUTPUT_BYTES;
use crate::shares::{Gate, Permit, Share};

/// Bytes of memory that each output may take without a place: hardly more than the row of its command takes.
const WITHOUT_PLACES: usize = 8 * 1024;

/// The places of one output.
pub(super) struct OutputPlaces {
    pool: Gate,
    share: Share,
    permits: Vec<Permit>,
}

impl OutputPlaces {
    /// The places of a command on a server of this account.
    pub fn new(pool: &Gate, owner_id: Uuid) -> Self {
        Self { pool: pool.clone(), share: Share::Account(owner_id), permits: Vec::new() }
    }

    /// Takes the places that this many bytes need, as far as the account can have them. Returns for how many bytes there is room.
    pub fn reserve(&mut self, bytes: usize) -> usize {
        let needed = bytes.saturating_sub(WITHOUT_PLACES).div_ceil(OUTPUT_BYTES);
        while self.permits.len() < needed
            && let Ok(permit) = self.pool.try_enter(self.share)
        {
            self.permits.push(permit);
        }
        WITHOUT_PLACES + self.permits.len() * OUTPUT_BYTES
    }
}
