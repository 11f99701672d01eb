//! Inputs that the fuzzers of `fuzz/` found and that are worth keeping, run again on this build: see `fuzz/README.md`.

use std::fs;
use std::path::Path;

type Target = (&'static str, fn(&[u8]));

/// Every target of `fuzz/fuzz_targets`.
const TARGETS: &[Target] = &[
    ("agent_message", signalbox::metrics::fuzzing::agent_message),
    ("block", signalbox::metrics::fuzzing::block),
    ("docker_log", signalbox_agent::fuzzing::docker_log),
    ("journal", signalbox::metrics::fuzzing::journal),
    ("passkey", signalbox::auth::fuzzing::passkey),
    ("piece", signalbox::metrics::fuzzing::piece),
    ("policy", signalbox_agent::fuzzing::policy),
    ("processes", signalbox::metrics::fuzzing::processes),
    ("request", signalbox::http::fuzzing::request),
    ("segment", signalbox_agent::fuzzing::segment),
    ("service_message", signalbox_agent::fuzzing::service_message),
    ("socket", signalbox::ws::fuzzing::socket),
    ("stored_hash", signalbox::auth::fuzzing::stored_hash),
];

fn files_of(dir: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(dir).map(|files| files.map(|file| file.unwrap().path()).collect()).unwrap_or_default()
}

fn replay(target: &str) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let files = files_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target));
    assert!(!files.is_empty(), "fuzz/corpus/{target} is empty");
    for file in files {
        // The input's name precedes the panic.
        eprintln!("{}", file.display());
        run(&fs::read(&file).unwrap());
    }
}

#[test]
fn every_target_is_replayed() {
    let mut targets: Vec<String> = files_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fuzz_targets"))
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    targets.sort();

    assert_eq!(targets, TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn agent_message() {
    replay("agent_message");
}

#[test]
fn block() {
    replay("block");
}

#[test]
fn docker_log() {
    replay("docker_log");
}

#[test]
fn journal() {
    replay("journal");
}

#[test]
fn passkey() {
    replay("passkey");
}

#[test]
fn piece() {
    replay("piece");
}

#[test]
fn policy() {
    replay("policy");
}

#[test]
fn processes() {
    replay("processes");
}

#[test]
fn request() {
    replay("request");
}

#[test]
fn segment() {
    replay("segment");
}

#[test]
fn service_message() {
    replay("service_message");
}

#[test]
fn socket() {
    replay("socket");
}

#[test]
fn stored_hash() {
    replay("stored_hash");
}
