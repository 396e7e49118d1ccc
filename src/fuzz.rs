//! Damaged settings, traces, MPICH's own tunings, command lines and whole runs.

mod command_words;
mod imports;

use std::{fs, path::Path};

use ::fuzz::{
    Answer, Inputs, Parser, files,
    parsers::{document, refused_with},
    runs::{self, Scratch},
};
use clap::Parser as _;
use libraries::openmpi;
use records::{Collective, Method, Point, choices::Chosen, profile};

use crate::{Cli, Command};
use site::{begun::GivenOptions, config::Config};
use stages::{
    export_formats::{Export, ExportFormat},
    exporting::rules,
    guideline_file,
    traced::Traced,
};

::fuzz::fuzz! {
    colibri_toml: super::toml(),
    guideline_file: super::guideline_file(),
    tune_options: super::tune_options(),
    usage_for_tuning: super::traced(),
    mpich_json: super::mpich(),
    command_words: super::command_words::parser(),
    whole_runs: super::whole_runs(),
    decisions_exported: super::decisions_exported(),
}

::fuzz::fuzz_cut! {
    imports_from_the_middle: super::imports::parser(),
}

fn answer<T>(result: anyhow::Result<T>) -> Answer {
    match result {
        Ok(_) => Answer::Accepted,
        Err(error) => refused_with(&format!("{error:#}")),
    }
}

/// A site's settings.
fn toml() -> Parser {
    const WORDS: &[&str] = &[
        "launcher",
        "ranks",
        "mpirun -np {np}",
        "srun",
        "true",
        "1979-05-27",
        "[a]",
        "[[a]]",
        "a.b",
        "'''",
        "\"\"\"",
        "= ",
        "inf",
        "{ a = 1 }",
        "# ",
    ];
    fn read(input: &[u8]) -> Answer {
        let scratch = Scratch::new();
        let path = scratch.path().join("colibri.toml");
        fs::write(&path, input).unwrap();
        match Config::read(&path) {
            Ok(_) => Answer::Accepted,
            Err(error) => refused_with(&error),
        }
    }
    let samples = ["launcher = \"srun -n {np}\"\nranks = 4\n", "# nothing\nranks = 1\n"];
    let samples = samples.map(|sample| sample.as_bytes().to_vec()).into();
    Parser { name: "toml", samples, words: WORDS, inputs: Inputs::SMALL, read }
}

/// Guidelines that users write.
fn guideline_file() -> Parser {
    const WORDS: &[&str] = &[
        "[[guideline]]",
        "guideline",
        "rule = ",
        "sizes = ",
        "procs = ",
        "tolerance = ",
        "MPI_Bcast <= MPI_Scatter + MPI_Allgather",
        "MPI_Reduce_local",
        "barrier",
        "plugin:libmine.so:my_bcast",
        "mockup:bcast_as_allgatherv",
        "<=",
        "+",
        "1..64KiB",
        "nan",
        "'''",
    ];
    const SAMPLE: &str = "[[guideline]]\nrule = \"MPI_Gather <= MPI_Allgather\"\n\n\
        [[guideline]]\nrule = \"bcast <= reduce + barrier\"\nsizes = \"8,64KiB\"\nprocs = \"4,8\"\n\
        tolerance = 0.05\n";
    fn read(input: &[u8]) -> Answer {
        let Ok(text) = str::from_utf8(input) else { return Answer::Refused };
        match guideline_file::parse(text, Path::new("FILE")) {
            Ok(rules) => {
                let again = guideline_file::parse(&guideline_file::text(&rules), Path::new("FILE"));
                assert_eq!(again.expect("what was read can be written"), rules);
                Answer::Accepted
            }
            Err(error) => refused_with(&error),
        }
    }
    let (samples, inputs) = (vec![SAMPLE.into()], Inputs::SMALL);
    Parser { name: "guideline file", samples, words: WORDS, inputs, read }
}

/// The options that a run was begun with.
fn tune_options() -> Parser {
    const SAMPLE: &str = r#"{
  "schema": "colibri/options/1",
  "command": "tune",
  "options": {
    "budget": ["300s"],
    "collective": ["bcast,reduce"],
    "exhaustive": [],
    "port": ["3.in=50mbit", "2=10mbit"],
    "procs": ["4,8"],
    "testbed": ["8"]
  }
}"#;
    const WORDS: &[&str] =
        &["schema", "command", "options", "budget", "bcast", "null", "true", "gbit", "rate"];
    let read = |input: &[u8]| document::<GivenOptions>(input, |_| ());
    Parser {
        name: "tune options",
        samples: vec![SAMPLE.into()],
        words: WORDS,
        inputs: Inputs::SMALL,
        read,
    }
}

/// A trace, and what a job of some ranks can tune by it.
fn traced() -> Parser {
    fn read(input: &[u8]) -> Answer {
        document::<records::usage::Usage>(input, |usage| {
            for ranks in [1, 4, 8, u32::MAX] {
                let Ok(traced) = Traced::new(usage, ranks) else { continue };
                let weights = traced.weights();
                for calls in &usage.calls {
                    let bytes = calls.point.bytes.checked_ilog2().map_or(0, |power| 1 << power);
                    let weight = weights.at(Point { bytes, ..calls.point });
                    assert!(weight >= 0.0 && weight.is_finite(), "a weight of {weight}");
                }
                let application = traced.application("trace".into());
                let seconds = [application.collective_seconds, application.tunable_seconds];
                assert!(seconds.iter().all(|seconds| seconds.is_finite()), "{seconds:?}");
            }
        })
    }
    const WORDS: &[&str] =
        &["procs", "bytes", "calls", "seconds", "collective", "bcast", "barrier"];
    Parser { name: "traced", samples: files::usages(), words: WORDS, inputs: Inputs::SMALL, read }
}

/// What MPICH's library chooses by itself, with our choices put into it.
fn mpich() -> Parser {
    const SAMPLE: &[u8] = b"\x7fELF\x004.0.2\0{\"collective=bcast\":{\"comm_type=intra\":{\
        \"comm_size<=2\":{\"MPIR_Bcast_intra_binomial\":{}},\"comm_size=pow2\":{\
        \"is_node_consecutive=yes\":{\"MPIR_Bcast_intra_smp\":{}},\"avg_msg_size<=512\":{\
        \"MPIR_Bcast_intra_binomial\":{}},\"avg_msg_size=any\":{\"MPIR_Bcast_intra_scatter_ring_allgather\":{}}},\
        \"comm_size=any\":{\"avg_msg_size=any\":{\"MPIR_Bcast_intra_binomial\":{}}}},\"comm_type=inter\":{}},\
        \"collective=allgather\":{\"comm_type=intra\":{\"total_msg_size<=81920\":{\
        \"MPIR_Allgather_intra_brucks\":{}},\"total_msg_size=any\":{\"MPIR_Allgather_intra_ring\":{}}}}}\0";
    const WORDS: &[&str] = &[
        "collective=bcast",
        "comm_type=intra",
        "comm_size<=",
        "comm_size=pow2",
        "comm_size=node_comm_size",
        "comm_size=any",
        "comm_hierarchy=parent",
        "avg_msg_size<=",
        "total_msg_size=any",
        "4.0.2",
        "{}",
        "is_commutative=yes",
        "MPIR_Bcast_intra_binomial",
        "is_node_consecutive=no",
    ];
    fn read(input: &[u8]) -> Answer {
        let scratch = Scratch::new();
        let path = scratch.path().join("libmpich.so");
        fs::write(&path, input).unwrap();
        let mpich = ExportFormat::find("mpich").unwrap();
        answer(mpich.exporter(Some("4.0"), Some(&path)).and_then(|exporter| {
            let choices = chosen("native:mpich");
            let rules = rules(&choices, None);
            let origin = ["fuzz".into()];
            let written = exporter.files(&Export { rules: &rules, comments: &origin })?;
            let tree: serde_json::Value = serde_json::from_str(&written[0].text).unwrap();
            assert!(tree.is_object(), "no tuning file");
            Ok(())
        }))
    }
    Parser {
        name: "mpich",
        samples: vec![SAMPLE.into()],
        words: WORDS,
        inputs: Inputs::SMALL,
        read,
    }
}

fn chosen(library: &str) -> Vec<Chosen> {
    let wanted = [
        (Collective::Bcast, 2, 64, "binomial"),
        (Collective::Bcast, 4, 64, "binomial"),
        (Collective::Bcast, 4, 4096, "scatter-allgather-ring"),
        (Collective::Bcast, 9, 4096, "scatter-allgather"),
        (Collective::Allgather, 4, 64, "recursive-doubling"),
        (Collective::Allgather, 7, 65_536, "ring"),
    ];
    let choice = |(collective, procs, bytes, name): (Collective, u32, u64, &str)| {
        let method = format!("{library}:{name}").parse().unwrap();
        Chosen::measured(Point::flat(collective, procs, bytes), method, 1e-4, 2e-4)
    };
    wanted.map(choice).into()
}

/// A number that follows from the input.
fn sum(input: &[u8]) -> usize {
    input.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)))
}

/// Formats and what each needs beside.
const FORMATS: [&[&str]; 7] = [
    &["openmpi"],
    &["openmpi-json", "--target-version", "6.0"],
    &["intel", "--target-version", "2021.19"],
    &["ucc", "--target-version", "1.3"],
    &["ucc-conf"],
    &["pgtune"],
    &["profile"],
];

/// Runs `colibri export`, and reads what it has written as its target does.
fn export(from: &[&str], format: &[&str], scratch: &Path) -> Answer {
    let file = scratch.join("exported");
    let to = file.display().to_string();
    let to = ["--unconfirmed", "--output", &to, "--target"];
    let words = [&["colibri", "export"], from, &to, format].concat();
    let Ok(Cli { command: Command::Export(command) }) = Cli::try_parse_from(words) else {
        panic!("a wrong command line");
    };
    let outcome = command.run();
    if outcome.is_ok() {
        match format[0] {
            "openmpi" => {
                let text = fs::read_to_string(&file).unwrap();
                openmpi::rules::parse(&text, &file).expect("the rules that were written");
            }
            "openmpi-json" => {
                let text = fs::read_to_string(&file).unwrap();
                serde_json::from_str::<serde_json::Value>(&text)
                    .expect("the JSON that was written");
            }
            "pgtune" | "profile" if fs::read_dir(&file).unwrap().next().is_some() => {
                let read = profile::read_directory(&file, |_| Ok(()));
                let read = read.expect("the profiles that were written");
                assert!(read.unusable.is_empty(), "{:?}", read.unusable);
            }
            _ => {}
        }
    }
    answer(outcome)
}

/// A run, what it exports and its report.
fn whole_runs() -> Parser {
    const WORDS: &[&str] = &[
        "==> ",
        "plan.json",
        "measurements.csv",
        "calibration.json",
        "#@platform=",
        "#@timing=",
        "hosts",
        "native:openmpi:binomial",
        "own:linear",
        "mockup:bcast_as_scatter_allgather",
        "default",
        "reduce",
        "confirmed",
        "rests_on",
        "preload",
        "rules",
        "procs",
        "bytes",
        "visits",
        "cells",
        "ok",
        "late",
    ];
    fn read(input: &[u8]) -> Answer {
        let scratch = Scratch::new();
        let run = scratch.path().join("run");
        fs::create_dir(&run).unwrap();
        runs::unpack(input, &run);
        let directory = run.display().to_string();
        let format = FORMATS[sum(input) % FORMATS.len()];
        let exported = export(&[&directory], format, scratch.path());
        let Ok(Cli { command: Command::Report(report) }) =
            Cli::try_parse_from(["colibri", "report", &directory])
        else {
            panic!("a wrong command line");
        };
        match (exported, answer(report.run())) {
            (Answer::Refused, Answer::Refused) => Answer::Refused,
            _ => Answer::Accepted,
        }
    }
    Parser {
        name: "whole runs",
        samples: runs::samples(),
        words: WORDS,
        inputs: Inputs::LARGE,
        read,
    }
}

/// Decisions of a model, in every format.
fn decisions_exported() -> Parser {
    const WORDS: &[&str] = &[
        "collective",
        "model",
        "plogp",
        "procs",
        "bytes",
        "method",
        "own:ring",
        "allgather",
        "scan",
        "alltoall",
        "gather",
        "barrier",
        "reduce_scatter_block",
        "own:segmented-ring,segment=1KiB",
        "seconds",
        "ties",
        "native:openmpi:two-procs",
        "own:recursive-halving",
        "default",
        "alltoallv",
        "mockup:scan_as_exscan_reduce_local",
    ];
    fn read(input: &[u8]) -> Answer {
        let scratch = Scratch::new();
        let file = scratch.path().join("decisions.json");
        fs::write(&file, input).unwrap();
        let file = file.display().to_string();
        let from = ["--decisions", &file, "--calibration", "preset:frodo", "--model", "plogp"];
        export(&from, FORMATS[sum(input) % FORMATS.len()], scratch.path())
    }
    let samples = vec![files::decisions().into_bytes()];
    Parser { name: "decisions exported", samples, words: WORDS, inputs: Inputs::LARGE, read }
}

/// Methods that stand in the samples are methods.
#[test]
fn the_choices_are_what_mpich_is_told() {
    assert!(chosen("native:mpich").iter().all(|choice| choice.method != Method::Default));
}
