//! The program, which is the library's.

use std::process::ExitCode;

fn main() -> ExitCode {
    signalbox_agent::program::main()
}
