#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox::auth::fuzzing::passkey(data));
