//! One vector of integers, written in the shortest of several ways.

use pco::ChunkConfig;
use pco::data_types::Number;
use pco::standalone::{simple_compress, simple_decompress_into};

use super::BlockError;
use crate::frame::NO_RATE;
use crate::wire::{Reader, Writer};

/// All values are equal.
const SAME: u8 = 0;
/// The differences between neighbours, for so few values that Pcodec's own head would be longer.
const STEPS: u8 = 1;
/// Pcodec.
const PACKED: u8 = 2;
/// In front of one of the others: where values are [`NO_RATE`].
const WITH_HOLES: u8 = 3;

/// Pcodec, applied to floats.
const PACKED_FLOATS: u8 = 4;

/// What the integers of a vector represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Integers.
    Integers,
    /// The bits of floats.
    Floats,
}

/// The writer tries Pcodec from this many values on.
const PACK_FROM: usize = 24;

/// Writes a vector.
///
/// # Errors
///
/// When Pcodec fails.
pub fn write(values: &[i64], what: Values, out: &mut Writer) -> Result<(), BlockError> {
    if values.contains(&NO_RATE) && values.iter().any(|value| *value != NO_RATE) {
        out.0.push(WITH_HOLES);
        holes(values, out);
        let known: Vec<i64> = values.iter().copied().filter(|value| *value != NO_RATE).collect();
        return write_known(&known, what, out);
    }
    write_known(values, what, out)
}

/// Reads a vector of `length` values.
///
/// # Errors
///
/// When the bytes are damaged, or have another length.
pub fn read(mut bytes: &[u8], length: usize) -> Result<Vec<i64>, BlockError> {
    if bytes.first() != Some(&WITH_HOLES) {
        return read_known(bytes, length);
    }
    let mut input = Reader(bytes.get(1..).unwrap_or_default());
    let mut runs = Vec::new();
    let (mut all, mut known) = (0, 0);
    while all < length {
        let run = input.count(length - all)?;
        if runs.len() % 2 == 0 {
            known += run;
        }
        all += run;
        runs.push(run);
    }
    bytes = input.0;
    let values = read_known(bytes, known)?;
    let mut values = values.into_iter();
    let mut filled = Vec::with_capacity(length);
    for (index, run) in runs.into_iter().enumerate() {
        match index % 2 {
            0 => filled.extend(values.by_ref().take(run)),
            _ => filled.resize(filled.len() + run, NO_RATE),
        }
    }
    Ok(filled)
}

/// Writes the lengths of alternating runs of known values and holes.
fn holes(values: &[i64], out: &mut Writer) {
    let (mut is_hole, mut run) = (false, 0);
    for value in values {
        if (*value == NO_RATE) != is_hole {
            out.number(run);
            (is_hole, run) = (!is_hole, 0);
        }
        run += 1;
    }
    out.number(run);
}

fn write_known(values: &[i64], what: Values, out: &mut Writer) -> Result<(), BlockError> {
    let first = values.first().copied().unwrap_or_default();
    if values.iter().all(|value| *value == first) {
        out.0.push(SAME);
        out.signed(first);
        return Ok(());
    }
    if values.len() >= PACK_FROM {
        let config = ChunkConfig::default();
        let (code, packed) = match what {
            Values::Integers => (PACKED, simple_compress(values, &config)),
            Values::Floats => {
                let floats: Vec<f64> = values.iter().map(|bits| f64::from_bits(bits.cast_unsigned())).collect();
                (PACKED_FLOATS, simple_compress(&floats, &config))
            }
        };
        out.0.push(code);
        out.0.extend_from_slice(&packed.map_err(|error| BlockError::Pack(error.to_string()))?);
        return Ok(());
    }
    out.0.push(STEPS);
    let mut before = 0_i64;
    for value in values {
        out.signed(value.wrapping_sub(before));
        before = *value;
    }
    Ok(())
}

fn read_known(bytes: &[u8], length: usize) -> Result<Vec<i64>, BlockError> {
    let mut input = Reader(bytes);
    let values = match input.byte()? {
        SAME => vec![input.signed()?; length],
        STEPS => {
            let mut before = 0_i64;
            let step = |_| {
                before = before.wrapping_add(input.signed()?);
                Ok(before)
            };
            (0..length).map(step).collect::<Result<_, BlockError>>()?
        }
        PACKED => unpack::<i64>(std::mem::take(&mut input.0), length)?,
        PACKED_FLOATS => {
            let floats = unpack::<f64>(std::mem::take(&mut input.0), length)?;
            floats.into_iter().map(|float| float.to_bits().cast_signed()).collect()
        }
        _ => return Err(BlockError::Corrupt("a column is written in an unknown way")),
    };
    if values.len() != length || !input.0.is_empty() {
        return Err(BlockError::Corrupt("a column has another length"));
    }
    Ok(values)
}

/// Unpacks into a vector of the expected length, because the length that the bytes claim may be a lie of many gigabytes.
fn unpack<T: Number + Default>(packed: &[u8], length: usize) -> Result<Vec<T>, BlockError> {
    let mut values = vec![T::default(); length];
    let unpacked = simple_decompress_into(packed, &mut values).map_err(|error| BlockError::Pack(error.to_string()))?;
    if !unpacked.finished || unpacked.n_processed != length {
        return Err(BlockError::Corrupt("a column has another length"));
    }
    Ok(values)
}
