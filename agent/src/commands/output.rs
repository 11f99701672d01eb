//! Stores the beginning and the end of a command's output, and omits the middle of a long one.
//!
//! Both streams are one text, in the order in which they were read. An offset in it counts the bytes from its beginning,
//! omitted ones included. So every reader knows what is missing, and can begin again at any time.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use signalbox_protocol::agent::Stream;

/// The service stores as much of one command.
const KEPT_BYTES: usize = 1 << 20;

/// A part of the text that came from one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub offset: u64,
    pub stream: Stream,
    pub text: String,
}

impl Piece {
    /// The offset after it.
    pub fn end(&self) -> u64 {
        self.offset + self.text.len() as u64
    }
}

#[derive(Debug)]
pub struct Output {
    kept: usize,
    /// The first half of what is stored.
    head: Span,
    /// The text after it, and when that is too long, only its end.
    tail: Span,
}

impl Default for Output {
    fn default() -> Self {
        Self::keeping(KEPT_BYTES)
    }
}

impl Output {
    fn keeping(kept: usize) -> Self {
        Self { kept, head: Span::default(), tail: Span::default() }
    }

    /// The same output, restored from all of its pieces.
    pub fn of(pieces: &[Piece]) -> Self {
        let mut output = Self::default();
        for piece in pieces {
            if piece.offset > output.end() {
                output.tail.start = piece.offset;
            }
            output.push(piece.stream, &piece.text);
        }
        output
    }

    /// Adds what was read last.
    pub fn push(&mut self, stream: Stream, text: &str) {
        let room = if self.tail.is_unused() { self.kept / 2 - self.head.bytes.len() } else { 0 };
        let (first, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push(stream, first);
        if rest.is_empty() {
            return;
        }
        if self.tail.is_unused() {
            self.tail.start = self.head.end();
        }
        let most = self.kept - self.head.bytes.len();
        // Room is made first, so that the buffer never grows beyond what it stores.
        self.tail.keep_last(most.saturating_sub(rest.len()));
        self.tail.push(stream, rest);
        self.tail.keep_last(most);
    }

    /// The length of the whole text in bytes.
    pub fn end(&self) -> u64 {
        self.head.end().max(self.tail.end())
    }

    /// The length of the stored text in bytes.
    pub fn kept_bytes(&self) -> usize {
        let runs = self.head.runs.len() + self.tail.runs.len();
        self.head.bytes.len() + self.tail.bytes.len() + runs * size_of::<Run>()
    }

    /// Whether its middle was omitted.
    pub fn is_truncated(&self) -> bool {
        self.tail.start > self.head.end()
    }

    /// Whether the text after `from` may still be omitted.
    pub fn may_lose(&self, from: u64) -> bool {
        from >= self.head.end() && !self.tail.is_unused()
    }

    /// The next piece after `from`, of at most `most` bytes (4 or more: room for any character). None at the end.
    pub fn piece(&self, from: u64, most: usize) -> Option<Piece> {
        self.head.piece(from, most).or_else(|| self.tail.piece(from, most))
    }

    /// All of the stored text.
    pub fn pieces(&self) -> Vec<Piece> {
        let next = |from: u64| self.piece(from, self.kept.max(4));
        std::iter::successors(next(0), |piece| next(piece.end())).collect()
    }
}

/// Text without gaps.
#[derive(Debug, Default)]
struct Span {
    /// The offset of its first byte.
    start: u64,
    bytes: VecDeque<u8>,
    /// The streams of its parts.
    runs: VecDeque<Run>,
}

#[derive(Debug)]
struct Run {
    end: u64,
    stream: Stream,
}

impl Span {
    /// Whether nothing was ever added to it, nor omitted before it.
    fn is_unused(&self) -> bool {
        self.start == 0 && self.bytes.is_empty()
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn push(&mut self, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        self.bytes.extend(text.as_bytes());
        let end = self.end();
        match self.runs.back_mut() {
            Some(run) if run.stream == stream => run.end = end,
            _ => self.runs.push_back(Run { end, stream }),
        }
    }

    /// Removes the oldest characters until at most this many bytes are left.
    fn keep_last(&mut self, most: usize) {
        let mut excess = self.bytes.len().saturating_sub(most);
        if excess == 0 {
            return;
        }
        while self.bytes.get(excess).is_some_and(|byte| is_within_character(*byte)) {
            excess += 1;
        }
        self.bytes.drain(..excess);
        self.start += excess as u64;
        while self.runs.pop_front_if(|run| run.end <= self.start).is_some() {}
    }

    fn piece(&self, from: u64, most: usize) -> Option<Piece> {
        let offset = from.max(self.start);
        let run = self.runs.get(self.runs.partition_point(|run| run.end <= offset))?;
        let first = usize::try_from(offset - self.start).ok()?;
        let mut end = usize::try_from(run.end - self.start).ok()?.min(first.saturating_add(most));
        while self.bytes.get(end).is_some_and(|byte| is_within_character(*byte)) {
            end -= 1;
        }
        let bytes = self.bytes.range(first..end).copied().collect();
        // Only whole characters are added and removed.
        let text = String::from_utf8(bytes).unwrap_or_default();
        (!text.is_empty()).then_some(Piece { offset, stream: run.stream, text })
    }
}

/// Whether this byte is within a UTF-8 character.
fn is_within_character(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use signalbox_protocol::agent::Stream::{Stderr, Stdout};

    use super::*;

    fn piece(offset: u64, stream: Stream, text: &str) -> Piece {
        Piece { offset, stream, text: text.to_owned() }
    }

    #[test]
    fn a_short_output_is_kept_whole_with_its_streams_in_order() {
        let mut output = Output::keeping(16);
        for (stream, text) in [(Stdout, "one"), (Stdout, "two"), (Stderr, "thr€e"), (Stdout, ".")] {
            output.push(stream, text);
        }

        assert!(!output.is_truncated());
        let pieces =
            vec![piece(0, Stdout, "onetwo"), piece(6, Stderr, "th"), piece(8, Stderr, "r€e"), piece(13, Stdout, ".")];
        assert_eq!(output.pieces(), pieces);
    }

    #[test]
    fn the_middle_of_a_long_output_is_left_out() {
        let mut output = Output::keeping(8);
        for text in ["abc", "defghi", "jklmnop"] {
            output.push(Stdout, text);
        }

        assert!(output.is_truncated());
        assert_eq!(output.end(), 16);
        assert_eq!(output.pieces(), vec![piece(0, Stdout, "abcd"), piece(12, Stdout, "mnop")]);
        assert_eq!(output.piece(7, 4), Some(piece(12, Stdout, "mnop")));
    }

    #[test]
    fn the_bound_is_exact_even_where_a_character_crosses_the_half() {
        let mut output = Output::keeping(8);
        output.push(Stdout, "abc€de");

        assert_eq!(output.end(), 8);
        assert!(!output.is_truncated());
        assert_eq!(output.pieces(), vec![piece(0, Stdout, "abc"), piece(3, Stdout, "€de")]);
    }

    #[test]
    fn a_piece_never_ends_within_a_character() {
        let mut output = Output::keeping(64);
        output.push(Stdout, "ab€€");

        assert_eq!(output.piece(0, 4), Some(piece(0, Stdout, "ab")));
        assert_eq!(output.piece(2, 4), Some(piece(2, Stdout, "€")));
        assert_eq!(output.piece(8, 4), None);
    }

    #[test]
    fn an_empty_output_has_no_piece() {
        assert_eq!(Output::default().piece(0, 4), None);
        assert_eq!(Output::default().end(), 0);
        assert_eq!(Output::of(&[]).pieces(), Vec::new());
    }

    #[test]
    fn memory_stays_within_twice_what_is_kept() {
        let mut output = Output::default();
        let text = "x".repeat(40_000);
        (0..200).for_each(|_| output.push(Stdout, &text));

        assert!(output.head.bytes.capacity() + output.tail.bytes.capacity() <= 2 * KEPT_BYTES);
        assert_eq!(output.end(), 8_000_000);
    }

    fn streams() -> impl Strategy<Value = Vec<(bool, String)>> {
        proptest::collection::vec((any::<bool>(), "[a-c€ä😀]{0,9}"), 0..30)
    }

    proptest! {
        #[test]
        fn the_beginning_and_the_end_are_kept(written in streams(), kept in 8_usize..80, most in 4_usize..12) {
            let mut output = Output::keeping(kept);
            let (mut text, mut whose) = (String::new(), Vec::new());
            for (is_error, part) in &written {
                let stream = if *is_error { Stderr } else { Stdout };
                output.push(stream, part);
                text.push_str(part);
                whose.extend(std::iter::repeat_n(stream, part.len()));
            }

            let next = |from: u64| output.piece(from, most);
            let pieces: Vec<Piece> = std::iter::successors(next(0), |piece| next(piece.end())).collect();

            for piece in &pieces {
                let range = usize::try_from(piece.offset).unwrap()..usize::try_from(piece.end()).unwrap();
                prop_assert_eq!(&text[range.clone()], piece.text.as_str());
                prop_assert!(whose[range].iter().all(|stream| *stream == piece.stream));
            }
            let gaps: Vec<u64> = pieces.windows(2).map(|two| two[1].offset - two[0].end()).filter(|gap| *gap > 0).collect();
            let sum: usize = pieces.iter().map(|piece| piece.text.len()).sum();
            prop_assert_eq!(output.end(), text.len() as u64);
            prop_assert_eq!(pieces.last().map_or(0, Piece::end), text.len() as u64);
            prop_assert_eq!(gaps.len(), usize::from(output.is_truncated()));
            prop_assert_eq!(output.is_truncated(), text.len() > kept);
            // At each end a character of up to three bytes may not fit.
            prop_assert!(sum <= kept && sum + 6 >= text.len().min(kept), "{} of {}", sum, kept);
            prop_assert_eq!(Output { kept, ..Output::of(&output.pieces()) }.end(), output.end());
        }
    }

    #[test]
    fn an_output_made_again_from_its_pieces_is_the_same() {
        let mut output = Output::default();
        for number in 0..300_000 {
            output.push(if number % 3 == 0 { Stderr } else { Stdout }, "twelve bytes");
        }

        let again = Output::of(&output.pieces());

        assert_eq!(again.pieces(), output.pieces());
        assert_eq!((again.end(), again.is_truncated()), (output.end(), true));
    }
}
