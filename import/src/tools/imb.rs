use std::collections::BTreeSet;

use records::FileError;

use super::{
    imb_rows::{Benchmark, ImbRow, RowContext},
    imb_titles::{ImbTitle, ImbVersion},
    table::{TWICE, repeated},
};
use crate::{
    lines::{Lines, number, ranks, untagged},
    other_lines::{OtherLines, are_numbers, is_row},
    rows::Sink,
    sizes::{ELEMENT_BYTES, element_bytes},
    tool::{ImportHints, MeasuringTool},
};

/// The Intel MPI Benchmarks (IMB-MPI1): a table for each benchmark and number of processes.
/// Collectives tell the least, the greatest and the mean over ranks of each rank's mean over the
/// repetitions; the greatest is taken as the time. Each start of the program is a job; so are tables without a
/// title, as in an excerpt.
pub struct Imb;

/// Messages in a row of Uniband and Biband, where the program was not told otherwise; more since a version.
const WINDOW: u32 = 64;
const WIDER_WINDOW: (ImbVersion, u32) = ((2021, 2), 256);
/// How it is given, in the line of its calling sequence.
const WINDOW_OPTION: &str = "-window_size";
const TIMING: &str = "imb: mean over repetitions, greatest over ranks, calls in a row";
/// The program's last words.
const END: &str = "All processes entering MPI_Finalize";
/// How a line begins that tells of what elements vectors are.
const REDUCED_DATATYPE: &str = "MPI_Datatype for reductions";
/// The version since which the size of Reduce_scatter is the block of each rank, no longer the vector: seen in
/// the counts of its calls in 2018 and 2021, and in its sources between.
const BLOCKS_SINCE: ImbVersion = (2019, 0);

const FOREIGN: &str = "does not begin as output of the Intel MPI Benchmarks does";
const OUTSIDE: &str = "a row of numbers outside of the Intel MPI Benchmarks' tables; other output \
                       begins here";
const UNKNOWN_SIZE: &str =
    "its size is not the same in all versions of IMB, and no title tells the version";
/// Another benchmark than PingPong of IMB-MPI1, by its columns.
const PAIRS_AT_ONCE: &str = "PingPong of IMB-P2P (several pairs at once)";
/// What stands in a row in place of its times.
const NOT_TIMED: [&str; 3] = ["out-of-mem.", "int-overflow.", "time-out."];

/// What a line is.
enum ImbLine<'a> {
    Title(ImbTitle),
    /// `# Benchmarking Allreduce`
    Benchmark(&'a str),
    /// `# #processes = 4`
    Processes(&'a str),
    /// `-window_size 128` of the calling sequence.
    Window(&'a str),
    /// `# MPI_Datatype for reductions    :   MPI_FLOAT`
    Datatype(&'a str),
    /// `#bytes #repetitions  t_min[usec] ...`
    Columns(Vec<&'a str>),
    /// The program's last words.
    End,
    Comment,
    /// A size that was not timed, and why.
    NotTimed(&'static str),
    Row(Vec<&'a str>),
    /// A launcher's, or another program's.
    Foreign,
}

impl<'a> ImbLine<'a> {
    /// `columns` of the table that is open, if one is.
    fn of(line: &'a str, columns: Option<usize>) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        // With -multi a column stands before: `Group`.
        if matches!(words.first(), Some(&("#bytes" | "#repetitions" | "Group")))
            && words.contains(&"#repetitions")
        {
            return ImbLine::Columns(words);
        }
        if let Some(comment) = line.strip_prefix('#').map(str::trim) {
            let value = |text: &'a str| text.split_whitespace().next().unwrap_or_default();
            return if let Some(title) = ImbTitle::of(comment) {
                ImbLine::Title(title)
            } else if let Some(name) = comment.strip_prefix("Benchmarking ") {
                ImbLine::Benchmark(name.trim())
            } else if let Some((_, count)) = comment.split_once("processes = ") {
                ImbLine::Processes(value(count))
            } else if comment.starts_with(END) {
                ImbLine::End
            } else if let Some(place) = words.iter().position(|word| *word == WINDOW_OPTION) {
                ImbLine::Window(words.get(place + 1).copied().unwrap_or_default())
            } else if let Some(name) = comment.strip_prefix(REDUCED_DATATYPE) {
                ImbLine::Datatype(value(name.trim_start().trim_start_matches(':')))
            } else {
                ImbLine::Comment
            };
        }
        // `( 60 additional processes waiting in MPI_Barrier)`; `(base) me@n1:~$ mpirun ...` is a command.
        if let Some(inside) = line.strip_prefix('(')
            && inside.trim_start().starts_with(|sign: char| sign.is_ascii_digit())
        {
            return ImbLine::Comment;
        }
        let not_timed =
            NOT_TIMED.iter().find(|why| words.iter().take(3).any(|word| word.starts_with(**why)));
        match (not_timed, columns) {
            (Some(why), _) => ImbLine::NotTimed(why),
            (None, Some(columns)) if is_row(&words, columns) => ImbLine::Row(words),
            (None, None) if are_numbers(&words) => ImbLine::Row(words),
            (None, _) => ImbLine::Foreign,
        }
    }
}

/// A benchmark's table, from its name on.
struct ImbTable {
    name: String,
    benchmark: Benchmark,
    procs: Option<u32>,
    columns: Vec<String>,
}

/// Where in a file we are.
enum ImbState {
    /// Before the first run, or behind the end of one.
    Outside,
    /// In a run, before its first table.
    Begun,
    Table(ImbTable),
}

/// How far a file was read.
struct ImbRun {
    state: ImbState,
    /// How many jobs began: starts of the program, and repeated tables.
    starts: u32,
    /// The benchmarks of the job under way, with their processes.
    tables: BTreeSet<(String, u32)>,
    /// Of the run under way; none of an excerpt.
    title: Option<ImbTitle>,
    /// Messages in a row.
    window: u32,
    /// Bytes of the elements of what is reduced.
    element_bytes: u64,
    rows: u64,
    /// Benchmarks that are not read, with the reason where it is none of theirs.
    unread: BTreeSet<String>,
    others: OtherLines,
}

impl MeasuringTool for Imb {
    fn name(&self) -> &'static str {
        "imb"
    }

    fn title(&self) -> &'static str {
        "Intel MPI Benchmarks"
    }

    fn read(
        &self,
        lines: &mut Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let mut run = ImbRun {
            state: ImbState::Outside,
            starts: 0,
            tables: BTreeSet::new(),
            title: None,
            window: WINDOW,
            element_bytes: ELEMENT_BYTES,
            rows: 0,
            unread: BTreeSet::new(),
            others: OtherLines::default(),
        };
        while let Some(line) = lines.next_line()? {
            let line = untagged(line.trim()).trim().to_owned();
            if !line.is_empty() {
                run.take(&line, lines, hints, sink)?;
            }
        }
        run.finish(lines, sink)
    }
}

fn cut_off(what: &str) -> String {
    format!("{what} without '# {END}'; it was cut off")
}

impl ImbRun {
    /// Takes in a line: each kind of line, in each state, is read, left out, or refused by its number.
    fn take(
        &mut self,
        line: &str,
        lines: &Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let columns = match &self.state {
            ImbState::Table(table) => Some(table.columns.len()),
            ImbState::Outside | ImbState::Begun => None,
        };
        match ImbLine::of(line, columns) {
            ImbLine::Title(title) => self.begin(Some(title), lines, hints, sink)?,
            ImbLine::Benchmark(name) => self.open(name, lines, hints, sink)?,
            ImbLine::End => self.state = ImbState::Outside,
            ImbLine::Window(text) => {
                let window = positive(text);
                self.window = window.map_err(|it| lines.fault(it).in_field(WINDOW_OPTION))?;
            }
            ImbLine::Datatype(name) => {
                let bytes = element_bytes(name);
                self.element_bytes =
                    bytes.map_err(|it| lines.fault(it).in_field(REDUCED_DATATYPE))?;
            }
            ImbLine::Processes(count) => self.processes(count, lines, hints, sink)?,
            ImbLine::Columns(names) => self.columns(&names, lines, sink)?,
            ImbLine::Row(fields) => self.row(&fields, lines, hints, sink)?,
            ImbLine::NotTimed(why) => sink.note(&format!("IMB did not time all sizes: {why}")),
            ImbLine::Comment => {}
            ImbLine::Foreign => {
                hints.check_command(lines, line, sink)?;
                self.others.add(lines, line);
            }
        }
        Ok(())
    }

    fn processes(
        &mut self,
        count: &str,
        lines: &Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let ImbState::Table(table) = &mut self.state else { return Ok(()) };
        let procs = ranks(count).map_err(|it| lines.fault(it).in_field("#processes"))?;
        table.procs = Some(procs);
        let name = table.name.clone();
        if !self.tables.insert((name.clone(), procs)) {
            sink.note(&format!(
                "{}, line {}: {name} on {procs} processes stands there again: each time is taken as a job",
                lines.path().display(),
                lines.number()
            ));
            self.tables.clear();
            self.tables.insert((name, procs));
            self.start_job(lines, hints, sink)?;
        }
        Ok(())
    }

    fn columns(
        &mut self,
        names: &[&str],
        lines: &Lines<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let ImbState::Table(table) = &mut self.state else { return Ok(()) };
        if let Some(name) = repeated(names) {
            return Err(lines.fault(TWICE).in_field(name));
        }
        if table.benchmark == Benchmark::PingPong && names.contains(&"Msg/sec") {
            table.benchmark = Benchmark::Other;
            self.unread.insert(PAIRS_AT_ONCE.to_owned());
            sink.note(&format!("IMB's {PAIRS_AT_ONCE} is not read"));
        }
        table.columns = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(())
    }

    fn row(
        &mut self,
        fields: &[&str],
        lines: &Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let table = match &self.state {
            ImbState::Outside if self.starts == 0 => return Err(lines.fault(FOREIGN)),
            ImbState::Outside | ImbState::Begun => return Err(lines.fault(OUTSIDE)),
            ImbState::Table(ImbTable { benchmark: Benchmark::Other, .. }) => {
                // A command of as many words as there are columns, say.
                return match are_numbers(fields) {
                    true => Ok(()),
                    false => hints.check_command(lines, &fields.join(" "), sink),
                };
            }
            ImbState::Table(table) => table,
        };
        let row = ImbRow::new(&table.columns, fields, lines)?;
        let procs = table.procs.ok_or_else(|| {
            lines.fault("the number of processes is missing; expected '# #processes = N'")
        })?;
        let (window, element_bytes) = (self.window, self.element_bytes);
        row.hand_on(table.benchmark, &RowContext { procs, window, element_bytes, hints }, sink)?;
        self.rows += 1;
        Ok(())
    }

    /// A run begins, with a title or as an excerpt.
    fn begin(
        &mut self,
        title: Option<ImbTitle>,
        lines: &Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        if self.is_cut_off() {
            return Err(lines.fault(cut_off("the run before ends")));
        }
        self.title = title;
        self.state = ImbState::Begun;
        self.tables.clear();
        let is_wider = self.version().is_some_and(|version| version >= WIDER_WINDOW.0);
        self.window = if is_wider { WIDER_WINDOW.1 } else { WINDOW };
        self.element_bytes = ELEMENT_BYTES;
        if title.is_some_and(|title| title.on_gpus) {
            sink.note("GPU: buffers may be in memory of GPUs");
        }
        self.start_job(lines, hints, sink)
    }

    fn start_job(
        &mut self,
        lines: &Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        self.starts += 1;
        let mut job = hints.job(lines, TIMING).started(self.starts);
        if self.title.is_some_and(|title| title.on_gpus) {
            job.settings.push("accelerator=GPU".into());
            job.memory = "GPU".into();
        }
        sink.job(lines.number(), &job)
    }

    fn version(&self) -> Option<ImbVersion> {
        self.title.and_then(|title| title.version)
    }

    /// Whether the run under way says at its end that it ends, and has not yet said so.
    fn is_cut_off(&self) -> bool {
        !matches!(self.state, ImbState::Outside) && self.title.is_some_and(ImbTitle::ends)
    }

    /// A benchmark's table begins, and where nothing has begun, an excerpt with it.
    fn open(
        &mut self,
        name: &str,
        lines: &Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        if matches!(self.state, ImbState::Outside) {
            sink.note(&format!(
                "{}, line {}: tables without a title, taken as an excerpt: whether all of them are there is not known",
                lines.path().display(),
                lines.number()
            ));
            self.begin(None, lines, hints, sink)?;
        }
        let mut benchmark = match self.title {
            Some(ImbTitle { is_read: false, .. }) => Benchmark::Other,
            _ => Benchmark::of(name, self.version().map(|version| version >= BLOCKS_SINCE)),
        };
        let mut why = String::new();
        if benchmark == Benchmark::UnknownSize {
            benchmark = Benchmark::Other;
            why = format!(": {UNKNOWN_SIZE}");
        }
        if benchmark == Benchmark::Other {
            sink.note(&format!("IMB's {name} is not read{why}"));
            self.unread.insert(format!("{name}{why}"));
        }
        let (name, columns) = (name.to_owned(), Vec::new());
        self.state = ImbState::Table(ImbTable { name, benchmark, procs: None, columns });
        Ok(())
    }

    fn finish(self, lines: &Lines<'_>, sink: &mut dyn Sink) -> Result<(), FileError> {
        self.others.tell(lines, sink);
        if self.starts == 0 {
            return Err(lines.of_file(FOREIGN));
        }
        if self.is_cut_off() {
            return Err(lines.fault(cut_off("ends")));
        }
        match (self.rows, self.unread.is_empty()) {
            (0, true) => Err(lines.of_file("holds no table")),
            (0, false) => {
                let names: Vec<&str> = self.unread.iter().map(String::as_str).collect();
                Err(lines.of_file(format!(
                    "holds no table that Colibri reads, but {}; read are blocking collectives, PingPong, \
                     Uniband and Biband of IMB-MPI1",
                    names.join(", ")
                )))
            }
            _ => Ok(()),
        }
    }
}

/// A number of 1 or more.
fn positive(text: &str) -> Result<u32, String> {
    match number(text, "a number")? {
        0 => Err("is 0; expected 1 or more".into()),
        value => Ok(value),
    }
}
