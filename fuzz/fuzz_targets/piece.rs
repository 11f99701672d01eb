#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox::metrics::fuzzing::piece(data));
