//! A row of the journal: samples of any servers in the order in which they came. Pure.
//!
//! ```text
//! version, then for each sample: server (16 bytes), length (4 bytes, little endian), the sample as codec writes it
//! ```

use uuid::Uuid;

use super::codec::CodecError;

const VERSION: u8 = 1;

/// What a sample takes beside its own bytes.
const HEAD: usize = 20;

/// Gathers the samples of one row.
#[derive(Debug)]
pub struct Writer(Vec<u8>);

impl Default for Writer {
    fn default() -> Self {
        Self(vec![VERSION])
    }
}

impl Writer {
    pub fn add(&mut self, server_id: Uuid, encoded: &[u8]) {
        self.0.reserve(HEAD + encoded.len());
        self.0.extend_from_slice(server_id.as_bytes());
        // A sample is bounded far below this.
        self.0.extend_from_slice(&u32::try_from(encoded.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.0.extend_from_slice(encoded);
    }

    /// The row; none when nothing was added.
    pub fn finish(self) -> Option<Vec<u8>> {
        (self.0.len() > 1).then_some(self.0)
    }
}

/// The encoded samples of a row.
pub fn read(row: &[u8]) -> Result<Vec<(Uuid, &[u8])>, CodecError> {
    let mut rest = match row.split_first() {
        Some((&VERSION, rest)) => rest,
        other => return Err(CodecError::Version(other.map(|(version, _)| *version))),
    };
    let mut samples = Vec::new();
    while !rest.is_empty() {
        samples.push(next(&mut rest).ok_or(CodecError::CutOff)?);
    }
    Ok(samples)
}

fn next<'a>(row: &mut &'a [u8]) -> Option<(Uuid, &'a [u8])> {
    let (server_id, rest) = row.split_first_chunk::<16>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (sample, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *row = rest;
    Some((Uuid::from_bytes(*server_id), sample))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_in_their_order() {
        let mut row = Writer::default();
        row.add(Uuid::from_u128(1), b"one");
        row.add(Uuid::from_u128(2), b"");
        row.add(Uuid::from_u128(1), b"three");

        let row = row.finish().unwrap();

        let expected: Vec<(Uuid, &[u8])> =
            vec![(Uuid::from_u128(1), b"one"), (Uuid::from_u128(2), b""), (Uuid::from_u128(1), b"three")];
        assert_eq!(read(&row).unwrap(), expected);
    }

    #[test]
    fn a_row_that_was_cut_off_is_an_error() {
        let mut row = Writer::default();
        row.add(Uuid::from_u128(1), b"one");
        let row = row.finish().unwrap();

        assert!((2..row.len()).all(|length| read(&row[..length]).is_err()));
        assert_eq!(Writer::default().finish(), None);
    }
}
