//! What `colibri-mpi` cannot say is no panic: a rank that panics ends its job.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "../../tests/lost_output.rs"]
mod lost_output;

use std::process::{Command, Stdio};

use lost_output::{full, unread};

#[test]
fn an_answer_that_cannot_be_told_is_an_error_unless_nobody_reads_it() {
    for (argument, on_a_full_disk, unread_by_all) in [
        ("--help", 1, 0),
        ("--version", 1, 0),
        ("--mpi-library", 1, 0),
        ("--mpi-release", 1, 0),
        ("--no-such-flag", 2, 2),
    ] {
        for (stream, wanted) in [(full as fn() -> Stdio, on_a_full_disk), (unread, unread_by_all)] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_colibri-mpi"));
            let status = command.arg(argument).stdout(stream()).stderr(stream()).status().unwrap();
            assert_eq!(status.code(), Some(wanted), "{argument}");
        }
    }
}
