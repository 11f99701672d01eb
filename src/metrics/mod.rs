//! Metrics: where a sample goes ([`pipeline`]), how it becomes durable ([`recorder`]), and how it is read again
//! ([`query`]). [`codec`], [`bucket`] and [`exposition`] are pure.

pub mod bucket;
pub mod codec;
pub mod exposition;
pub mod pipeline;
pub mod query;
pub mod recorder;
pub mod series;
