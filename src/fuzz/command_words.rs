//! Damaged command lines.

use ::fuzz::{Answer, Inputs, Parser, parsers::refused_with};
use clap::Parser as _;

use crate::{Cli, Command};

const SAMPLES: &[&str] = &[
    "tune\ndir\n--budget\n5m\n--testbed\n8",
    "tune\n--resume\n--collective\nbcast,reduce\n--procs\n2..8\n--sizes\n1..1MiB\n--segments\n0,1KiB",
    "calibrate\ndir\n--pair\n0,5\n--precision\n0.025\n--stop-by\nrse\n--sizes\n0..8MiB",
    "platform\n--clocks\ndir\n--for\n30s\n--false-clocks\n2",
    "predict\n--calibration\npreset:frodo\n--model\nall\n-p\n8\n-m\n64KiB\n--format\njson",
    "decide\n--calibration\npreset:boba\n--model\nplogp\n--segments\nauto\n--compress\ntree\n--depth\n4",
    "decide\na.json:plogp\n--against\nb.json\n--run\ndir\n--figure\nx.svg",
    "verify\ndir\n--from-record\n--judge\nloaded=openmpi.rules\n--compare\ndefault,measured",
    "guidelines\ndir\n--from-record\n--level\n0.01\n--methods\nall",
    "predict\n--model\nsimulated\n--costs\nloggp\n--rendezvous\n64KiB\n-p\n8\n--fan-out\n3\n--algorithm\npipeline",
    "bench\n--nrep\ndir\n--from-record\n--stop-by\nrse=0.1,cov-mean=0.01@20",
    "tune\ndir\n--ranks\n2\n--\n./application\n-n\n8",
    "tune\n--replay\ndir\n--cells\n10%,0.5",
    "export\ndir\n--record\ncsv",
    "export\ndir\n--target\nmpich\n--target-version\n4.0\n--output\nx",
    "testbed\nup\n--rate\n100mbit\n--port\n3.in=50mbit\n--ppn\n2",
    "testbed\nstatus",
    "report\ndir",
];

const WORDS: &[&str] = &[
    "--",
    "--budget",
    "--format",
    "--target",
    "--model",
    "--procs",
    "KiB",
    "..",
    ",",
    "preset:",
    "plogp",
    "json",
    "--version",
    "-p",
    "-m",
    "=",
    "10mbit",
    "1ms",
    "openmpi-json",
    "--plugin",
    "a.so:MPIB_Bcast_x",
    "--patience",
    "--ranks",
    "{np}",
    "between-nodes",
    "cov-median",
];

/// A command line, a word on each line.
pub(super) fn parser() -> Parser {
    fn read(input: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(input);
        let words = std::iter::once("colibri").chain(text.lines());
        match Cli::try_parse_from(words) {
            Ok(cli) => {
                assert!(format!("{:?}", cli.command).len() > 1);
                if let Command::Calibrate(calibrate) = cli.command {
                    let pair = calibrate.wanted.pair;
                    assert!(pair.ranks() >= 2 && !pair.to_string().is_empty());
                }
                Answer::Accepted
            }
            Err(error) => refused_with(&error),
        }
    }
    let samples = SAMPLES[..].iter().filter(|sample| !sample.contains("--help"));
    let samples = samples.map(|sample| sample.as_bytes().to_vec()).collect();
    let inputs = Inputs { short: 200, ..Inputs::SMALL };
    Parser { name: "command words", samples, words: WORDS, inputs, read }
}
