//! Keeps the beginning and the end of a command's output.
//!
//! Pure. Output arrives in pieces, each with its offset in the whole (both streams together, in the order of arrival). The
//! first half mebibyte and the latest half mebibyte are kept; of the part between them only the length is known. What the first
//! half does not use, as before a character that crosses its end, belongs to the second: a mebibyte is kept whole. A reader holds
//! nothing but an offset: it continues from there, and learns how many bytes it missed.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use signalbox_protocol::agent::Stream;

use crate::store::Command;

/// Bytes of text that are kept of the beginning, and at least as many again of the end.
pub const HALF: usize = 512 * 1024;

/// Pieces that are kept in each half. If there were more, they would be so short that their overhead exceeds their text.
const MAX_PIECES: usize = 16 * 1024;

/// Adjacent pieces of one stream are joined up to this length.
const MERGED_BYTES: usize = 16 * 1024;

/// Bytes of memory that a piece takes besides its text.
const PIECE_BYTES: usize = 64;

/// Bytes of memory that the end may take in any case: it says why a command failed.
const LEAST_TAIL: usize = 8 * 1024;

/// Some text of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its offset: the bytes of output before it.
    pub offset: u64,
    pub stream: Stream,
    pub text: String,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset.saturating_add(bytes(&self.text))
    }
}

/// The kept part of a command's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    head: Half,
    tail: Half,
    /// Whether the head accepts no more.
    is_head_full: bool,
    /// The offset at which the next piece is expected.
    end: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Half {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

/// What a reader gets next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This many bytes were not kept.
    LeftOut(u64),
    Piece(Piece),
}

impl Output {
    /// Adds a piece at its offset; `None` means right after the last one. Text that is already known is not added again.
    pub fn add(&mut self, stream: Stream, text: &str, offset: Option<u64>) {
        self.add_within(usize::MAX, stream, text, offset);
    }

    /// As [`Self::add`], for an output that may take `most` bytes of memory: the beginning keeps what it has, and the end the newest
    /// text that fits, or that of [`LEAST_TAIL`].
    pub fn add_within(&mut self, most: usize, stream: Stream, text: &str, offset: Option<u64>) {
        let offset = offset.unwrap_or(self.end);
        if offset.checked_add(bytes(text)).is_none() {
            // No real output is so long.
            return;
        }
        let known = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        // If the known part does not end at a character boundary of this piece, it is not a piece of the same text.
        let Some(new) = text.get(known..).filter(|new| !new.is_empty()) else { return };
        let offset = offset.max(self.end);
        self.end = offset.saturating_add(bytes(new));
        let rest = self.fill_head(most, stream, new, offset);
        if let Some(rest) = rest {
            let most = most.saturating_sub(self.head.size()).max(LEAST_TAIL);
            let bytes_left = (2 * HALF).saturating_sub(self.head.bytes);
            // Cut before it is copied: a message may have megabytes.
            let surplus = rest.len().saturating_sub(bytes_left.min(most));
            let newest = rest.get(rest.ceil_char_boundary(surplus)..).unwrap_or_default();
            if surplus > 0 {
                self.tail = Half::default();
            }
            self.tail.push(stream, newest, self.end.saturating_sub(bytes(newest)));
            self.tail.trim(bytes_left, most);
        }
    }

    /// Adds the text that fits into the head, which may take `most` bytes of memory. Returns the rest.
    fn fill_head<'a>(&mut self, most: usize, stream: Stream, text: &'a str, offset: u64) -> Option<&'a str> {
        if self.is_head_full {
            return Some(text);
        }
        let room = HALF.saturating_sub(self.head.bytes).min(most.saturating_sub(self.head.size() + PIECE_BYTES));
        let (fits, rest) = text.split_at(text.floor_char_boundary(room));
        if !fits.is_empty() {
            self.head.push(stream, fits, offset);
        }
        self.is_head_full = !rest.is_empty() || self.head.pieces.len() >= MAX_PIECES;
        (!rest.is_empty()).then_some(rest)
    }

    /// Returns the bytes of memory that it takes at most when this text is added.
    pub fn size_with(&self, text: &str) -> usize {
        let bytes = (self.head.bytes + self.tail.bytes + text.len()).min(2 * HALF);
        // The text may be divided between the two halves.
        bytes + (self.head.pieces.len() + self.tail.pieces.len() + 2) * PIECE_BYTES
    }

    /// Returns the bytes of output, including those that were not kept.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the output from offset `place` on, in order, up to `most` bytes of text and at least one piece, and the offset
    /// after it.
    pub fn read(&self, place: u64, most: usize) -> (Vec<Next>, u64) {
        let (mut found, mut place, mut room) = (Vec::new(), place, most);
        for piece in self.pieces() {
            if piece.end() <= place {
                continue;
            }
            if room == 0 {
                return (found, place);
            }
            if piece.offset > place {
                found.push(Next::LeftOut(piece.offset - place));
                place = piece.offset;
            }
            let seen = usize::try_from(place - piece.offset).unwrap_or(usize::MAX);
            let Some(unseen) = piece.text.get(seen..) else { continue };
            let cut = if unseen.len() > room { unseen.floor_char_boundary(room.max(4)) } else { unseen.len() };
            let text = unseen.get(..cut).unwrap_or(unseen).to_owned();
            room = room.saturating_sub(text.len());
            found.push(Next::Piece(Piece { offset: place, stream: piece.stream, text }));
            place += cut as u64;
            if cut < unseen.len() {
                return (found, place);
            }
        }
        (found, place)
    }

    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.head.pieces.iter().chain(&self.tail.pieces)
    }

    /// Returns whether a part was not kept.
    pub fn is_cut(&self) -> bool {
        let mut place = 0;
        self.pieces().any(|piece| std::mem::replace(&mut place, piece.end()) != piece.offset)
    }

    /// Returns the output as it is stored: the text, and its division into parts.
    pub fn to_stored(&self) -> Stored {
        let mut stored = Stored::default();
        for next in self.read(0, usize::MAX).0 {
            match next {
                Next::LeftOut(bytes) => stored.parts.push(Part::LeftOut(bytes)),
                Next::Piece(piece) => {
                    stored.parts.push(Part::of(piece.stream, piece.text.len()));
                    stored.text.push_str(&piece.text);
                }
            }
        }
        stored
    }
}

impl Half {
    fn push(&mut self, stream: Stream, text: &str, offset: u64) {
        self.bytes += text.len();
        if let Some(last) = self.pieces.back_mut()
            && last.stream == stream
            && last.end() == offset
            && last.text.len() + text.len() <= MERGED_BYTES
        {
            last.text.push_str(text);
            return;
        }
        self.pieces.push_back(Piece { offset, stream, text: text.to_owned() });
    }

    /// Returns the bytes of memory that it takes.
    fn size(&self) -> usize {
        self.bytes + self.pieces.len() * PIECE_BYTES
    }

    /// Drops the oldest text until the half has at most so many bytes and pieces, and takes at most `most` bytes of memory.
    fn trim(&mut self, bytes: usize, most: usize) {
        while self.bytes > bytes || self.pieces.len() > MAX_PIECES || self.size() > most {
            let surplus = self.bytes.saturating_sub(bytes).max(self.size().saturating_sub(most));
            let Some(oldest) = self.pieces.front_mut() else { return };
            let cut = oldest.text.ceil_char_boundary(surplus);
            if cut < oldest.text.len() && self.pieces.len() <= MAX_PIECES {
                if let Some(oldest) = self.pieces.front_mut() {
                    oldest.text.drain(..cut);
                    oldest.offset += cut as u64;
                }
                self.bytes -= cut;
                return;
            }
            self.bytes -= self.pieces.pop_front().map_or(0, |piece| piece.text.len());
        }
    }
}

/// Output as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    pub text: String,
    pub parts: Vec<Part>,
}

/// What the next bytes of the stored text are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    #[serde(rename = "o")]
    Stdout(usize),
    #[serde(rename = "e")]
    Stderr(usize),
    /// No text: this many bytes were left out here.
    #[serde(rename = "x")]
    LeftOut(u64),
}

impl Part {
    fn of(stream: Stream, bytes: usize) -> Self {
        match stream {
            Stream::Stdout => Self::Stdout(bytes),
            Stream::Stderr => Self::Stderr(bytes),
        }
    }
}

/// Output as people read it: both streams in the order of arrival, and each alone. A line marks each part left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    pub output: String,
    pub stdout: String,
    pub stderr: String,
}

impl Stored {
    /// Returns the stored output of a command.
    pub fn of(row: &Command) -> Self {
        Self {
            text: row.output.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned(),
            parts: row.output_parts.as_deref().and_then(|parts| serde_json::from_str(parts).ok()).unwrap_or_default(),
        }
    }

    pub fn render(&self) -> Rendered {
        let (mut rendered, mut at) = (Rendered::default(), 0);
        let mut take = |bytes: usize| {
            let from = at;
            at += bytes;
            self.text.get(from..at).unwrap_or_default()
        };
        for part in &self.parts {
            match *part {
                Part::Stdout(bytes) => {
                    let text = take(bytes);
                    rendered.output.push_str(text);
                    rendered.stdout.push_str(text);
                }
                Part::Stderr(bytes) => {
                    let text = take(bytes);
                    rendered.output.push_str(text);
                    rendered.stderr.push_str(text);
                }
                Part::LeftOut(bytes) => {
                    let marker = format!("\n[... {bytes} bytes left out ...]\n");
                    rendered.output.push_str(&marker);
                    for stream in [&mut rendered.stdout, &mut rendered.stderr] {
                        if !stream.is_empty() {
                            stream.push_str(&marker);
                        }
                    }
                }
            }
        }
        rendered
    }

    /// Restores the output, as far as it was kept.
    pub fn into_output(self) -> Output {
        let (mut output, mut at) = (Output::default(), 0);
        for part in self.parts {
            let (stream, bytes) = match part {
                Part::Stdout(bytes) => (Stream::Stdout, bytes),
                Part::Stderr(bytes) => (Stream::Stderr, bytes),
                Part::LeftOut(bytes) => {
                    output.end = output.end.saturating_add(bytes);
                    output.is_head_full = true;
                    continue;
                }
            };
            output.add(stream, self.text.get(at..at + bytes).unwrap_or_default(), None);
            at += bytes;
        }
        output
    }
}

fn bytes(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
