//! Metrics: [`recorder`] makes samples durable, [`archive`] compacts them, and [`query`] reads them. The storage formats
//! are in the crate `signalbox-history`.

pub mod archive;
pub mod cardinality;
pub mod combined;
pub mod described;
pub mod exposition;
#[doc(hidden)]
pub mod fuzzing;
mod gathering;
pub mod heat;
pub mod known_series;
mod names;
mod outage;
pub mod query;
pub mod recent;
pub mod recorder;
pub mod series;
mod shapes;
pub mod tail;
