//! `redaction`, with libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (ll_loop_fuzz::targets::redaction::TARGET.run)(data));
