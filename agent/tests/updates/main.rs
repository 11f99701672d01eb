//! A service that offers builds of the agent, against the real agent of a server that pins the keys of those who sign them.
//!
//! It holds the agent's key, as an attacker with the database, the secrets and the service's own program does, and offers anything.
//! It may make the agent run newer builds that were signed, and nothing else; and a build that does not work costs a minute.
//!
//! Each test of `refusals` prints how many offers it made and fails if they become fewer. For the sum, as root:
//!
//! ```text
//! cargo nextest run -p signalbox-agent --locked --no-capture -E 'binary(updates)' | awk '$2 ~ /^tries/ { sum += $1 } END { print sum }'
//! ```

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod broken;
mod disks;
mod downloads;
mod host;
#[path = "../../../signing/tests/support/mod.rs"]
mod keygen;
mod offering;
mod programs;
mod refusals;
#[allow(dead_code)]
#[path = "../it/service.rs"]
mod service;
mod starts;
mod tools;
mod trials;
mod working;
