//! Past hours whose samples still arrive, because an agent catches up. Pure.
//!
//! An agent sends an hour within a few seconds, during which the tail may be flushed about once a second for its size. Each
//! sealing reads and writes the whole hour again. So hours that got samples with the last flush wait.

use std::collections::HashSet;

use uuid::Uuid;

use crate::store::history::{Piece, PieceInfo};

/// The growing hours, each with its server.
#[derive(Debug, Default)]
pub struct Growing(HashSet<(i64, Uuid)>);

impl Growing {
    /// Returns the hours of these pieces that are before the present one.
    pub fn of(pieces: &[Piece], present: i64) -> Self {
        let over = pieces.iter().filter(|piece| piece.hour < present);
        Self(over.map(|piece| (piece.hour, piece.server_id)).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the growing hours from those that have to be sealed.
    pub fn leave_out(&self, infos: &mut Vec<PieceInfo>) {
        infos.retain(|info| !self.0.contains(&(info.hour, info.server_id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    fn piece(server_id: Uuid, hour: i64) -> Piece {
        Piece { server_id, hour, number: 1, samples: 1, cells: 1, data: Vec::new(), processes: None }
    }

    #[test]
    fn hours_before_the_present_one_grow_and_wait() {
        let growing = Growing::of(&[piece(ONE, 7), piece(ONE, 8), piece(ONE, 9), piece(OTHER, 9)], 9);
        let info = |(server_id, hour)| PieceInfo { server_id, hour, samples: 1, cells: 1 };
        let mut due: Vec<PieceInfo> = [(ONE, 6), (ONE, 7), (OTHER, 7), (ONE, 9)].map(info).into();

        growing.leave_out(&mut due);

        assert_eq!(due, [(ONE, 6), (OTHER, 7), (ONE, 9)].map(info));
        assert_eq!(growing.len(), 2);
    }
}
