//! Metrics: where a sample goes ([`pipeline`]), how it becomes durable ([`recorder`]), and how it is read again
//! ([`query`]). [`codec`], [`bucket`] and [`exposition`] are pure.

pub mod archive;
pub mod block;
pub mod codec;
pub mod exposition;
pub mod frame;
mod gathering;
pub mod journal;
mod names;
pub mod network;
pub mod pipeline;
pub mod processes;
pub mod query;
pub mod recent;
pub mod recorder;
pub mod rollup;
pub mod series;
pub mod shape;
pub mod tail;
