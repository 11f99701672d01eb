//! An engine's log stream as records: what a container wrote to one of its streams at one moment.
//!
//! With a terminal the stream is raw text, one record per line. Without one it consists of frames of eight bytes (which stream,
//! how long), each with a record. A record begins with its time, and ends with a newline unless the line continues in the next
//! one. Pure: bytes in, records out, and never more than one record's bytes stored.

use bytes::{Buf, Bytes, BytesMut};
use signalbox_protocol::Timestamp;

/// Engines split a container's output into pieces of 8 or 16 KiB; no record is longer than a few of these. An endless line of a
/// terminal is split here.
const MAX_RECORD_BYTES: usize = 64 * 1024;
const HEADER_BYTES: usize = 8;
/// Where a terminal's line is split depends on the engine and on timing, but no line shorter than this is: a terminal returns
/// up to 4,095 bytes at a time.
const LONG_LINE_BYTES: usize = 2 * 1024;
/// The longest time: `2026-11-20T09:30:47.123456789+01:00`.
const MOMENT_BYTES: usize = 35;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// A terminal does not distinguish them.
    Terminal,
}

/// A piece of a line, or a whole one with its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub stream: Stream,
    pub timestamp: Option<Timestamp>,
    pub text: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the engine's log stream is malformed")]
pub struct Malformed;

/// The format in which the engine sends a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Framed,
    Raw,
}

/// Splits a stream into records, however it is cut into chunks.
pub struct Frames {
    framing: Framing,
    buffer: BytesMut,
    /// Of the incoming record: its stream and the bytes that are missing.
    pending: Option<(Stream, usize)>,
    /// Whether the raw line continues after its cut, without a time of its own.
    is_cut: bool,
}

impl Frames {
    pub fn new(framing: Framing) -> Self {
        Self { framing, buffer: BytesMut::new(), pending: None, is_cut: false }
    }

    /// Adds the next chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next record. None until more has arrived.
    pub fn next(&mut self) -> Result<Option<Record>, Malformed> {
        match self.framing {
            Framing::Framed => self.next_frame(),
            Framing::Raw => Ok(self.next_line()),
        }
    }

    /// The rest when the stream has ended: a raw line without its newline.
    pub fn rest(&mut self) -> Option<Record> {
        let rest = self.buffer.split().freeze();
        if rest.is_empty() || self.framing == Framing::Framed {
            return None;
        }
        Some(record(Stream::Terminal, rest, self.is_cut))
    }

    fn next_frame(&mut self) -> Result<Option<Record>, Malformed> {
        let (stream, length) = match self.pending {
            Some(pending) => pending,
            None => {
                let Some(header) = self.buffer.get(..HEADER_BYTES) else { return Ok(None) };
                let pending = parse_header(header)?;
                self.buffer.advance(HEADER_BYTES);
                self.pending = Some(pending);
                pending
            }
        };
        if self.buffer.len() < length {
            return Ok(None);
        }
        self.pending = None;
        Ok(Some(record(stream, self.buffer.split_to(length).freeze(), false)))
    }

    fn next_line(&mut self) -> Option<Record> {
        let end = self.buffer.iter().take(MAX_RECORD_BYTES).position(|byte| *byte == b'\n').map(|place| place + 1);
        let length = end.or_else(|| (self.buffer.len() >= MAX_RECORD_BYTES).then_some(MAX_RECORD_BYTES))?;
        let was_cut = std::mem::replace(&mut self.is_cut, end.is_none());
        let mut line = record(Stream::Terminal, self.buffer.split_to(length).freeze(), was_cut);
        if line.text.len() > LONG_LINE_BYTES && !was_cut {
            line.text = without_inner_moments(&line.text);
        }
        Some(line)
    }
}

/// A long line of a terminal has a time before each of its pieces, and nothing marks where those begin. A time and a space in
/// the middle of a line of such a length is hardly ever anything else.
fn without_inner_moments(text: &[u8]) -> Bytes {
    let mut whole = BytesMut::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        match inner_moment(rest) {
            Some(length) => rest = rest.get(length..).unwrap_or_default(),
            None => {
                whole.extend_from_slice(&[*byte]);
                rest = after;
            }
        }
    }
    whole.freeze()
}

fn inner_moment(text: &[u8]) -> Option<usize> {
    // Checking two characters first avoids most of the parsing.
    if text.get(4) != Some(&b'-') || text.get(10) != Some(&b'T') {
        return None;
    }
    let (_, length) = moment(text)?;
    (text.get(length.checked_sub(1)?) == Some(&b' ')).then_some(length)
}

fn parse_header(header: &[u8]) -> Result<(Stream, usize), Malformed> {
    let [stream, 0, 0, 0, length @ ..] = header else { return Err(Malformed) };
    let stream = match stream {
        0 | 1 => Stream::Stdout,
        2 => Stream::Stderr,
        _ => return Err(Malformed),
    };
    let length = u32::from_be_bytes(length.try_into().map_err(|_| Malformed)?);
    let length = usize::try_from(length).map_err(|_| Malformed)?;
    if length > 16 * MAX_RECORD_BYTES { Err(Malformed) } else { Ok((stream, length)) }
}

fn record(stream: Stream, mut text: Bytes, goes_on: bool) -> Record {
    let moment = if goes_on { None } else { moment(&text) };
    if let Some((_, length)) = moment {
        text.advance(length);
    }
    Record { stream, timestamp: moment.map(|(timestamp, _)| timestamp), text }
}

/// The time at the beginning, and its length including the space.
fn moment(text: &[u8]) -> Option<(Timestamp, usize)> {
    let end = text.iter().take(MOMENT_BYTES + 1).position(|byte| matches!(byte, b' ' | b'\n'))?;
    let timestamp = Timestamp::parse(std::str::from_utf8(text.get(..end)?).ok()?)?;
    // An empty line may lack the space; its newline is no part of the time.
    let blank = usize::from(text.get(end) == Some(&b' '));
    Some((timestamp, end + blank))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: &str = "2026-11-20T09:30:47.123456789Z";

    fn at() -> Option<Timestamp> {
        Timestamp::parse("2026-11-20T09:30:47.123Z")
    }

    fn frame(stream: u8, text: &[u8]) -> Vec<u8> {
        [&[stream, 0, 0, 0], &u32::try_from(text.len()).unwrap().to_be_bytes()[..], text].concat()
    }

    fn all(frames: &mut Frames) -> Vec<(Stream, Option<Timestamp>, String)> {
        std::iter::from_fn(|| frames.next().unwrap())
            .map(|record| (record.stream, record.timestamp, String::from_utf8_lossy(&record.text).into_owned()))
            .collect()
    }

    #[test]
    fn frames_are_found_however_the_stream_is_cut() {
        let bytes = [
            frame(1, format!("{MOMENT} out\n").as_bytes()),
            frame(2, b"2026-11-20T10:30:47.123+01:00 err\n"),
            frame(1, format!("{MOMENT} \n").as_bytes()),
            frame(1, b""),
        ]
        .concat();

        for size in [1, 3, 8, bytes.len()] {
            let mut frames = Frames::new(Framing::Framed);
            let mut found = Vec::new();
            for chunk in bytes.chunks(size) {
                frames.push(chunk);
                found.extend(all(&mut frames));
            }

            let expected = [
                (Stream::Stdout, at(), "out\n".to_owned()),
                (Stream::Stderr, at(), "err\n".to_owned()),
                (Stream::Stdout, at(), "\n".to_owned()),
                (Stream::Stdout, None, String::new()),
            ];
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn malformed_frames_are_refused_before_they_are_buffered() {
        for header in [[3, 0, 0, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0xff, 0, 0, 0]] {
            let mut frames = Frames::new(Framing::Framed);
            frames.push(&header);

            assert_eq!(frames.next(), Err(Malformed), "{header:?}");
        }
    }

    #[test]
    fn a_terminals_lines_need_no_frames() {
        let mut frames = Frames::new(Framing::Raw);
        frames.push(format!("{MOMENT} one\r\n{MOMENT} t").as_bytes());

        assert_eq!(all(&mut frames), [(Stream::Terminal, at(), "one\r\n".to_owned())]);
        frames.push(b"wo");
        assert_eq!(all(&mut frames), []);
        let rest = frames.rest().map(|record| (record.timestamp, record.text));
        assert_eq!(rest, Some((at(), Bytes::from_static(b"two"))));
        assert_eq!(frames.rest(), None);
    }

    #[test]
    fn the_pieces_of_a_terminals_long_line_lose_their_moments() {
        for piece in [4_095, 8_192, 16_384] {
            let text = "x".repeat(40_000);
            let pieces =
                text.as_bytes().chunks(piece).map(|piece| format!("{MOMENT} {}", String::from_utf8_lossy(piece)));
            let mut frames = Frames::new(Framing::Raw);
            frames.push(pieces.collect::<String>().as_bytes());
            frames.push(b"\r\n");

            assert_eq!(all(&mut frames), [(Stream::Terminal, at(), text + "\r\n")], "pieces of {piece}");
        }
    }

    #[test]
    fn a_moment_that_an_ordinary_line_names_stays() {
        let mut frames = Frames::new(Framing::Raw);
        frames.push(format!("{MOMENT} since {MOMENT} nothing\n").as_bytes());

        assert_eq!(all(&mut frames), [(Stream::Terminal, at(), format!("since {MOMENT} nothing\n"))]);
    }

    #[test]
    fn an_endless_line_of_a_terminal_is_cut_and_never_buffered() {
        let mut frames = Frames::new(Framing::Raw);
        frames.push(format!("{MOMENT} ").as_bytes());
        let mut kept = 0;
        for _ in 0..100 {
            frames.push(&[b'x'; 8192]);
            while let Some(record) = frames.next().unwrap() {
                kept += record.text.len();
            }
            assert!(frames.buffer.len() <= MAX_RECORD_BYTES);
        }
        frames.push(b"\n");

        kept += frames.next().unwrap().unwrap().text.len();

        assert_eq!(kept, 100 * 8192 + 1);
    }
}
