//! How one sample is kept: MessagePack arrays behind a version byte. Pure.

use signalbox_protocol::Sample;

/// Says how the bytes behind it are to be read, so that a later form can stand beside this one.
const VERSION: u8 = 1;

#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("a sample could not be written: {0}")]
    Write(#[from] rmp_serde::encode::Error),
    #[error("a stored sample could not be read: {0}")]
    Read(#[from] rmp_serde::decode::Error),
    #[error("a stored sample has the unknown version {0:?}")]
    Version(Option<u8>),
    #[error("stored samples end too early")]
    CutOff,
}

pub fn encode(sample: &Sample) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(VERSION);
    rmp_serde::encode::write(&mut bytes, sample)?;
    Ok(bytes)
}

pub fn decode(bytes: &[u8]) -> Result<Sample, CodecError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rmp_serde::from_slice(rest)?),
        other => Err(CodecError::Version(other.map(|(version, _)| *version))),
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Timestamp;
    use signalbox_protocol::sample::{DiskUsage, NetworkUsage};

    use super::*;

    #[test]
    fn a_sample_comes_back_to_the_bit() {
        let sample = Sample {
            timestamp: Timestamp::from_millis(1_700_000_000_123),
            cpu_percent: 12.34,
            memory_total: u64::MAX,
            disk_usage: vec![DiskUsage { path: "/".into(), total: 10, used: 4, free: 6, percent: 40.0 }],
            network: vec![NetworkUsage { interface: "eth0".into(), bytes_sent: 1, bytes_recv: u64::MAX }],
            ..Sample::default()
        };

        assert_eq!(decode(&encode(&sample).unwrap()).unwrap(), sample);
    }

    #[test]
    fn bytes_of_another_version_are_refused() {
        assert!(matches!(decode(&[9, 0]), Err(CodecError::Version(Some(9)))));
        assert!(matches!(decode(&[]), Err(CodecError::Version(None))));
    }
}
