//! Metrics: how a sample becomes durable ([`recorder`]), how it is kept ([`archive`]), and how it is read again
//! ([`query`]). What it is made of is a crate of its own, `signalbox-history`.

pub mod archive;
pub mod cardinality;
pub mod described;
pub mod exposition;
#[doc(hidden)]
pub mod fuzzing;
mod gathering;
mod names;
pub mod query;
pub mod recent;
pub mod recorder;
pub mod series;
mod shapes;
pub mod tail;
