//! Tests that can't be run everywhere say so; where all are wanted, that is a failure.

use std::env;

/// `all` in this variable makes every skipped test a failure: what tests need is then installed (`make
/// test-deps`), and a test that is not run shows nothing.
const REQUIRE: &str = "COLIBRI_TEST_REQUIRE";

/// Says that a test, or a part of it, is skipped.
#[track_caller]
pub fn skipped(test: &str, why: &str) {
    let all = env::var_os(REQUIRE).is_some_and(|required| required == "all");
    assert!(!all, "{test}: would be skipped, but {REQUIRE}=all: {why}");
    eprintln!("{test}: SKIPPED: {why}");
}
