//! What the history is made of: a sample as integers ([`shape`], [`frame`]), many made one ([`rollup`]), and each as the
//! bytes that are kept ([`block`], [`codec`], [`journal`], [`processes`]). Pure: the service's `metrics` brings them there
//! and back.

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
