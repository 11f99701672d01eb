#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox::metrics::fuzzing::agent_message(data));
