//! mpi4py's tests of collectives: the same outcome with the library as without. `make test-mpi4py`
//! runs its whole suite.

#![allow(clippy::unwrap_used, reason = "a test's helper fails as the test does")]

#[allow(dead_code, reason = "each test program uses its part of this module")]
mod common;

use std::{path::Path, process::Command};

use common::{TestFolder, TestLibrary, library, skipped, stderr, stdout};

/// What the script says by its exit code: mpi4py can't be had here.
const NOT_TO_BE_HAD: i32 = 3;

#[test]
fn its_collectives_on_open_mpi() {
    let Some(_turn) = TestFolder::new(TestLibrary::OpenMpi) else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mpi4py");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut command = Command::new(script);
    command.arg("-s").env("LIBRARY", library()).env("CARGO_TARGET_DIR", target);
    for name in ["WITH", "RANKS", "FAMILIES", "ONLY"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    match output.status.code() {
        Some(0) => {}
        Some(NOT_TO_BE_HAD) => skipped("mpi4py's tests", stderr(&output).trim()),
        _ => panic!("{}\n{}{}", output.status, stdout(&output), stderr(&output)),
    }
}
