//! Files of earlier versions: tests/fixtures/README.md describes each.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", name].iter().collect()
}

/// The bytes of a file, unpacked where its name ends in `.gz`.
pub fn bytes(name: &str) -> Vec<u8> {
    let kept = fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    if !name.ends_with(".gz") {
        return kept;
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(kept.as_slice()).read_to_end(&mut unpacked).unwrap();
    unpacked
}

pub fn json<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The parts of a block, each a file: `NAME.0.bin`, `NAME.1.bin` and so on.
pub fn parts(name: &str) -> Vec<Vec<u8>> {
    let names = (0..).map(|number| format!("{name}.{number}.bin"));
    names.take_while(|name| path(name).exists()).map(|name| bytes(&name)).collect()
}
