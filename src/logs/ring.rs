//! The newest lines of a log, for readers that each have their own position. Pure.
//!
//! Every line has a number, and lines that were lost before they arrived have numbers too. So a reader that finds a gap,
//! because lines were lost or because it was too slow, knows how many lines it missed.

use std::collections::VecDeque;

use bytestring::ByteString;

/// The memory of an entry in addition to its text.
const ENTRY_BYTES: usize = 64;

struct Entry {
    text: ByteString,
    /// The number of the line; for a notice the number of the next line.
    number: u64,
    /// The line's cost of the agent's credit; `None` for a notice.
    cost: Option<u64>,
}

/// The newest lines, encoded as the messages that readers get, up to a number of bytes.
pub struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
    most_bytes: usize,
    /// The position of the first entry, counted from the beginning of the log.
    first: u64,
    /// The number of the next line.
    next_number: u64,
    /// The position up to which the fastest reader has read.
    read_to: u64,
}

/// The position of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    position: u64,
    number: u64,
    /// Notices before this position are outdated, and are skipped.
    quiet_to: u64,
}

/// A piece of a log that a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    Text(ByteString),
    /// This many lines are missing here.
    Dropped(u64),
}

/// The result of a read.
#[derive(Debug, Default)]
pub struct RingRead {
    pub pieces: Vec<Piece>,
    /// The credit to return to the agent, for lines that no reader had read before.
    pub credit: u64,
    pub has_more: bool,
}

impl Ring {
    pub fn new(most_bytes: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: 0, most_bytes, first: 0, next_number: 0, read_to: 0 }
    }

    /// Adds a line. Returns the credit of lines that leave the ring unread.
    pub fn push(&mut self, text: ByteString, cost: u64) -> u64 {
        let number = self.next_number;
        self.next_number = number.saturating_add(1);
        self.add(Entry { text, number, cost: Some(cost) })
    }

    /// Skips `count` numbers, for lines that were lost.
    pub fn skip(&mut self, count: u64) {
        self.next_number = self.next_number.saturating_add(count);
    }

    /// Adds a notice. Returns the credit of lines that leave the ring unread.
    pub fn notice(&mut self, text: ByteString) -> u64 {
        self.add(Entry { text, number: self.next_number, cost: None })
    }

    /// Returns the number of the next line.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Returns how many of the lines from the number `from` on it has.
    pub fn lines_from(&self, from: u64) -> u64 {
        let lines = self.entries.iter().rev().filter(|entry| entry.cost.is_some());
        lines.take_while(|line| line.number >= from).count() as u64
    }

    /// Returns a position before the last `tail` lines. Earlier notices are skipped, except the last entry if its notice still
    /// holds.
    pub fn cursor(&self, tail: u32, last_notice: LastNotice) -> Cursor {
        let end = self.end();
        let is_news = last_notice == LastNotice::Stands && self.entries.back().is_some_and(|last| last.cost.is_none());
        let quiet_to = if is_news { end.saturating_sub(1) } else { end };
        let tail = usize::try_from(tail).unwrap_or(usize::MAX);
        let lines = self.entries.iter().enumerate().rev().filter(|(_, entry)| entry.cost.is_some());
        match lines.take(tail).last() {
            Some((index, line)) => Cursor { position: self.first + index as u64, number: line.number, quiet_to },
            None => Cursor { position: quiet_to, number: self.next_number, quiet_to },
        }
    }

    /// Returns what follows the cursor, up to about `most_bytes`, and moves the cursor after it.
    pub fn read(&mut self, cursor: &mut Cursor, most_bytes: usize) -> RingRead {
        let mut taken = RingRead::default();
        let (mut bytes, mut position) = (0, cursor.position.max(self.first));
        let start = usize::try_from(position - self.first).unwrap_or(usize::MAX);
        for entry in self.entries.iter().skip(start) {
            if bytes >= most_bytes {
                taken.has_more = true;
                break;
            }
            note_gap(&mut taken, cursor, entry.number);
            if entry.cost.is_some() || position >= cursor.quiet_to {
                bytes += entry.text.len() + ENTRY_BYTES;
                taken.pieces.push(Piece::Text(entry.text.clone()));
            }
            if let Some(cost) = entry.cost {
                cursor.number = entry.number.saturating_add(1);
                if position >= self.read_to {
                    taken.credit += cost;
                }
            }
            position += 1;
        }
        cursor.position = position;
        self.read_to = self.read_to.max(position);
        if !taken.has_more {
            note_gap(&mut taken, cursor, self.next_number);
        }
        taken
    }

    fn add(&mut self, entry: Entry) -> u64 {
        self.bytes += entry.text.len() + ENTRY_BYTES;
        self.entries.push_back(entry);
        let mut credit = 0;
        while self.bytes > self.most_bytes && self.entries.len() > 1 {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.text.len() + ENTRY_BYTES;
            if self.first >= self.read_to {
                credit += oldest.cost.unwrap_or_default();
            }
            self.first += 1;
        }
        self.read_to = self.read_to.max(self.first);
        credit
    }

    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }
}

/// Whether the last notice still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastNotice {
    Stands,
    Past,
}

/// Adds the lines between the cursor and `number` as missing.
fn note_gap(taken: &mut RingRead, cursor: &mut Cursor, number: u64) {
    if number > cursor.number {
        taken.pieces.push(Piece::Dropped(number - cursor.number));
        cursor.number = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: u64 = 10;

    fn ring_of(count: usize, most_bytes: usize) -> Ring {
        let mut ring = Ring::new(most_bytes);
        for number in 0..count {
            ring.push(number.to_string().into(), COST);
        }
        ring
    }

    fn texts(taken: &RingRead) -> Vec<String> {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => text.to_string(),
            Piece::Dropped(count) => format!("-{count}"),
        };
        taken.pieces.iter().map(text).collect()
    }

    fn read(ring: &mut Ring, cursor: &mut Cursor) -> Vec<String> {
        texts(&ring.read(cursor, usize::MAX))
    }

    #[test]
    fn a_reader_gets_each_line_once() {
        let mut ring = ring_of(3, 10_000);
        let mut cursor = ring.cursor(2, LastNotice::Past);

        assert_eq!(read(&mut ring, &mut cursor), ["1", "2"]);
        assert!(read(&mut ring, &mut cursor).is_empty());
        ring.push("3".into(), COST);
        assert_eq!(read(&mut ring, &mut cursor), ["3"]);
    }

    #[test]
    fn it_counts_the_lines_that_it_has_from_a_number_on() {
        let mut ring = ring_of(3, 3 * (ENTRY_BYTES + 1));
        assert_eq!([0, 1, 3].map(|from| ring.lines_from(from)), [3, 2, 0]);

        ring.push("3".into(), COST);
        assert_eq!(ring.lines_from(0), 3, "the first one has left");
        ring.notice("away".into());
        assert_eq!(ring.lines_from(4), 0, "a notice is not a line");
    }

    #[test]
    fn a_slow_reader_learns_how_many_lines_it_missed() {
        let mut ring = ring_of(1, 4 * (ENTRY_BYTES + 1));
        let mut cursor = ring.cursor(1, LastNotice::Past);
        assert_eq!(read(&mut ring, &mut cursor), ["0"]);

        for number in 1..10 {
            ring.push(number.to_string().into(), COST);
        }

        assert_eq!(read(&mut ring, &mut cursor), ["-5", "6", "7", "8", "9"]);
    }

    #[test]
    fn lost_lines_are_reported_where_they_were() {
        let mut ring = ring_of(1, 10_000);
        let mut cursor = ring.cursor(1, LastNotice::Past);
        ring.skip(7);
        ring.push("8".into(), COST);
        ring.skip(2);

        assert_eq!(read(&mut ring, &mut cursor), ["0", "-7", "8", "-2"]);
        ring.push("11".into(), COST);
        assert_eq!(read(&mut ring, &mut cursor), ["11"]);
    }

    #[test]
    fn credit_is_returned_once_as_the_fastest_reader_reads() {
        let mut ring = ring_of(4, 10_000);
        let (mut slow, mut fast) = (ring.cursor(4, LastNotice::Past), ring.cursor(4, LastNotice::Past));

        assert_eq!(ring.read(&mut fast, 2 * (ENTRY_BYTES + 1)).credit, 2 * COST);
        assert_eq!(ring.read(&mut slow, ENTRY_BYTES + 1).credit, 0);
        assert_eq!(ring.read(&mut slow, usize::MAX).credit, 2 * COST);
        assert_eq!(ring.read(&mut fast, usize::MAX).credit, 0);
    }

    #[test]
    fn lines_that_leave_the_ring_unread_return_their_credit_too() {
        let mut ring = ring_of(2, 2 * (ENTRY_BYTES + 1));
        let mut cursor = ring.cursor(2, LastNotice::Past);

        assert_eq!(ring.push("2".into(), COST), COST);
        assert_eq!(ring.read(&mut cursor, usize::MAX).credit, 2 * COST);
        assert_eq!(ring.push("3".into(), COST), 0);
    }

    #[test]
    fn a_read_is_bounded_and_the_rest_follows() {
        let mut ring = ring_of(5, 10_000);
        let mut cursor = ring.cursor(5, LastNotice::Past);

        let first = ring.read(&mut cursor, 2 * (ENTRY_BYTES + 1));

        assert_eq!((texts(&first), first.has_more), (vec!["0".to_owned(), "1".to_owned()], true));
        assert_eq!(read(&mut ring, &mut cursor), ["2", "3", "4"]);
    }

    #[test]
    fn a_notice_is_not_a_line_and_outdated_ones_are_not_repeated() {
        let mut ring = ring_of(1, 10_000);
        let mut watching = ring.cursor(0, LastNotice::Past);
        ring.notice("away".into());

        let mut late = ring.cursor(10, LastNotice::Stands);
        assert_eq!(read(&mut ring, &mut late), ["0", "away"]);
        ring.push("1".into(), COST);
        let mut later = ring.cursor(10, LastNotice::Past);
        assert_eq!(read(&mut ring, &mut later), ["0", "1"]);
        assert_eq!(read(&mut ring, &mut watching), ["away", "1"]);
        let mut none = ring.cursor(0, LastNotice::Past);
        assert!(read(&mut ring, &mut none).is_empty());
    }
}
