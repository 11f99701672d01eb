//! The descriptions of ids in a file of the buffer: those of the protocol, in MessagePack.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use signalbox_protocol::series::SeriesDescription;

use crate::catalog::{Catalog, Metric};
use crate::wire;

/// The most descriptions of one record: at their longest they take half of the largest record.
pub const MAX_DESCRIPTIONS: usize = 256;

/// No description is nested deeper.
const MAX_DEPTH: usize = 8;

/// Encodes descriptions as a record's payload.
pub fn encode(series: &[SeriesDescription]) -> io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    series.serialize(&mut rmp_serde::Serializer::new(&mut payload).with_struct_map()).map_err(io::Error::other)?;
    Ok(payload)
}

/// Maps the ids of a file to those of this run for the same series.
#[derive(Debug, Default)]
pub struct SeriesIds(BTreeMap<u16, u16>);

impl SeriesIds {
    /// Reads a record of descriptions. An unreadable one, for example with a unit of a later version, describes nothing.
    pub fn read(payload: &[u8], catalog: &Catalog) -> Self {
        let mut reader = rmp_serde::Deserializer::from_read_ref(payload);
        reader.set_max_depth(MAX_DEPTH);
        let series = Vec::<SeriesDescription>::deserialize(&mut reader).unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot read which series the buffer's samples have");
            Vec::new()
        });
        let id_of = |one: &SeriesDescription| catalog.id_of(Metric::of(one), one.target.as_deref());
        Self(series.iter().filter_map(|one| Some((one.id, id_of(one)?))).collect())
    }

    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// The ids of this run.
    pub fn known(&self) -> impl Iterator<Item = u16> {
        self.0.values().copied()
    }

    /// Replaces the ids of an encoded sample by this run's. It removes values without a description, which the service would
    /// refuse. An error says that the sample is damaged.
    pub fn renumber(&self, sample: &mut Vec<u8>) -> io::Result<()> {
        let ids = wire::series_of(1, sample);
        if ids.iter().any(|id| self.0.get(id) != Some(id)) {
            let renumbered = wire::renumber_series(sample, |id| self.0.get(&id).copied());
            *sample = renumbered.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Ok(())
    }
}
