//! The bytes of the top processes of many minutes. Pure.
//!
//! Names and users repeat from minute to minute, so the bytes are deflated.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Deserialize;
use signalbox_protocol::codec::MAX_DEPTH;
use signalbox_protocol::sample::TopProcesses;

use super::block::BlockError;
use super::codec::version_1::TopProcessesV1;

/// The version that this build writes: lists with named fields. Version 1 had positional ones.
const VERSION: u8 = 2;

/// The most bytes that stored bytes may unpack to: a day of the longest lists is smaller.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The processes that used the most at a time, in milliseconds since the epoch.
pub type At = (i64, TopProcesses);

/// Writes lists, which must be sorted.
pub fn write(lists: &[At]) -> Result<Vec<u8>, BlockError> {
    let packed = rmp_serde::to_vec_named(lists).map_err(|error| BlockError::Pack(error.to_string()))?;
    let mut deflate = DeflateEncoder::new(vec![VERSION], Compression::default());
    deflate.write_all(&packed).map_err(|error| BlockError::Pack(error.to_string()))?;
    let mut bytes = deflate.finish().map_err(|error| BlockError::Pack(error.to_string()))?;
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Reads lists.
///
/// # Errors
///
/// When the bytes are damaged, or of an unknown version.
pub fn read(bytes: &[u8]) -> Result<Vec<At>, BlockError> {
    let (written, checksum) = bytes.split_last_chunk::<4>().ok_or(BlockError::Corrupt("it ends too early"))?;
    let (version, packed) = match written.split_first() {
        Some((version @ (1 | &VERSION), packed)) => (*version, packed),
        Some((version, _)) => return Err(BlockError::Version(*version)),
        None => return Err(BlockError::Corrupt("it ends too early")),
    };
    if crc32fast::hash(written) != u32::from_le_bytes(*checksum) {
        return Err(BlockError::Corrupt("the checksum is another"));
    }
    let mut unpacked = Vec::new();
    let read = DeflateDecoder::new(packed).take(MAX_BYTES).read_to_end(&mut unpacked);
    read.map_err(|error| BlockError::Pack(error.to_string()))?;
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(&unpacked);
    deserializer.set_max_depth(MAX_DEPTH);
    if version == 1 {
        let lists: Vec<(i64, TopProcessesV1)> = of_packed(&mut deserializer)?;
        return Ok(lists.into_iter().map(|(at, top)| (at, top.into())).collect());
    }
    of_packed(&mut deserializer)
}

fn of_packed<'a, T: Deserialize<'a>>(
    deserializer: &mut rmp_serde::Deserializer<impl rmp_serde::decode::ReadSlice<'a>>,
) -> Result<T, BlockError> {
    T::deserialize(deserializer).map_err(|error| BlockError::Pack(error.to_string()))
}

/// Merges lists of several sources: sorted, one for each minute, and of several in a minute the first one given. So an hour has
/// at most 60 and a day 1,440, however many sources there are.
pub fn merged(mut lists: Vec<At>) -> Vec<At> {
    let minute = |(at, _): &At| at.div_euclid(60_000);
    lists.sort_by_key(minute);
    lists.dedup_by_key(|list| minute(list));
    lists
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::sample::ProcessUsage;

    use super::*;

    fn lists() -> Vec<At> {
        let process = |pid: u32| ProcessUsage {
            pid,
            name: format!("worker-{pid}"),
            user: "www-data".to_owned(),
            cpu_percent: 12.5,
            memory_bytes: u64::MAX,
        };
        (0..60_i64)
            .map(|minute| {
                let by_cpu = vec![process(1), process(minute as u32)];
                (minute * 60_000, TopProcesses { by_cpu, by_memory: vec![process(7)] })
            })
            .collect()
    }

    #[test]
    fn lists_come_back_and_what_repeats_takes_little() {
        let bytes = write(&lists()).unwrap();

        assert_eq!(read(&bytes).unwrap(), lists());
        assert!(bytes.len() < 60 * 30, "{} bytes", bytes.len());
    }

    #[test]
    fn a_flipped_bit_is_an_error() {
        let bytes = write(&lists()).unwrap();

        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            assert!(read(&damaged).is_err(), "byte {place}");
        }
    }
}
