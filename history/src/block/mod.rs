//! A frame as bytes: the format of blocks and pieces, and of their parts. Pure.
//!
//! A block consists of parts of about 32 KiB, each with a checksum. The first part holds the head (which rows have which
//! columns, and where each column is) and the first columns; a column never spans two parts. So a reader of one series reads
//! the first part and at most one more, and unpacks that one column.
//!
//! ```text
//! part    version, body, CRC-32 of both (little endian)
//! body 0  length of the head, head, columns          body n  columns
//! head    grain, rows, layout, and of each vector its length, twice, plus 1 where it begins a part
//! layout  predictions, schemas, entries, open series, shapes, runs    version 1: entries, shapes, runs
//! ```
//!
//! Version 2 describes its columns: the fields with kind and scale, the open series, and how columns were predicted from
//! others. So a reader that does not know a metric keeps its values. Version 1 describes nothing; it is read with the tables
//! that every build of it had.

mod derived;
mod layout;
#[cfg(test)]
mod tests;
mod vector;

use derived::Predictions;

use super::frame::{Column, Frame, Granularity, Layout};
use super::wire::{Malformed, Reader, Writer};
use vector::Values;

/// The version that this build writes.
const VERSION: u8 = 2;

/// The versions that this build reads, the newest last.
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=VERSION;

/// The writer begins a new part after this many bytes.
const PART_BYTES: usize = 32 * 1024;

/// The most rows that a head may claim: many times what an hour, a day or a month has.
const MAX_ROWS: usize = 1 << 24;

/// The most integers of a block, because a few bytes can claim any number. A month of quarter-hours with as many names as a
/// block may hold, all of them containers, needs two thirds of it.
const MAX_CELLS: usize = 1 << 28;

/// Why a block could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The bytes are damaged, with the reason.
    #[error("a block of the history is damaged: {0}")]
    Corrupt(&'static str),
    /// The block is of a version that this build does not know.
    #[error("a block of the history has the unknown version {0}")]
    Version(u8),
    /// Pcodec failed, with its message.
    #[error("a column of the history could not be packed or unpacked: {0}")]
    Pack(String),
}

impl From<Malformed> for BlockError {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Corrupt(what)
    }
}

/// Writes a frame as parts, at least one.
pub fn write(mut frame: Frame) -> Result<Vec<Vec<u8>>, BlockError> {
    let predictions = derived::predictions();
    derived::take_off(&mut frame, &predictions);
    let mut head = Writer::default();
    head.number(u64::from(frame.granularity == Granularity::Rolled));
    head.number(frame.times.len() as u64);
    layout::write(&frame.layout, &predictions, &mut head);
    let mut bodies = vec![Writer::default()];
    let mut vector = Writer::default();
    let counts = (frame.granularity == Granularity::Rolled).then_some(&frame.counts);
    let leading = [&frame.times].into_iter().chain(counts).map(|values| (values, Values::Integers));
    let stats = frame.columns.iter().zip(&frame.vectors).flat_map(|(column, stats)| {
        let floats = frame.granularity.floats(column.field);
        let what = move |place| if place < floats { Values::Floats } else { Values::Integers };
        stats.iter().flatten().enumerate().map(move |(place, values)| (values, what(place)))
    });
    for (values, what) in leading.chain(stats) {
        vector.0.clear();
        vector::write(values, what, &mut vector)?;
        let begins_part = bodies.last().is_some_and(|body| body.0.len() >= PART_BYTES);
        if begins_part {
            bodies.push(Writer::default());
        }
        head.number(vector.0.len() as u64 * 2 + u64::from(begins_part));
        if let Some(body) = bodies.last_mut() {
            body.0.extend_from_slice(&vector.0);
        }
    }
    let mut head = Some(head);
    Ok(bodies.into_iter().map(|body| part(head.take(), &body)).collect())
}

fn part(head: Option<Writer>, body: &Writer) -> Vec<u8> {
    let mut part = Writer(vec![VERSION]);
    if let Some(head) = head {
        part.number(head.0.len() as u64);
        part.0.extend_from_slice(&head.0);
    }
    part.0.extend_from_slice(&body.0);
    let checksum = crc32fast::hash(&part.0);
    part.0.extend_from_slice(&checksum.to_le_bytes());
    part.0
}

/// Checks a part and returns its version and body.
fn open(part: &[u8]) -> Result<(u8, &[u8]), BlockError> {
    let (rest, checksum) = part.split_last_chunk::<4>().ok_or(BlockError::Corrupt("it ends too early"))?;
    let (version, body) = rest.split_first().ok_or(BlockError::Corrupt("it ends too early"))?;
    if !VERSIONS.contains(version) {
        return Err(BlockError::Version(*version));
    }
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
        return Err(BlockError::Corrupt("the checksum is another"));
    }
    Ok((*version, body))
}

/// The head of a block: everything but the values.
#[derive(Debug, Clone)]
pub struct Head {
    /// Whether rows are samples or aggregates.
    pub granularity: Granularity,
    /// Which rows have which columns.
    pub layout: Layout,
    /// The layout's columns.
    pub columns: Vec<Column>,
    predictions: Predictions,
    rows: usize,
    /// Times, counts and the stats of the columns, in stored order.
    vectors: Vec<VectorRange>,
    /// The offset at which the columns begin in the first part's body.
    body: usize,
}

/// The position of a vector.
#[derive(Debug, Clone, Copy)]
struct VectorRange {
    part: usize,
    start: usize,
    length: usize,
    /// The number of its values.
    values: usize,
}

impl Head {
    /// Reads the head from the first part.
    pub fn read(first_part: &[u8]) -> Result<Self, BlockError> {
        let (version, body) = open(first_part)?;
        let mut input = Reader(body);
        let length = input.count(body.len())?;
        let mut head = Reader(input.take(length)?);
        let body_start = body.len() - input.0.len();
        let granularity = if head.count(1)? == 1 { Granularity::Rolled } else { Granularity::Raw };
        let rows = head.count(MAX_ROWS)?;
        let (layout, predictions) = match version {
            1 => (layout::read_version_1(&mut head, rows)?, derived::predictions_of_version_1()),
            _ => layout::read(&mut head, rows)?,
        };
        layout::check_size(&layout, granularity, head.0.len())?;
        let columns = layout.columns();
        let mut vectors = Vec::with_capacity(columns.len() + 2);
        let (mut part, mut start) = (0, 0);
        let mut place = |values: usize| {
            let written = head.count(usize::MAX)?;
            let length = written / 2;
            if written % 2 == 1 {
                (part, start) = (part + 1, 0);
            }
            vectors.push(VectorRange { part, start, length, values });
            // A head can claim any length; a vector that begins after the end is refused when it is read.
            start = start.saturating_add(length);
            Ok::<(), BlockError>(())
        };
        place(rows)?;
        if granularity == Granularity::Rolled {
            place(rows)?;
        }
        for (column, rows) in columns.iter().zip(layout.rows_with()) {
            let values = rows.iter().map(ExactSizeIterator::len).sum();
            for _ in 0..granularity.stats(column.field) {
                place(values)?;
            }
        }
        Ok(Self { granularity, layout, columns, predictions, rows, vectors, body: body_start })
    }

    /// The parts that hold the wanted columns, without the first.
    pub fn parts(&self, wanted: &impl Fn(&Column) -> bool) -> Vec<usize> {
        let chosen = self.chosen(wanted);
        let mut vectors = self.vectors.iter().skip(self.leading());
        let mut parts: Vec<usize> = Vec::new();
        for (column, is_chosen) in self.columns.iter().zip(chosen) {
            let places = vectors.by_ref().take(self.granularity.stats(column.field));
            parts.extend(places.filter(|_| is_chosen).map(|place| place.part));
        }
        parts.retain(|part| *part > 0);
        parts.dedup();
        parts
    }

    /// The vectors before the columns: times, or times and counts.
    fn leading(&self) -> usize {
        if self.granularity == Granularity::Rolled { 2 } else { 1 }
    }

    /// Whether each column must be read: because it is wanted, or because a wanted one is predicted from it.
    fn chosen(&self, wanted: &impl Fn(&Column) -> bool) -> Vec<bool> {
        let mut chosen: Vec<bool> = self.columns.iter().map(wanted).collect();
        for (place, column) in self.columns.iter().enumerate() {
            if !chosen.get(place).copied().unwrap_or_default() {
                continue;
            }
            let sources = derived::sources(&self.predictions, column.field.number);
            if sources.is_empty() {
                continue;
            }
            let columns = self.columns.iter().zip(&mut chosen).skip(place.saturating_sub(derived::NEARBY));
            let nearby = columns.take(2 * derived::NEARBY);
            nearby
                .filter(|(near, _)| near.of == column.of && sources.contains(&near.field.number))
                .for_each(|(_, is_chosen)| *is_chosen = true);
        }
        chosen
    }

    /// Reads the wanted columns. `part` returns the bytes of a part: the first, and those that [`Head::parts`] names.
    pub fn into_frame<'a>(
        self,
        part: impl Fn(usize) -> Option<&'a [u8]>,
        wanted: &impl Fn(&Column) -> bool,
    ) -> Result<Frame, BlockError> {
        let mut opened: Option<(usize, &[u8])> = None;
        let mut read = |place: &VectorRange| {
            let body = match opened {
                Some((number, body)) if number == place.part => body,
                _ => {
                    let bytes = part(place.part).ok_or(BlockError::Corrupt("a part is missing"))?;
                    let (_, body) = open(bytes)?;
                    let skipped = if place.part == 0 { self.body } else { 0 };
                    let body = body.get(skipped..).ok_or(BlockError::Corrupt("it ends too early"))?;
                    opened = Some((place.part, body));
                    body
                }
            };
            let end = place.start.saturating_add(place.length);
            let bytes = body.get(place.start..end).ok_or(BlockError::Corrupt("it ends too early"))?;
            vector::read(bytes, place.values)
        };
        let mut places = self.vectors.iter();
        let mut next = || places.next().ok_or(BlockError::Corrupt("a column is missing"));
        let times = read(next()?)?;
        let counts = if self.granularity == Granularity::Rolled { read(next()?)? } else { Vec::new() };
        let mut vectors = Vec::with_capacity(self.columns.len());
        for (column, is_chosen) in self.columns.iter().zip(self.chosen(wanted)) {
            let places = (0..self.granularity.stats(column.field)).map(|_| next()).collect::<Result<Vec<_>, _>>()?;
            vectors.push(if is_chosen {
                Some(places.into_iter().map(&mut read).collect::<Result<Vec<_>, _>>()?)
            } else {
                None
            });
        }
        let mut frame = Frame {
            granularity: self.granularity,
            is_lead: false,
            times,
            counts,
            layout: self.layout,
            columns: self.columns,
            vectors,
        };
        derived::put_on(&mut frame, &self.predictions);
        for (column, vectors) in frame.columns.iter().zip(&mut frame.vectors) {
            if !wanted(column) {
                *vectors = None;
            }
        }
        Ok(frame)
    }

    /// How many integers the block unpacks to.
    pub fn cells(&self) -> usize {
        self.vectors.iter().map(|vector| vector.values).sum()
    }

    /// How many rows the block has.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// Reads a whole block.
pub fn read(parts: &[impl AsRef<[u8]>]) -> Result<Frame, BlockError> {
    let first = parts.first().ok_or(BlockError::Corrupt("a part is missing"))?;
    Head::read(first.as_ref())?.into_frame(|number| parts.get(number).map(AsRef::as_ref), &|_| true)
}
