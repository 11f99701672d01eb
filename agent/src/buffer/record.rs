//! The format of a record in a segment: length, checksum, kind, payload. A record that a kill truncated does not match its
//! checksum, so a reader stops there.

use std::io::{self, BufRead, Read};

/// Length and checksum, four bytes each, little-endian.
const HEAD_BYTES: usize = 8;

/// The longest payload, so that a damaged length cannot make the reader reserve gigabytes.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An encoded sample.
    Sample,
    /// The number up to which everything is acknowledged; eight bytes.
    Ack,
    /// The meaning of the ids in the samples that follow. Since version 2.
    Series,
    /// How many samples the buffer keeps, where they take more bytes than usual; eight bytes.
    Limit,
    /// A kind of a later version, which readers skip.
    Unknown(u8),
}

impl Kind {
    fn tag(self) -> u8 {
        match self {
            Self::Sample => 1,
            Self::Ack => 2,
            Self::Series => 3,
            Self::Limit => 4,
            Self::Unknown(tag) => tag,
        }
    }

    fn of(tag: u8) -> Self {
        let known = [Self::Sample, Self::Ack, Self::Series, Self::Limit];
        known.into_iter().find(|kind| kind.tag() == tag).unwrap_or(Self::Unknown(tag))
    }
}

/// The size of a record with such a payload.
pub fn length(payload: usize) -> usize {
    HEAD_BYTES + 1 + payload
}

/// Writes one record to `out`, which it clears first.
pub fn encode(kind: Kind, payload: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a sample of more than 1 MiB"));
    }
    let size = u32::try_from(payload.len() + 1).map_err(io::Error::other)?;
    out.clear();
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&checksum(kind.tag(), payload).to_le_bytes());
    out.push(kind.tag());
    out.extend_from_slice(payload);
    Ok(())
}

/// Reads the next record's payload. None at the end; an error where the record is truncated or damaged.
pub fn read(reader: &mut impl BufRead, payload: &mut Vec<u8>) -> io::Result<Option<Kind>> {
    if reader.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let size = read_u32(reader)? as usize;
    let expected = read_u32(reader)?;
    if size == 0 || size > MAX_PAYLOAD_BYTES + 1 {
        return Err(damaged());
    }
    let mut tag = [0];
    reader.read_exact(&mut tag)?;
    payload.clear();
    reader.take(size as u64 - 1).read_to_end(payload)?;
    let [tag] = tag;
    if payload.len() + 1 != size || checksum(tag, payload) != expected {
        return Err(damaged());
    }
    Ok(Some(Kind::of(tag)))
}

fn read_u32(reader: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn checksum(tag: u8, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[tag]);
    hasher.update(payload);
    hasher.finalize()
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "damaged record")
}

/// Whether an error says that what was read is damaged. Any other says that it could not be read, which may pass.
pub fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(kind: Kind, payload: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        encode(kind, payload, &mut record).unwrap();
        record
    }

    #[test]
    fn records_are_read_back_in_order() {
        let file = [encoded(Kind::Sample, b"one"), encoded(Kind::Ack, &[7; 8])].concat();
        let (mut reader, mut payload) = (file.as_slice(), Vec::new());

        assert_eq!(read(&mut reader, &mut payload).unwrap(), Some(Kind::Sample));
        assert_eq!(payload, b"one");
        assert_eq!(read(&mut reader, &mut payload).unwrap(), Some(Kind::Ack));
        assert_eq!(payload, [7; 8]);
        assert_eq!(read(&mut reader, &mut payload).unwrap(), None);
    }

    #[test]
    fn a_record_of_a_later_version_is_read_as_such() {
        let file = [encoded(Kind::Unknown(77), b"new"), encoded(Kind::Series, b"known")].concat();
        let (mut reader, mut payload) = (file.as_slice(), Vec::new());

        assert_eq!(read(&mut reader, &mut payload).unwrap(), Some(Kind::Unknown(77)));
        assert_eq!(read(&mut reader, &mut payload).unwrap(), Some(Kind::Series));
        assert_eq!(payload, b"known");
    }

    #[test]
    fn a_record_cut_short_anywhere_is_an_error() {
        let whole = encoded(Kind::Sample, b"sample");

        for length in 1..whole.len() {
            assert!(read(&mut &whole[..length], &mut Vec::new()).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_an_error() {
        let whole = encoded(Kind::Sample, b"sample");

        for position in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[position] ^= 0x10;
            assert!(read(&mut damaged.as_slice(), &mut Vec::new()).is_err(), "byte {position}");
        }
    }
}
