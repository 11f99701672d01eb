//! What is kept of a terminal's output, and the credit of its agent. Pure.

use std::collections::VecDeque;

/// A piece of this size is complete; later output begins another one.
const PIECE_BYTES: usize = 16 * 1024;

/// The newest output of a terminal, in whole characters.
#[derive(Debug)]
pub(super) struct Ring {
    most: u64,
    pieces: VecDeque<String>,
    /// Bytes before the first piece.
    start: u64,
    /// Bytes up to the end.
    end: u64,
}

impl Ring {
    pub fn new(most: u64) -> Self {
        Self { most, pieces: VecDeque::new(), start: 0, end: 0 }
    }

    /// The bytes of all output so far.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds output, and forgets what is too old.
    pub fn push(&mut self, text: &str) {
        match self.pieces.back_mut().filter(|piece| piece.len() + text.len() <= PIECE_BYTES) {
            Some(piece) => piece.push_str(text),
            None => self.pieces.push_back(text.to_owned()),
        }
        self.end += length(text);
        while self.end - self.start > self.most {
            let Some(piece) = self.pieces.pop_front() else { return };
            self.start += length(&piece);
        }
    }

    /// The output after so many bytes, as far as it is kept: where it begins, and its pieces.
    pub fn after(&self, offset: u64) -> (u64, Vec<String>) {
        let mut place = self.start;
        let (mut begins, mut found) = (None, Vec::new());
        for piece in &self.pieces {
            let skipped = usize::try_from(offset.saturating_sub(place)).unwrap_or(usize::MAX);
            // No character is cut in two.
            let skipped = (skipped..piece.len()).find(|index| piece.is_char_boundary(*index)).unwrap_or(piece.len());
            let rest = piece.get(skipped..).unwrap_or_default();
            if !rest.is_empty() {
                begins.get_or_insert(place + length(piece) - length(rest));
                found.push(rest.to_owned());
            }
            place += length(piece);
        }
        (begins.unwrap_or(self.end), found)
    }
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// What the agent of a terminal may still send.
///
/// A client returns credit for all that it takes. What it missed was paid for before: that credit does not go to the agent again.
#[derive(Debug)]
pub(super) struct Credit {
    first: u64,
    left: u64,
    /// Credit of the client that the agent has already.
    paid: u64,
}

impl Credit {
    pub fn new(first: u64) -> Self {
        Self { first, left: first, paid: 0 }
    }

    /// Output of so many bytes came. Returns whether there was credit; one message may be larger than the rest.
    pub fn take(&mut self, bytes: u64) -> bool {
        let had_credit = self.left > 0 || bytes == 0;
        self.left = self.left.saturating_sub(bytes);
        had_credit
    }

    /// The client returns so much. Returns what goes to the agent.
    pub fn grant(&mut self, bytes: u64) -> u64 {
        let paid = self.paid.min(bytes);
        self.paid -= paid;
        self.left += bytes - paid;
        bytes - paid
    }

    /// Another client comes, and gets so many bytes that the first may not have taken. Returns what goes to the agent now.
    ///
    /// The agent shall have the first credit, less what the client has to take.
    pub fn resume(&mut self, missed: u64) -> u64 {
        let (has, shall_have) = (self.left + missed, self.first);
        self.paid = has.saturating_sub(shall_have);
        let more = shall_have.saturating_sub(has);
        self.left += more;
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(ring: &Ring, offset: u64) -> (u64, String) {
        let (begins, pieces) = ring.after(offset);
        (begins, pieces.concat())
    }

    #[test]
    fn what_was_missed_is_returned_from_any_byte() {
        let mut ring = Ring::new(1_000);
        ring.push("one ");
        ring.push("two");

        assert_eq!(kept(&ring, 0), (0, "one two".to_owned()));
        assert_eq!(kept(&ring, 4), (4, "two".to_owned()));
        assert_eq!(kept(&ring, 7), (7, String::new()));
        assert_eq!(kept(&ring, 1_000), (7, String::new()));
    }

    #[test]
    fn the_oldest_output_is_forgotten_in_pieces() {
        let mut ring = Ring::new(40_000);
        for number in 0..10 {
            ring.push(&number.to_string().repeat(10_000));
        }

        let (begins, text) = kept(&ring, 0);

        assert_eq!((ring.end(), begins, text.len()), (100_000, 60_000, 40_000));
        assert!(text.starts_with('6') && text.ends_with('9'));
        assert_eq!(kept(&ring, 95_000), (95_000, "9".repeat(5_000)));
    }

    #[test]
    fn no_character_is_cut_in_two() {
        let mut ring = Ring::new(1_000);
        ring.push("a€b");

        assert_eq!(kept(&ring, 2), (4, "b".to_owned()));
    }

    #[test]
    fn small_outputs_share_a_piece() {
        let mut ring = Ring::new(1_000);
        for _ in 0..500 {
            ring.push("x");
        }

        assert_eq!(ring.after(0).1.len(), 1);
    }

    #[test]
    fn an_agent_that_nobody_reads_has_its_credit_and_no_more() {
        let mut credit = Credit::new(100);

        assert!(credit.take(60) && credit.take(60));
        assert!(!credit.take(1));
    }

    #[test]
    fn a_client_that_comes_back_gives_the_agent_no_more_than_the_first_credit() {
        let mut credit = Credit::new(100);
        credit.take(80);
        assert_eq!(credit.grant(80), 80);
        credit.take(30);

        // It has read 80 of 110 bytes by its own account, and gets 90: the agent has 70 left, and shall have 10.
        assert_eq!(credit.resume(90), 0);
        assert_eq!(credit.grant(90), 30);

        assert_eq!(credit.left, 100);
    }

    #[test]
    fn credit_that_the_lost_client_did_not_return_comes_with_the_next_one() {
        let mut credit = Credit::new(100);
        credit.take(100);

        assert_eq!(credit.resume(40), 60);
        assert_eq!(credit.grant(40), 40);

        assert_eq!(credit.left, 100);
    }
}
