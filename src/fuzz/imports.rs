//! Files of other tools, imported as the command does: into records of a run. Damaged by chance they are fed to
//! the tools' readers alone.

use std::fs;

use ::fuzz::{Answer, Inputs, Parser, files, parsers::refused_with, runs::Scratch};
use import::{ImportHints, MeasuringTool};

use stages::importing::{self, WantedMethods, WantedRows};

/// Longer samples, of which each is written as often as it has lines, take too long: bytes.
const LONGEST: usize = 1600;

/// The name of a tool, and what it has written.
pub fn parser() -> Parser {
    let tools = import::ALL.iter().map(|tool| tool.name());
    let samples = tools.flat_map(|name| {
        let texts = files::output_of(name).into_iter().filter(|text| text.len() <= LONGEST);
        texts.map(move |text| format!("{name}\n{text}").into_bytes())
    });
    Parser { name: "imports", samples: samples.collect(), words: &[], inputs: Inputs::LARGE, read }
}

fn read(input: &[u8]) -> Answer {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (name, text) = input.split_at(end);
    let known = import::ALL.iter().find(|tool| tool.name().as_bytes() == name);
    // Where it is no tool's name, the first one's file.
    let tool: &dyn MeasuringTool = known.copied().unwrap_or(import::ALL[0]);
    let scratch = Scratch::new();
    let file = scratch.path().join("output.txt");
    fs::write(&file, text.strip_prefix(b"\n").unwrap_or(text)).unwrap();
    // Rows of CSV files tell it themselves.
    let procs = (tool.name() != "csv").then_some(64);
    let told = ImportHints { procs, ..ImportHints::default() };
    let wanted = WantedRows { methods: WantedMethods::All, layouts: None };
    let run = scratch.path().join("run");
    match importing::import(tool, &[file], &told, wanted, &run) {
        Ok(imported) => {
            assert!(imported.calls + imported.exchanges > 0);
            Answer::Accepted
        }
        Err(error) => refused_with(&format!("{error:#}")),
    }
}
