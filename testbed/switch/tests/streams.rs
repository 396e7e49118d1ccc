//! What the switch cannot say is no panic.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::{fs::File, process::Command};

#[test]
fn a_refusal_that_cannot_be_told_keeps_its_exit_code() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut switch = Command::new(env!("CARGO_BIN_EXE_colibri-switch"));
    assert_eq!(switch.stderr(full).status().unwrap().code(), Some(1));
}
