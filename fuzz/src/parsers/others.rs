use std::path::Path;

use import::{
    ImportHints, ImportedCall, Job, Lines, MeasuringTool, PairExchange, RowLeftOut, Script, Sink,
};
use records::{FileError, number::MAX_PROCS};

use super::{FILE, refused_with};
use crate::{Answer, Inputs, Parser, files};

const WORDS: &[&str] = &[
    "# OSU MPI Allreduce Latency Test v5.6.2",
    "# Size       Avg Latency(us)",
    "[ pairs: ",
    "#processes = ",
    "# Benchmarking ",
    "All processes entering MPI_Finalize",
    "# Datatype: MPI_CHAR.",
    "# MPI_Datatype for reductions    :   MPI_FLOAT",
    "#    Intel (R) MPI Benchmarks 2018, MPI-1 part",
    "#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]",
    "out-of-mem.",
    "#SBATCH --ntasks-per-node=8 -N4",
    "mpirun -np 8 --map-by ppr:2:node",
    "srun -n8",
    "$MPIRUN",
    "<<EOF",
    "\\\n",
    "$(",
    "#@nprocs=",
    "#@datatype_extent_bytes=",
    "test nrep count runtime_sec",
    "GL_Bcast_as_ScatterAllgather",
    "BCAST",
    "default-default",
    "4294967295",
    "18446744073709551615",
    "1e400",
    "NaN",
    "0",
    "\t",
    "\"",
];

/// Takes in everything that is sensible, and comes when it may.
#[derive(Default)]
struct Checked {
    has_job: bool,
}

impl Sink for Checked {
    fn job(&mut self, _: u64, job: &Job) -> Result<(), FileError> {
        self.has_job = true;
        assert!(job.nodes.is_none_or(|nodes| nodes.procs() <= MAX_PROCS), "{job:?}");
        Ok(())
    }

    fn call(&mut self, _: u64, call: &ImportedCall<'_>) -> Result<(), FileError> {
        assert!(self.has_job, "a call before its job");
        assert!((1..=MAX_PROCS).contains(&call.procs), "{call:?}");
        assert!(call.seconds.is_finite() && call.seconds >= 0.0, "{call:?}");
        Ok(())
    }

    fn exchange(&mut self, _: u64, exchange: &PairExchange) -> Result<(), FileError> {
        assert!(self.has_job, "an exchange before its job");
        assert!((1..=MAX_PROCS / 2).contains(&exchange.pairs), "{exchange:?}");
        assert!(exchange.messages > 0, "{exchange:?}");
        assert!(exchange.seconds.is_finite() && exchange.seconds >= 0.0, "{exchange:?}");
        Ok(())
    }

    fn left_out(&mut self, line: u64, _: RowLeftOut) {
        assert!(line > 0);
    }

    fn note(&mut self, _: &str) {}
}

fn read(tool: &dyn MeasuringTool, input: &[u8]) -> Answer {
    // Rows of CSV files tell it themselves.
    let procs = (tool.name() != "csv").then_some(64);
    let told = ImportHints { procs, ..ImportHints::default() };
    match tool.read(&mut Lines::new(Path::new(FILE), input), &told, &mut Checked::default()) {
        Ok(()) => Answer::Accepted,
        Err(error) => refused_with(&error),
    }
}

fn parser(name: &'static str, read: fn(&[u8]) -> Answer) -> Parser {
    let samples = files::output_of(name).into_iter().map(String::into_bytes).collect();
    Parser { name, samples, words: WORDS, inputs: Inputs::LARGE, read }
}

fn by_name(name: &str, input: &[u8]) -> Answer {
    read(import::find(name).expect("it is in the registry"), input)
}

/// Output of the OSU micro-benchmarks.
pub fn osu() -> Parser {
    parser("osu", |input| by_name("osu", input))
}

/// Output of the Intel MPI Benchmarks.
pub fn imb() -> Parser {
    parser("imb", |input| by_name("imb", input))
}

/// Output of ReproMPI.
pub fn reprompi() -> Parser {
    parser("reprompi", |input| by_name("reprompi", input))
}

/// PICO's summaries.
pub fn pico() -> Parser {
    parser("pico", |input| by_name("pico", input))
}

/// A table of others.
pub fn table() -> Parser {
    parser("csv", |input| by_name("csv", input))
}

/// A job's script.
pub fn job_script() -> Parser {
    let samples = files::scripts().into_iter().map(String::into_bytes).collect();
    fn read(input: &[u8]) -> Answer {
        match Script::read(Lines::new(Path::new(FILE), input)) {
            Ok(script) => {
                let _ = (script.layout(), script.ranks());
                Answer::Accepted
            }
            Err(error) => refused_with(&error),
        }
    }
    Parser { name: "job script", samples, words: WORDS, inputs: Inputs::SMALL, read }
}
