//! The formats of the history: a sample as integers ([`shape`], [`frame`]), several samples as one ([`rollup`]), and the bytes
//! of each in storage ([`block`], [`codec`], [`journal`], [`processes`]). Pure: the service's `metrics` stores and reads the
//! bytes.

#![deny(missing_docs)]

pub mod block;
pub mod codec;
pub mod frame;
pub mod journal;
pub mod metric;
pub mod network;
pub mod open;
pub mod processes;
pub mod rollup;
pub mod shape;
mod wire;
