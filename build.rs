//! Writes when the service was built into it: no clock that is right shows an earlier time.

// This is how a build script talks to cargo.
#![allow(clippy::print_stdout)]

use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo:rerun-if-changed=Cargo.toml");
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<u64>().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default();
    // Cargo hands it to tests and to what they start as well, and a variable of the service's own that sets nothing is refused.
    println!("cargo:rustc-env=BUILT_AT_SECONDS={}", given.unwrap_or(now));
}
