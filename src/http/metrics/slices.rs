//! The pieces of a long answer in slices, as they are handed over to the HTTP library.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};

use crate::shares::Revocable;

/// From this many points on, an answer is sent in slices: some megabyte.
pub const SLICED_FROM: usize = 20_000;

/// The length of a slice. The library keeps what it has until the client takes it, also when the rest was taken away: a piece of many
/// megabytes would stay. And a client that takes this much in time keeps its answer, however long the pieces are.
const SLICE: usize = 64 * 1024;

/// Takes the next slice of what is left of a piece.
pub fn next_slice(left: &mut Bytes) -> Option<Bytes> {
    (!left.is_empty()).then(|| left.split_to(left.len().min(SLICE)))
}

fn in_slices(piece: Vec<u8>) -> impl Iterator<Item = Bytes> {
    let mut left = Bytes::from(piece);
    std::iter::from_fn(move || next_slice(&mut left))
}

type Slices = Box<dyn Iterator<Item = Bytes> + Send>;

/// Pieces as a client takes them. One that reads steadily may take as long as it needs; for one that takes nothing for `pause` they end,
/// and what they are made from is dropped.
pub fn sliced(
    pieces: impl Iterator<Item = Vec<u8>> + Send + 'static,
    pause: Duration,
) -> impl Stream<Item = io::Result<Bytes>> {
    let slices: Slices = Box::new(pieces.flat_map(in_slices));
    let rest = Revocable::new(slices, Duration::MAX, pause);
    stream::unfold(rest, |mut rest| async move {
        let slice = rest.piece(async |slices: &mut Slices| slices.next()).await.transpose()?;
        Some((slice, rest))
    })
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
