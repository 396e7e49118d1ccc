use std::fmt;

use records::{
    Collective, FileError, Layout, Method, imported::StreamDirection,
    observation::ObservationStatus,
};

/// What is known of a job: one start of the tool by a launcher.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// What tells it from the others: a time and a number, a file's name.
    pub name: String,
    /// The MPI library and its version; empty where it is not given.
    pub library: String,
    /// Where its ranks ran, where that is given.
    pub nodes: Option<Layout>,
    /// What one time is: from when to when, over which ranks.
    pub timing: String,
    /// Settings that belong to it, such as `UCX_MAX_RNDV_RAILS=1`.
    pub settings: Vec<String>,
    /// The cluster; empty where it is not given.
    pub system: String,
    /// What may hold its buffers: `CUDA`, `GPU`; empty for the host's memory.
    pub memory: String,
}

impl Job {
    /// What the same file tells of the program's further starts, counted from 1.
    pub fn started(&self, times: u32) -> Self {
        match times {
            0 | 1 => self.clone(),
            _ => Job { name: format!("{} #{times}", self.name), ..self.clone() },
        }
    }
}

/// A statistic of several repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Which one the time is: `median`, `mean`, `mean over repetitions, greatest over ranks`.
    pub statistic: &'static str,
    /// Of how many; 0 where that is not given.
    pub repetitions: u32,
    /// The others that were given, in seconds.
    pub others: Vec<(&'static str, f64)>,
}

/// Whether a time is one repetition's or a summary's.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    /// A repetition of its cell, with its number where the tool counts them.
    Repetition(Option<u32>),
    /// A statistic of several.
    Summary(Summary),
}

/// The time of a collective.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedCall<'a> {
    pub collective: Collective,
    pub method: &'a Method,
    /// Whether it is the MPI library's own, whatever its name.
    pub of_library: bool,
    /// Processes in the communicator.
    pub procs: u32,
    /// Message size; see [`Collective::message_size`].
    pub bytes: u64,
    pub seconds: f64,
    /// Of what it is the time.
    pub made: Made,
    /// Whether the tool counts it as late.
    pub status: ObservationStatus,
}

impl ImportedCall<'_> {
    /// Whether a method's name tells that it is the library's.
    pub fn is_library(method: &Method) -> bool {
        matches!(method, Method::Default | Method::Native(_))
    }
}

/// The time of messages between pairs of ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct PairExchange {
    pub direction: StreamDirection,
    /// Pairs that do the same at once.
    pub pairs: u32,
    /// Whether they are of the first ranks of a job that may have more; else they are of all ranks.
    pub is_of_first: bool,
    /// Bytes of a message.
    pub bytes: u64,
    /// Messages in a row, of each pair and each way.
    pub messages: u32,
    /// The time of all of them; of a ping-pong there and back.
    pub seconds: f64,
    /// Of what it is the time.
    pub summary: Summary,
}

/// Why a row is left out and the others are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowLeftOut {
    /// Its time or rate is 0: less than the tool prints.
    Zero,
    /// [`crate::SizeMeaning::ours`] gives no size.
    FewerThanRanks,
    /// None of its repetitions counts.
    NoRepetition,
    /// Its buffers are in another memory than those of the rows before.
    OtherMemory,
    /// Its messages are between ranks of one node.
    SameNode,
}

impl fmt::Display for RowLeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowLeftOut::Zero => "left out, as it tells 0: less than its tool prints",
            RowLeftOut::FewerThanRanks => {
                "vectors of fewer elements than ranks are left out: their block is less than an element, and \
                 sizes would be taken for each other"
            }
            RowLeftOut::NoRepetition => "left out, as it tells 0 repetitions",
            RowLeftOut::OtherMemory => {
                "buffers in another memory (of a GPU, or of the host) than in the rows before are left out"
            }
            RowLeftOut::SameNode => {
                "messages between ranks of one node are left out; expected pairs whose ranks are on two nodes, as \
                 with --layouts 2x1"
            }
        })
    }
}

/// Takes what a tool finds, in the order of its lines. A job is announced before what belongs to it.
pub trait Sink {
    /// What follows belongs to this job, new or begun before; `line` is where it is given.
    ///
    /// # Errors
    /// It contradicts what was said of the job before.
    fn job(&mut self, line: u64, job: &Job) -> Result<(), FileError>;

    /// A collective's time, at this line.
    ///
    /// # Errors
    /// It cannot be kept beside what is there, or not written.
    fn call(&mut self, line: u64, call: &ImportedCall<'_>) -> Result<(), FileError>;

    /// The time of messages, at this line.
    ///
    /// # Errors
    /// As [`Sink::call`].
    fn exchange(&mut self, line: u64, exchange: &PairExchange) -> Result<(), FileError>;

    /// The row at this line is left out.
    fn left_out(&mut self, line: u64, why: RowLeftOut);

    /// What the user should know, as what was left out: reported once for each text.
    fn note(&mut self, text: &str);
}
