//! A service that has been taken over, against the real agent of a server that asks for signatures.
//!
//! It holds the agent's key, as an attacker with the database, the secrets and the service's own program does, and sends anything.
//! Nothing may run that was not signed for this server, now, once.
//!
//! Each test prints how many orders it sent and fails if they become fewer. For the sum, with the altered signatures of
//! `signing/tests/` and the rows that `tests/it/real_commands/seized.rs` edits, as root:
//!
//! ```text
//! cargo nextest run --workspace --locked --no-capture \
//!     -E 'binary(signed) + package(signalbox-signing) + test(/seized/)' | awk '$2 ~ /^tries/ { sum += $1 } END { print sum }'
//! ```

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod agent;
#[allow(dead_code)]
#[path = "../../../tests/it/support/clock.rs"]
mod clock;
mod clocks;
mod disks;
mod forgeries;
mod host;
#[path = "../../../signing/tests/support/mod.rs"]
mod keygen;
#[path = "../../../tests/it/support/mount.rs"]
mod mount;
#[path = "../../../signing/tests/support/passkey.rs"]
mod passkey;
mod passkeys;
mod refusals;
mod replays;
#[allow(dead_code)]
#[path = "../it/service.rs"]
mod service;
mod terminals;
mod tools;
mod verify;
