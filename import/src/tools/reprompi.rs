use records::{Collective, FileError, Method, observation::ObservationStatus};

use super::table::{ColumnFault, TWICE, repeated};
use crate::{
    lines::{Lines, number, ranks, time, untagged},
    methods,
    other_lines::{OtherLines, are_numbers},
    rows::{ImportedCall, Job, Made, RowLeftOut, Sink, Summary},
    tool::{ImportHints, MeasuringTool},
};

/// ReproMPI: every repetition's time, or a summary of them, below `#@key=value` lines. Its size is
/// the count of one call's buffer in elements (or bytes, as its column says), of one block where
/// there are blocks: ours. Repetitions that missed their window are kept as late ones. Each line of
/// column names is a start of its program: a job.
pub struct ReproMpi;

/// Its compositions of other collectives, in our words.
const MOCKUPS: &[(&str, &str)] = &[
    ("GatherBcast", "gather_bcast"),
    ("ReduceBcast", "reduce_bcast"),
    ("ReducescatterAllgatherv", "reduce_scatter_allgatherv"),
    ("ReducescatterblockAllgather", "reduce_scatter_block_allgather"),
    ("ScatterAllgather", "scatter_allgather"),
    ("ReducescatterGatherv", "reduce_scatter_gatherv"),
    ("ReducescatterblockGather", "reduce_scatter_block_gather"),
    ("ReduceScatterv", "reduce_scatterv"),
    ("ReduceScatter", "reduce_scatter"),
    ("ExscanReducelocal", "exscan_reduce_local"),
];

/// Statistics of a summary, by its column; the first that is there is taken as the time.
const STATISTICS: &[(&str, &str)] = &[
    ("median_sec", "median"),
    ("mean_sec", "mean"),
    ("min_sec", "least"),
    ("max_sec", "greatest"),
];

const COLUMNS_FIRST: &str = "expected '#' lines and then the columns 'test nrep count runtime_sec'";

impl MeasuringTool for ReproMpi {
    fn name(&self) -> &'static str {
        "reprompi"
    }

    fn title(&self) -> &'static str {
        "ReproMPI"
    }

    fn read(
        &self,
        lines: &mut Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let mut header = ReproHeader::new(hints.job(lines, ""), hints);
        let mut columns: Option<ReproColumns> = None;
        let mut what = TimedTest::none();
        let (mut others, mut holds_rows) = (OtherLines::default(), false);
        // Whether rows stand between what the header told and this line.
        let mut is_behind_rows = false;
        while let Some(line) = lines.next_line()? {
            let line = untagged(line.trim()).trim();
            if let Some(comment) = line.strip_prefix('#') {
                if is_behind_rows && comment.starts_with('@') {
                    header.begin_again();
                    what = TimedTest::none();
                    is_behind_rows = false;
                }
                let taken = header.comment(comment);
                taken.map_err(|(key, problem)| lines.fault(problem).in_field(key))?;
                continue;
            }
            if line.starts_with("test ") || line.starts_with("process ") {
                let found = ReproColumns::of(line)
                    .map_err(|(field, problem)| lines.fault(problem).in_field(field))?;
                let job = header.begin(&found);
                columns = Some(found);
                // The header may name another method since.
                what = TimedTest::none();
                sink.job(lines.number(), &job)?;
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let read = columns.as_ref().map(|columns| columns.read(line, &header, &mut what));
            let row = match read {
                Some(Ok(Some(row))) => {
                    (holds_rows, is_behind_rows) = (true, true);
                    row
                }
                Some(Ok(None)) => {
                    (holds_rows, is_behind_rows) = (true, true);
                    sink.left_out(lines.number(), RowLeftOut::NoRepetition);
                    continue;
                }
                _ if !is_row(line, columns.as_ref()) => {
                    let line = line.to_owned();
                    hints.check_command(lines, &line, sink)?;
                    others.add(lines, &line);
                    continue;
                }
                Some(Err((field, problem))) => return Err(lines.fault(problem).in_field(field)),
                None => {
                    let line = records::quoted(line);
                    return Err(lines.fault(format!("is {line}; {COLUMNS_FIRST}")));
                }
            };
            let call = ImportedCall {
                collective: what.collective,
                method: &what.method,
                of_library: ImportedCall::is_library(&what.method),
                procs: header.procs.ok_or_else(|| {
                    lines.fault("the number of ranks is missing; expected '#@nprocs=N', or --procs")
                })?,
                bytes: row.bytes,
                seconds: row.seconds,
                made: row.made,
                status: row.status,
            };
            sink.call(lines.number(), &call)?;
        }
        others.tell(lines, sink);
        match holds_rows {
            true => Ok(()),
            false => {
                Err(lines.of_file("holds no times of ReproMPI; it was cut off, or is another's"))
            }
        }
    }
}

/// Whether a line is a row, whole or broken.
fn is_row(line: &str, columns: Option<&ReproColumns>) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let ends_with_number = words.last().is_some_and(|last| last.parse::<f64>().is_ok());
    match columns {
        Some(columns) => words.len() == columns.count || ends_with_number,
        None => {
            let is_named = words.first().is_some_and(|first| first.starts_with("MPI_"));
            are_numbers(&words) || (is_named && ends_with_number)
        }
    }
}

/// What the `#@` lines tell.
struct ReproHeader {
    job: Job,
    /// The job as it is known without the `#@` lines.
    of_file: Job,
    /// How often the program began.
    starts: u32,
    /// Whether the job has a name of its own.
    is_named: bool,
    procs: Option<u32>,
    extent: Option<u64>,
    runtime: String,
    sync: String,
    /// What it names itself.
    method: Option<Method>,
    hints: ImportHints,
}

impl ReproHeader {
    fn new(job: Job, hints: &ImportHints) -> Self {
        let (runtime, sync) = (String::new(), String::new());
        let (procs, hints) = (hints.procs().ok(), hints.clone());
        ReproHeader {
            of_file: job.clone(),
            job,
            starts: 0,
            is_named: false,
            procs,
            extent: None,
            runtime,
            sync,
            method: None,
            hints,
        }
    }

    fn method(&self, collective: Collective) -> Result<Method, String> {
        self.method.clone().map_or_else(|| self.hints.method(collective), Ok)
    }

    /// Another header begins, as where files were put together: what only some headers tell is not taken from
    /// the one before.
    fn begin_again(&mut self) {
        self.job.clone_from(&self.of_file);
        self.is_named = false;
        self.method = None;
        self.runtime.clear();
        self.sync.clear();
    }

    /// Takes in a comment: what it sets, if it does.
    fn comment(&mut self, comment: &str) -> Result<(), ColumnFault> {
        let entry = comment.strip_prefix('@').and_then(|entry| entry.split_once('='));
        let Some((key, value)) = entry else { return Ok(()) };
        self.take(key, value.trim()).map_err(|problem| (key.to_owned(), problem))
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "nprocs" => self.procs = Some(ranks(value)?),
            "datatype_extent_bytes" => self.extent = Some(number(value, "a size in bytes")?),
            "intercommunicator" if value == "true" => {
                return Err("is true; expected calls on an intracommunicator".into());
            }
            "runtime_type" => value.clone_into(&mut self.runtime),
            "procsync" | "sync" => value.clone_into(&mut self.sync),
            // As our own export writes them.
            "method" => self.method = Some(value.parse().map_err(|error| format!("{error}"))?),
            "library" => value.clone_into(&mut self.job.library),
            "layout" => self.job.nodes = Some(value.parse()?),
            "job" => {
                value.clone_into(&mut self.job.name);
                self.is_named = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// The job of the rows below a line of column names.
    fn begin(&mut self, columns: &ReproColumns) -> Job {
        self.starts += 1;
        let times = if self.is_named { 1 } else { self.starts };
        Job { timing: self.timing(columns), ..self.job.started(times) }
    }

    fn timing(&self, columns: &ReproColumns) -> String {
        let runtime = match self.runtime.as_str() {
            "" => "runtime over all ranks",
            named => named,
        };
        let sync = match (self.sync.as_str(), columns.error) {
            ("", Some(_)) => "start windows",
            ("", None) => "barrier",
            (named, _) => named,
        };
        format!("reprompi: {runtime}, {sync}")
    }
}

/// What was timed last: rows of one cell follow each other.
struct TimedTest {
    test: String,
    collective: Collective,
    method: Method,
}

impl TimedTest {
    fn none() -> Self {
        TimedTest { test: String::new(), collective: Collective::Barrier, method: Method::Default }
    }

    fn be(&mut self, test: &str, header: &ReproHeader) -> Result<(), String> {
        let (collective, method) = match test.strip_prefix("GL_") {
            Some(composed) => composition(composed)?,
            None if test.starts_with("MPI_") => {
                let collective = methods::collective(test)?;
                (collective, header.method(collective)?)
            }
            None => {
                return Err(format!(
                    "is {}; expected a collective such as MPI_Bcast, or GL_Bcast_as_...",
                    records::quoted(test)
                ));
            }
        };
        *self = TimedTest { test: test.to_owned(), collective, method };
        Ok(())
    }
}

/// `Allgather_as_GatherBcast`.
fn composition(name: &str) -> Result<(Collective, Method), String> {
    let (of, by) = name.split_once("_as_").ok_or_else(|| {
        format!("is {}; expected GL_A_as_B", records::quoted(&format!("GL_{name}")))
    })?;
    let collective = methods::collective(of)?;
    let known = MOCKUPS.iter().find(|(theirs, _)| *theirs == by).map(|(_, ours)| *ours);
    let by = known.map_or_else(|| by.to_ascii_lowercase(), str::to_owned);
    Ok((collective, Method::mockup(&format!("{collective}_as_{by}"))?))
}

/// More are none of its tables.
const MAX_COLUMNS: usize = 16;

/// Where in a row what stands: below `count`, which is at most [`MAX_COLUMNS`].
struct ReproColumns {
    count: usize,
    test: usize,
    size: usize,
    size_in_bytes: bool,
    repetition: Option<usize>,
    error: Option<usize>,
    runtime: Option<usize>,
    valid: Option<usize>,
    statistics: Vec<(usize, &'static str)>,
}

struct ReproRow {
    bytes: u64,
    seconds: f64,
    made: Made,
    status: ObservationStatus,
}

impl ReproColumns {
    fn of(line: &str) -> Result<Self, ColumnFault> {
        let names: Vec<&str> = line.split_whitespace().collect();
        let find = |name: &str| names.iter().position(|other| *other == name);
        let fault = |problem: &str| (String::new(), problem.to_owned());
        if let Some(name) = repeated(&names) {
            return Err((name.to_owned(), TWICE.to_owned()));
        }
        if names.len() > MAX_COLUMNS {
            return Err(fault("has more columns than ReproMPI prints"));
        }
        if find("process").is_some() {
            return Err(fault(
                "has the times of each process by its own clock; print runtimes instead (without --verbose)",
            ));
        }
        let size = find("msize_bytes").or(find("count"));
        let runtime = find("runtime_sec");
        let statistics: Vec<(usize, &'static str)> = STATISTICS
            .iter()
            .filter_map(|(column, statistic)| Some((find(column)?, *statistic)))
            .collect();
        let (Some(test), Some(size)) = (find("test"), size) else {
            return Err(fault("has no columns test and count (or msize_bytes)"));
        };
        if runtime.is_none() && statistics.is_empty() {
            return Err(fault("has no column of times (runtime_sec, median_sec, mean_sec)"));
        }
        Ok(ReproColumns {
            count: names.len(),
            test,
            size,
            size_in_bytes: find("msize_bytes").is_some(),
            repetition: find("nrep"),
            error: find("errorcode"),
            runtime,
            valid: find("valid_nrep"),
            statistics,
        })
    }

    fn read(
        &self,
        line: &str,
        header: &ReproHeader,
        what: &mut TimedTest,
    ) -> Result<Option<ReproRow>, ColumnFault> {
        let mut fields = [""; MAX_COLUMNS];
        let mut count = 0;
        for word in line.split_ascii_whitespace() {
            if let Some(field) = fields.get_mut(count) {
                *field = word;
            }
            count += 1;
        }
        if count != self.count {
            return Err((String::new(), format!("{count} fields, expected {}", self.count)));
        }
        let named = |field: &'static str| move |problem: String| (field.to_owned(), problem);
        if fields[self.test] != what.test {
            what.be(fields[self.test], header).map_err(named("test"))?;
        }
        let size: u64 = number(fields[self.size], "a size").map_err(named("count"))?;
        let bytes = match (self.size_in_bytes, header.extent) {
            (true, _) => Some(size),
            (false, Some(extent)) => size.checked_mul(extent),
            (false, None) => {
                let problem = "counts elements, but '#@datatype_extent_bytes=' is missing";
                return Err(("count".into(), problem.into()));
            }
        };
        let bytes = match what.collective {
            Collective::Barrier => 0,
            _ => bytes.ok_or_else(|| ("count".to_owned(), "is too many bytes".to_owned()))?,
        };
        let repetitions = match self.valid {
            Some(at) => number(fields[at], "a number").map_err(named("valid_nrep"))?,
            None => 0,
        };
        // Its statistics are no numbers then.
        if self.valid.is_some() && repetitions == 0 {
            return Ok(None);
        }
        let status = match self.error.map(|at| fields[at]) {
            None | Some("0") => ObservationStatus::Ok,
            Some(_) => ObservationStatus::Late,
        };
        let (seconds, made) = match (self.runtime, self.statistics.split_first()) {
            (Some(at), _) => {
                let seconds = time(fields[at]).map_err(named("runtime_sec"))?;
                let repetition = match self.repetition {
                    Some(at) => Some(number(fields[at], "a number").map_err(named("nrep"))?),
                    None => None,
                };
                (seconds, Made::Repetition(repetition))
            }
            (None, Some((&(at, statistic), others))) => {
                let timed = |at: usize| time(fields[at]);
                let seconds = timed(at).map_err(named(statistic))?;
                let others = others
                    .iter()
                    .map(|&(at, name)| Ok((name, timed(at).map_err(named(name))?)))
                    .collect::<Result<Vec<_>, ColumnFault>>()?;
                (seconds, Made::Summary(Summary { statistic, repetitions, others }))
            }
            (None, None) => return Err((String::new(), "there is no time".into())),
        };
        Ok(Some(ReproRow { bytes, seconds, made, status }))
    }
}
