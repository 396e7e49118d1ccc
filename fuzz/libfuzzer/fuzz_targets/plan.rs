#![no_main]

use std::sync::LazyLock;

static PARSER: LazyLock<fuzz::Parser> = LazyLock::new(fuzz::parsers::plan);

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = (PARSER.read)(input);
});
