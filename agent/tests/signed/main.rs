//! A service that has been taken over, against the real agent of a server that asks for signatures.
//!
//! It holds the agent's key, as an attacker with the database, the secrets and the service's own program does, and sends anything.
//! Nothing may run that was not signed for this server, now, once.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod agent;
mod forgeries;
mod host;
#[path = "../../../signing/tests/support/mod.rs"]
mod keygen;
mod refusals;
mod replays;
#[allow(dead_code)]
#[path = "../it/service.rs"]
mod service;
mod tools;
mod verify;
