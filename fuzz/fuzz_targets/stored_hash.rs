#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox::auth::fuzzing::stored_hash(data));
