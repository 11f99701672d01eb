//! One vector of integers: the smallest of a few ways to write it.

use pco::ChunkConfig;
use pco::standalone::{simple_compress, simple_decompress};

use super::BlockError;
use super::bytes::{Reader, Writer};
use crate::metrics::frame::NO_RATE;

/// Every value is the same.
const SAME: u8 = 0;
/// The differences, for so few values that `pco`'s own head would be most of it.
const STEPS: u8 = 1;
/// Pcodec.
const PACKED: u8 = 2;
/// In front of one of the others: some values are [`NO_RATE`], and where.
const WITH_HOLES: u8 = 3;

/// From so many values on Pcodec is tried.
const PACK_FROM: usize = 24;

pub fn write(values: &[i64], out: &mut Writer) -> Result<(), BlockError> {
    if values.contains(&NO_RATE) && values.iter().any(|value| *value != NO_RATE) {
        out.0.push(WITH_HOLES);
        holes(values, out);
        let known: Vec<i64> = values.iter().copied().filter(|value| *value != NO_RATE).collect();
        return write_known(&known, out);
    }
    write_known(values, out)
}

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

/// How many known values, how many holes, and so on in turn until all are told.
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

fn write_known(values: &[i64], out: &mut Writer) -> Result<(), BlockError> {
    let first = values.first().copied().unwrap_or_default();
    if values.iter().all(|value| *value == first) {
        out.0.push(SAME);
        out.signed(first);
        return Ok(());
    }
    if values.len() >= PACK_FROM {
        let packed =
            simple_compress(values, &ChunkConfig::default()).map_err(|error| BlockError::Pack(error.to_string()))?;
        out.0.push(PACKED);
        out.0.extend_from_slice(&packed);
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
        PACKED => {
            let values = simple_decompress::<i64>(input.0).map_err(|error| BlockError::Pack(error.to_string()))?;
            input.0 = &[];
            values
        }
        _ => return Err(BlockError::Corrupt("a column is written in an unknown way")),
    };
    if values.len() != length || !input.0.is_empty() {
        return Err(BlockError::Corrupt("a column has another length"));
    }
    Ok(values)
}
