//! The position in a segment from which the next sample is read.

use std::fs::File;
use std::io::{self, BufReader};

use super::record::{self, Kind};
use super::segment::Segment;
use super::series::SeriesIds;
use crate::catalog::Catalog;

#[derive(Debug)]
pub struct Reader {
    /// The segment's first number.
    pub segment: u64,
    /// The number of the next sample.
    pub next: u64,
    file: BufReader<File>,
    /// The meaning of the file's ids, as far as it was read.
    pub ids: SeriesIds,
}

impl Reader {
    /// Opens a segment at the sample of number `wanted`.
    pub fn open(segment: &Segment, wanted: u64, catalog: &Catalog, scratch: &mut Vec<u8>) -> io::Result<Self> {
        let (first, ids) = (segment.first, SeriesIds::default());
        let mut reader = Self { segment: first, next: first, file: segment.open()?, ids };
        while reader.next < wanted {
            reader.read_sample(catalog, scratch)?;
        }
        Ok(reader)
    }

    pub fn read_sample(&mut self, catalog: &Catalog, sample: &mut Vec<u8>) -> io::Result<()> {
        loop {
            match record::read(&mut self.file, sample)? {
                Some(Kind::Sample) => break,
                Some(Kind::Series) => self.ids.extend(SeriesIds::read(sample, catalog)),
                Some(Kind::Ack | Kind::Limit | Kind::Unknown(_)) => {}
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        self.next += 1;
        Ok(())
    }
}
