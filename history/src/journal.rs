//! A row of the journal: samples of any servers, in the order of their arrival. Pure.
//!
//! ```text
//! version 2    version, then for each sample: server (16 bytes), which shape, length, the sample; at the end the checksum
//!              (CRC-32, 4 bytes, little endian) of all before it
//! which shape  0: the whole sample follows, as codec writes it
//!              n: the sample has the n-th shape of this row, and follows without it; the first time, length and
//!                 bytes of the shape come before it
//! version 1    version, then for each sample: server (16 bytes), length (4 bytes, little endian), the whole sample
//! ```
//!
//! The samples of a row mostly share a few shapes, and a shape with open series is many times as long as its values.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::codec::{self, CodecError, Encoded};
use super::shape::Shape;
use super::wire;

const VERSION: u8 = 2;

/// Collects the samples of one row.
#[derive(Debug)]
pub struct Writer {
    row: wire::Writer,
    /// The number of each shape in the row, by its address. The map holds the shape, so that its address stays its own.
    shapes: HashMap<*const Shape, (u64, Arc<Shape>)>,
}

impl Default for Writer {
    fn default() -> Self {
        Self { row: wire::Writer(vec![VERSION]), shapes: HashMap::new() }
    }
}

impl Writer {
    /// Adds a whole sample as codec writes it, of any version.
    pub fn add(&mut self, server_id: Uuid, encoded: &[u8]) {
        self.row.0.extend_from_slice(server_id.as_bytes());
        self.row.number(0);
        self.bytes(encoded);
    }

    /// Adds an encoded sample of this shape.
    pub fn add_shaped(&mut self, server_id: Uuid, shape: &Arc<Shape>, encoded: &[u8]) {
        let split = codec::split(encoded).filter(|(described, _)| *described == shape.described());
        let Some((described, values)) = split else { return self.add(server_id, encoded) };
        self.row.0.extend_from_slice(server_id.as_bytes());
        match self.shapes.get(&Arc::as_ptr(shape)) {
            Some((number, _)) => self.row.number(*number),
            None => {
                let number = self.shapes.len() as u64 + 1;
                self.shapes.insert(Arc::as_ptr(shape), (number, shape.clone()));
                self.row.number(number);
                self.bytes(described);
            }
        }
        self.bytes(values);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.row.number(bytes.len() as u64);
        self.row.0.extend_from_slice(bytes);
    }

    /// Returns the row; none when nothing was added.
    pub fn finish(self) -> Option<Vec<u8>> {
        let mut row = self.row.0;
        if row.len() == 1 {
            return None;
        }
        // A row states a shape once, so one wrong bit would falsify many samples.
        row.extend_from_slice(&crc32fast::hash(&row).to_le_bytes());
        Some(row)
    }
}

/// Reads the encoded samples of a row.
pub fn read(row: &[u8]) -> Result<Vec<(Uuid, Encoded<'_>)>, CodecError> {
    match row.split_first() {
        Some((1, rest)) => read_version_1(rest),
        Some((&VERSION, _)) => read_version_2(row),
        other => Err(CodecError::Version(other.map(|(version, _)| *version))),
    }
}

fn read_version_2(row: &[u8]) -> Result<Vec<(Uuid, Encoded<'_>)>, CodecError> {
    let (bytes_before, checksum) = row.split_last_chunk::<4>().ok_or(CodecError::CutOff)?;
    if crc32fast::hash(bytes_before) != u32::from_le_bytes(*checksum) {
        return Err(wire::Malformed("its checksum is another").into());
    }
    let mut input = wire::Reader(bytes_before.get(1..).unwrap_or_default());
    let (mut samples, mut shapes) = (Vec::new(), Vec::new());
    while !input.0.is_empty() {
        let server_id = server(input.take(16)?)?;
        // The number after the last known one announces a new shape.
        let shape = match input.count(shapes.len() + 1)? {
            0 => None,
            number => {
                if number > shapes.len() {
                    shapes.push(bytes(&mut input)?);
                }
                shapes.get(number - 1).copied()
            }
        };
        let sample = bytes(&mut input)?;
        samples.push((server_id, shape.map_or(Encoded::Whole(sample), |shape| Encoded::Shaped(shape, sample))));
    }
    Ok(samples)
}

fn bytes<'a>(input: &mut wire::Reader<'a>) -> Result<&'a [u8], CodecError> {
    let length = input.count(input.0.len())?;
    Ok(input.take(length)?)
}

fn server(bytes: &[u8]) -> Result<Uuid, CodecError> {
    Uuid::from_slice(bytes).map_err(|_| CodecError::CutOff)
}

fn read_version_1(mut rest: &[u8]) -> Result<Vec<(Uuid, Encoded<'_>)>, CodecError> {
    let mut samples = Vec::new();
    while !rest.is_empty() {
        let (server_id, sample) = next_of_version_1(&mut rest).ok_or(CodecError::CutOff)?;
        samples.push((server_id, Encoded::Whole(sample)));
    }
    Ok(samples)
}

fn next_of_version_1<'a>(row: &mut &'a [u8]) -> Option<(Uuid, &'a [u8])> {
    let (server_id, rest) = row.split_first_chunk::<16>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (sample, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *row = rest;
    Some((Uuid::from_bytes(*server_id), sample))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use signalbox_protocol::Sample;
    use signalbox_protocol::sample::DiskUsage;

    use super::*;
    use crate::frame::Row;

    /// A sample of a machine with a disk of this name.
    fn sample(disk: &str, processes: u64) -> Sample {
        let disk_usage = vec![DiskUsage { path: disk.to_owned(), ..DiskUsage::default() }];
        Sample { disk_usage, process_count: processes, ..Sample::default() }
    }

    #[test]
    fn a_shape_is_written_once_a_row() {
        let shape = Arc::new(Shape::of(&sample(&"long".repeat(100), 1)));
        let encoded = codec::encode(&Sample::default(), &Row::of(&sample("", 1), shape.clone())).unwrap();
        let mut row = Writer::default();
        (0..10).for_each(|number| row.add_shaped(Uuid::from_u128(number), &shape, &encoded));

        let row = row.finish().unwrap();

        assert!(encoded.len() > 400 && row.len() < 2 * encoded.len(), "{} and {} bytes", encoded.len(), row.len());
    }

    #[test]
    fn a_truncated_or_changed_row_is_an_error() {
        let shape = Arc::new(Shape::of(&sample("/", 1)));
        let encoded = codec::encode_alone(&sample("/", 1)).unwrap();
        let mut row = Writer::default();
        row.add(Uuid::from_u128(1), b"one");
        row.add_shaped(Uuid::from_u128(2), &shape, &encoded);
        let row = row.finish().unwrap();

        assert!(read(&row).is_ok());
        assert!((1..row.len()).all(|length| read(&row[..length]).is_err()));
        let changed = |place: usize| {
            let mut row = row.clone();
            row[place] ^= 0x10;
            row
        };
        assert!((0..row.len()).all(|place| read(&changed(place)).is_err()));
        assert_eq!(Writer::default().finish(), None);
    }

    #[test]
    fn a_shape_that_is_not_in_the_row_is_an_error() {
        let mut row = wire::Writer(vec![VERSION]);
        row.0.extend_from_slice(Uuid::nil().as_bytes());
        row.number(2);
        row.number(0);
        row.number(0);
        row.0.extend_from_slice(&crc32fast::hash(&row.0).to_le_bytes());

        assert!(read(&row.0).is_err());
    }

    #[test]
    fn a_sample_of_another_shape_is_stored_whole() {
        let other = Arc::new(Shape::of(&sample("/srv", 1)));
        let encoded = codec::encode_alone(&sample("/", 1)).unwrap();
        let mut row = Writer::default();
        row.add_shaped(Uuid::nil(), &other, &encoded);

        let row = row.finish().unwrap();

        assert_eq!(read(&row).unwrap(), [(Uuid::nil(), Encoded::Whole(&encoded))]);
    }

    proptest! {
        #[test]
        fn samples_come_back_in_their_order(added in prop::collection::vec((0..4_u128, 0..5_usize, 0..300_u64), 0..40)) {
            let shapes: Vec<Arc<Shape>> =
                ["/", "/home", "/srv", "/var"].iter().map(|disk| Arc::new(Shape::of(&sample(disk, 0)))).collect();
            let (mut row, mut expected) = (Writer::default(), Vec::new());
            for (server, which, processes) in added {
                let server_id = Uuid::from_u128(server);
                // The last one is of another version, so it is stored whole.
                match shapes.get(which) {
                    Some(shape) => {
                        let sample = sample("", processes);
                        let encoded = codec::encode(&sample, &Row::of(&sample, shape.clone())).unwrap();
                        row.add_shaped(server_id, shape, &encoded);
                        expected.push((server_id, encoded));
                    }
                    None => {
                        row.add(server_id, &[1, 2, 3]);
                        expected.push((server_id, vec![1, 2, 3]));
                    }
                }
            }

            let row = row.finish();
            let found: Vec<(Uuid, Vec<u8>)> =
                row.iter().flat_map(|row| read(row).unwrap()).map(|(server_id, encoded)| (server_id, encoded.whole().into_owned())).collect();

            prop_assert_eq!(found, expected);
        }
    }
}
