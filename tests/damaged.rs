//! Damaged runs through the command itself: it ends by itself and in good order, within a second or
//! two and 1 GiB, and never by a panic.

use std::{process::Command, time::Duration};

use fuzz::{
    Answer, Inputs, Parser,
    runs::{self, Scratch},
};

::fuzz::fuzz! {
    runs_by_the_command: super::runs(),
}

/// Every command that reads a run; RUN is its directory.
const COMMANDS: [&[&str]; 8] = [
    &["verify", "RUN", "--from-record", "--compare", "default,measured"],
    &["calibrate", "RUN", "--from-record"],
    &["report", "RUN"],
    &["export", "RUN", "--target", "openmpi", "--output", "RUN/rules"],
    &["export", "RUN", "--target", "profile", "--output", "RUN/profiles"],
    &["decide", "--calibration", "RUN/calibration.json", "-p", "8", "-m", "1KiB,1MiB"],
    &[
        "predict",
        "--calibration",
        "RUN/calibration.json",
        "-p",
        "8",
        "-m",
        "1KiB",
        "--model",
        "all",
    ],
    &[
        "decide",
        "RUN/decisions.json:plogp",
        "--against",
        "RUN/decisions.json:loggp",
        "--run",
        "RUN",
    ],
];

fn runs() -> Parser {
    const WORDS: &[&str] = &[
        "==> ",
        "hosts",
        "procs",
        "bytes",
        "method",
        "default",
        "own:linear",
        "native:openmpi:ring",
        "bcast",
        "visits",
        "cells",
        "ok",
        "late",
        "round-trip",
        "value",
        "low",
        "high",
        "knots",
        "plogp",
        "loggp",
    ];
    // The second one holds every file.
    let samples = runs::samples().split_off(1);
    let inputs = Inputs { short: 6, whole: 3_000 };
    Parser { name: "runs by the command", samples, words: WORDS, inputs, read }
}

fn read(input: &[u8]) -> Answer {
    let scratch = Scratch::new();
    runs::unpack(input, scratch.path());
    let directory = scratch.path().to_str().unwrap();
    let sum = input.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31) ^ usize::from(*byte));
    let words = COMMANDS[sum % COMMANDS.len()].iter().map(|word| word.replace("RUN", directory));
    let words: Vec<String> = words.collect();
    // 1 GiB, and what the program and its stack are.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 1258291; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_colibri")]);
    limited.args(&words);
    let output =
        assert_cmd::Command::from_std(limited).timeout(Duration::from_secs(20)).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("panicked"), "{}: {told}", words[0]);
    match output.status.code() {
        Some(0) => Answer::Accepted,
        Some(1 | 2) if !told.trim().is_empty() => Answer::Refused,
        code => panic!("{}: ended by {code:?} ({:?}), said: {told}", words[0], output.status),
    }
}
