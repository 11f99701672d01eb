//! The figures that `scripts/guard` compares with `bench/guard.txt`: instructions of the hot paths, counted by callgrind, and
//! bytes that sessions, dashboards and commands hold, counted by the allocator. Both are of a debug build, the one that tests
//! use: the figures show that something changed, not how fast it is.
//!
//! Paths with a socket at one end go through the real service on loopback, which runs on threads of its own; callgrind counts
//! those, too.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "whatever is not as expected ends the run, and its figures are what it prints"
)]

mod allocator;
mod callgrind;
mod client;
mod holding;
mod machine;
mod paths;
mod samples;
mod service;

use tokio::runtime::{Builder, Runtime};

fn main() {
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match std::env::args().nth(1).as_deref() {
        Some("instructions") => match std::env::args().nth(2).as_deref() {
            None => paths::count_all(),
            Some("run-command") => paths::command(),
            Some(other) => panic!("{other} is not counted alone"),
        },
        Some("bytes") => holding::count_all(),
        // So it is called by `cargo bench`.
        _ => println!("run scripts/guard"),
    }
}

/// For what is asynchronous and not part of the service.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
