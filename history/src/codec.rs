//! The stored form of one sample: its columns, their values, and additional sections. Pure.
//!
//! ```text
//! version 2    version, length of the shape, shape, time, values, sections
//! shape        schema, cores, entries, open series
//! value        a number of variable length; of a float its eight bytes
//! section      its number, its length, its bytes
//! ```
//!
//! So a reader that does not know a metric keeps its values, and one that does not know a section skips it. Version 1 was a
//! sample in MessagePack with positional fields ([`version_1`]).

pub(super) mod version_1;

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use signalbox_protocol::Sample;
use signalbox_protocol::codec::MAX_DEPTH;
use signalbox_protocol::sample::TopProcesses;

use super::frame::{Granularity, Row};
use super::metric::{Field, Scale};
use super::open::{Measured, Open};
use super::shape::Shape;
use super::wire::{Malformed, Reader, Writer};

/// The version that this build writes.
const VERSION: u8 = 2;

/// Which interfaces are part of the machine's total: one letter for each.
const MARKS: u64 = 1;
/// The top processes in MessagePack, with the names of their fields.
const PROCESSES: u64 = 2;

/// Why a sample could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The top processes could not be written.
    #[error("the processes of a sample could not be written: {0}")]
    Write(#[from] rmp_serde::encode::Error),
    /// The MessagePack of version 1, or of the top processes, could not be read.
    #[error("a stored sample could not be read: {0}")]
    Read(#[from] rmp_serde::decode::Error),
    /// The bytes are damaged.
    #[error("a stored sample is damaged: {0}")]
    Malformed(#[from] Malformed),
    /// The version is unknown; none for no bytes at all.
    #[error("a stored sample, or a row of them, has the unknown version {0:?}")]
    Version(Option<u8>),
    /// A row of the journal ends within a sample.
    #[error("stored samples end too early")]
    CutOff,
}

/// A stored sample, as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its values, with the columns that its writer knew.
    pub row: Row,
    /// Whether each interface is part of the machine's total, in the order of the interfaces; shorter where the agent did not
    /// say.
    pub in_total: Vec<Option<bool>>,
    /// The top processes, where the sample had them.
    pub processes: Option<TopProcesses>,
}

impl Stored {
    /// The part that this build knows, without open series.
    pub fn sample(self) -> Sample {
        self.measured().sample
    }

    /// The part that this build knows.
    pub fn measured(self) -> Measured {
        let Measured { mut sample, open } = self.row.measured(Granularity::Raw);
        sample.network.iter_mut().zip(self.in_total).for_each(|(one, in_total)| one.in_total = in_total);
        Measured { sample: Sample { processes: self.processes, ..sample }, open }
    }
}

/// Writes a sample and its row. It omits `unread`, which only matters while the sample is new.
pub fn encode(sample: &Sample, row: &Row) -> Result<Vec<u8>, CodecError> {
    let described = row.shape.described();
    let mut out = Writer(Vec::with_capacity(described.len() + 4 * row.values.len() + 64));
    out.0.push(VERSION);
    out.number(described.len() as u64);
    out.0.extend_from_slice(described);
    out.signed(row.at);
    for (slot, value) in row.shape.slots().zip(row.values.iter()) {
        write_value(slot.field, *value, &mut out);
    }
    if sample.network.iter().any(|one| one.in_total.is_some()) {
        let marks: Vec<u8> = sample.network.iter().map(|one| mark(one.in_total)).collect();
        section(MARKS, &marks, &mut out);
    }
    if let Some(processes) = &sample.processes {
        section(PROCESSES, &rmp_serde::to_vec_named(processes)?, &mut out);
    }
    Ok(out.0)
}

/// Writes a sample when the caller does not need its row.
pub fn encode_alone(sample: &Sample) -> Result<Vec<u8>, CodecError> {
    encode_with_open(sample, &Open::default())
}

/// Writes a sample with open series when the caller does not need its row.
pub fn encode_with_open(sample: &Sample, open: &Open) -> Result<Vec<u8>, CodecError> {
    encode(sample, &Row::with_open(sample, open, Arc::new(Shape::with_open(sample, open))))
}

fn section(number: u64, bytes: &[u8], out: &mut Writer) {
    out.number(number);
    out.number(bytes.len() as u64);
    out.0.extend_from_slice(bytes);
}

fn write_value(field: Field, value: i64, out: &mut Writer) {
    match field.scale {
        Scale::Float => out.0.extend_from_slice(&value.to_le_bytes()),
        Scale::Whole => out.number(value.cast_unsigned()),
        Scale::Parts(_) => out.signed(value),
    }
}

fn read_value(field: Field, input: &mut Reader<'_>) -> Result<i64, Malformed> {
    match field.scale {
        Scale::Float => {
            let (bytes, rest) = input.0.split_first_chunk::<8>().ok_or(Malformed("it ends too early"))?;
            input.0 = rest;
            Ok(i64::from_le_bytes(*bytes))
        }
        Scale::Whole => input.number().map(u64::cast_signed),
        Scale::Parts(_) => input.signed(),
    }
}

/// A stored sample before it is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded<'a> {
    /// The output of [`encode`], of any version.
    Whole(&'a [u8]),
    /// Of version 2: the sample's shape, and what follows the shape.
    Shaped(&'a [u8], &'a [u8]),
}

impl<'a> Encoded<'a> {
    /// The sample as [`encode`] wrote it.
    pub fn whole(self) -> Cow<'a, [u8]> {
        match self {
            Self::Whole(bytes) => bytes.into(),
            Self::Shaped(described, values) => {
                let mut out = Writer(Vec::with_capacity(described.len() + values.len() + 8));
                out.0.push(VERSION);
                out.number(described.len() as u64);
                out.0.extend_from_slice(described);
                out.0.extend_from_slice(values);
                out.0.into()
            }
        }
    }

    /// Decodes the sample. `before` is the shape of the previous sample, which is mostly the same and then shared.
    pub fn decode(self, before: Option<&Arc<Shape>>) -> Result<Stored, CodecError> {
        match self {
            Self::Whole(bytes) => decode(bytes, before),
            Self::Shaped(described, values) => read_values(described, values, before),
        }
    }
}

/// Splits an encoded sample into its shape and the rest; none for a version without a shape.
pub fn split(encoded: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut input = Reader(encoded.strip_prefix(&[VERSION])?);
    let length = input.count(encoded.len()).ok()?;
    let described = input.take(length).ok()?;
    Some((described, input.0))
}

/// Decodes a stored sample. `before` is the shape of the previous sample, which is mostly the same and then shared.
pub fn decode(bytes: &[u8], before: Option<&Arc<Shape>>) -> Result<Stored, CodecError> {
    let (version, rest) = bytes.split_first().ok_or(CodecError::Version(None))?;
    match *version {
        1 => Ok(stored(version_1::decode(rest)?, before)),
        VERSION => {
            let mut input = Reader(rest);
            let length = input.count(rest.len())?;
            let described = input.take(length)?;
            read_values(described, input.0, before)
        }
        unknown => Err(CodecError::Version(Some(unknown))),
    }
}

/// Converts a sample of version 1 to today's form.
fn stored(mut sample: Sample, before: Option<&Arc<Shape>>) -> Stored {
    let shape = match before {
        Some(shape) if shape.fits(&sample, &Open::default()) => shape.clone(),
        _ => Arc::new(Shape::of(&sample)),
    };
    let in_total = sample.network.iter().map(|one| one.in_total).collect();
    let processes = sample.processes.take();
    Stored { row: Row::of(&sample, shape), in_total, processes }
}

fn read_values(described: &[u8], values: &[u8], before: Option<&Arc<Shape>>) -> Result<Stored, CodecError> {
    let mut input = Reader(values);
    let shape = match before {
        Some(shape) if shape.described() == described => shape.clone(),
        _ => Arc::new(Shape::read(described)?),
    };
    let at = input.signed()?;
    // A value takes at least one byte.
    if shape.width() > input.0.len() {
        return Err(Malformed("it ends too early").into());
    }
    let values = shape.slots().map(|slot| read_value(slot.field, &mut input)).collect::<Result<_, _>>()?;
    let row = Row { at, count: 1, shape, values };
    let mut stored = Stored { row, in_total: Vec::new(), processes: None };
    while !input.0.is_empty() {
        let number = input.number()?;
        let length = input.count(input.0.len())?;
        let section = input.take(length)?;
        match number {
            MARKS => stored.in_total = section.iter().map(|mark| marked(*mark)).collect(),
            PROCESSES => {
                let mut deserializer = rmp_serde::Deserializer::from_read_ref(section);
                deserializer.set_max_depth(MAX_DEPTH);
                stored.processes = Some(TopProcesses::deserialize(&mut deserializer)?);
            }
            // A section of a later version.
            _ => {}
        }
    }
    Ok(stored)
}

fn mark(in_total: Option<bool>) -> u8 {
    match in_total {
        None => b'?',
        Some(true) => b'+',
        Some(false) => b'-',
    }
}

fn marked(mark: u8) -> Option<bool> {
    match mark {
        b'+' => Some(true),
        b'-' => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
