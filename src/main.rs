//! The program, which is the library's, and its allocator.

use std::process::ExitCode;

/// Returns memory after a fleet has gone; the system's allocator keeps it (figures in bench/README.md).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(not(any(feature = "jemalloc", debug_assertions)))]
compile_error!("an optimised service needs its allocator: add `--features signalbox/jemalloc`");

fn main() -> ExitCode {
    signalbox::program::main()
}
