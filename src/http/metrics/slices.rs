//! The pieces of a long answer in slices, as they are handed over to the HTTP library.

use bytes::Bytes;

/// The length of a slice. The library keeps what it has until the client takes it, also when the rest was taken away: a piece of many
/// megabytes would stay. And a client that takes this much in time keeps its answer, however long the pieces are.
const SLICE: usize = 64 * 1024;

/// Takes the next slice of what is left of a piece.
pub fn next_slice(left: &mut Bytes) -> Option<Bytes> {
    (!left.is_empty()).then(|| left.split_to(left.len().min(SLICE)))
}

pub fn in_slices(piece: Vec<u8>) -> impl Iterator<Item = Bytes> {
    let mut left = Bytes::from(piece);
    std::iter::from_fn(move || next_slice(&mut left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_cut_into_slices_and_an_empty_one_has_none() {
        let piece: Vec<u8> = (0..=u8::MAX).cycle().take(2 * SLICE + 1).collect();

        let slices: Vec<Bytes> = in_slices(piece.clone()).collect();

        assert_eq!(slices.iter().map(Bytes::len).collect::<Vec<_>>(), [SLICE, SLICE, 1]);
        assert_eq!(slices.concat(), piece);
        assert_eq!(in_slices(Vec::new()).count(), 0);
    }
}
