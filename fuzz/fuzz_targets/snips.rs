#![no_main]

use fewtag::data::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fewtag_fuzz::read_and_write(Format::SnipsJson, bytes));
