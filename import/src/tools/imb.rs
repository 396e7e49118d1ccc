use std::collections::BTreeSet;

use records::{Collective, FileError, observation::ObservationStatus};

use crate::{
    lines::{Lines, number, seconds_at_rate, time, untagged},
    methods,
    other_lines::{OtherLines, are_numbers, is_row},
    rows::{ExchangeKind, ImportedCall, Made, PairExchange, Sink, Summary},
    sizes::{FEWER_THAN_RANKS, SizeMeaning},
    tool::{ImportHints, MeasuringTool},
};

/// The Intel MPI Benchmarks (IMB-MPI1): a table for each benchmark and number of processes.
/// Collectives tell the least, the greatest and the mean over ranks of each rank's mean over the
/// repetitions; the greatest is taken as the time. Each start of the program is a job.
pub struct Imb;

/// Messages in a row of Uniband and Biband, where the program was not told otherwise.
const WINDOW: u32 = 64;
/// How it is told, in the line of its calling sequence.
const WINDOW_OPTION: &str = "-window_size";
const TIMING: &str = "imb: mean over repetitions, greatest over ranks, calls in a row";
const GREATEST: &str = "mean over repetitions, greatest over ranks";
const MEAN: &str = "mean over repetitions";
/// The program's last words.
const END: &str = "All processes entering MPI_Finalize";

const FOREIGN: &str = "does not begin as output of the Intel MPI Benchmarks does";
const OUTSIDE: &str = "a row of numbers outside of the Intel MPI Benchmarks' tables; other output \
                       begins here";

/// How the program begins; up to version 2 it does not say that it ends.
const BEGINNINGS: [(&str, bool); 3] = [
    ("Intel(R) MPI Benchmarks", true),
    ("Intel (R) MPI Benchmark Suite V2", false),
    ("Intel (R) MPI Benchmark Suite", true),
];
/// What stands in a row in place of its times.
const NOT_TIMED: [&str; 3] = ["out-of-mem.", "int-overflow.", "time-out."];

/// What a benchmark's table holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Benchmark {
    PingPong,
    Band(ExchangeKind),
    Collective(Collective),
    /// Not read.
    Other,
}

struct ImbTable {
    benchmark: Benchmark,
    procs: Option<u32>,
    columns: Vec<String>,
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
        told: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let mut run = ImbRun { ended: true, window: WINDOW, ..ImbRun::default() };
        let mut others = OtherLines::default();
        while let Some(line) = lines.next_line()? {
            let line = untagged(line.trim()).trim().to_owned();
            if line.is_empty() {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if run.outline(&line, &words, lines, told, sink)? {
                continue;
            }
            let Some(open) = &mut run.table else {
                match (are_numbers(&words), run.starts) {
                    (true, 0) => return Err(lines.of_file(FOREIGN)),
                    (true, _) => return Err(lines.fault(OUTSIDE)),
                    (false, _) if line.starts_with('#') => {}
                    (false, _) => others.add(lines, &line),
                }
                continue;
            };
            let fault = |(field, problem): (String, String)| lines.fault(problem).in_field(field);
            if open.heading(&line, &words).map_err(fault)? || open.benchmark == Benchmark::Other {
                continue;
            }
            let not_timed =
                NOT_TIMED.iter().find(|why| words.iter().take(2).any(|it| it.starts_with(**why)));
            if let Some(why) = not_timed {
                sink.note(&format!("IMB did not time all sizes: {why}"));
            } else if is_row(&words, open.columns.len()) {
                open.row(&words, run.window, told, lines, sink)?;
                run.rows += 1;
            } else {
                others.add(lines, &line);
            }
        }
        others.tell(lines, sink);
        match run {
            ImbRun { starts: 0, .. } => Err(lines.of_file(FOREIGN)),
            ImbRun { ended: false, .. } => Err(lines.fault(cut_off("ends"))),
            ImbRun { rows: 0, unread, .. } if unread.is_empty() => {
                Err(lines.of_file("holds no table"))
            }
            ImbRun { rows: 0, unread, .. } => {
                let names: Vec<&str> = unread.iter().map(String::as_str).collect();
                Err(lines.of_file(format!(
                    "holds no table that Colibri reads, but {}; read are blocking collectives, PingPong, \
                     Uniband and Biband",
                    names.join(", ")
                )))
            }
            _ => Ok(()),
        }
    }
}

fn cut_off(what: &str) -> String {
    format!("{what} without '# {END}'; it was cut off")
}

/// How far a file was read.
#[derive(Default)]
struct ImbRun {
    /// How often the program began.
    starts: u32,
    ended: bool,
    /// Messages in a row.
    window: u32,
    table: Option<ImbTable>,
    rows: u64,
    /// Benchmarks that are not read.
    unread: BTreeSet<String>,
}

impl ImbRun {
    /// Takes in a line between tables; whether it is one.
    fn outline(
        &mut self,
        line: &str,
        words: &[&str],
        lines: &Lines<'_>,
        told: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<bool, FileError> {
        let Some(comment) = line.strip_prefix('#').map(str::trim) else { return Ok(false) };
        if let Some((_, ends)) = BEGINNINGS.iter().find(|(begins, _)| comment.starts_with(begins)) {
            if !self.ended {
                return Err(lines.fault(cut_off("the run before ends")));
            }
            let starts = self.starts + 1;
            let (rows, unread) = (self.rows, std::mem::take(&mut self.unread));
            *self = ImbRun { starts, ended: !ends, window: WINDOW, table: None, rows, unread };
            sink.job(lines.number(), &told.job(lines, TIMING).started(starts))?;
        } else if let Some(name) = comment.strip_prefix("Benchmarking ") {
            let benchmark = benchmark(name.trim());
            if benchmark == Benchmark::Other {
                sink.note(&format!("IMB's {} is not read", name.trim()));
                self.unread.insert(name.trim().to_owned());
            }
            self.table = Some(ImbTable { benchmark, procs: None, columns: Vec::new() });
        } else if comment.starts_with(END) {
            self.ended = true;
            self.table = None;
        } else if let Some(place) = words.iter().position(|word| *word == WINDOW_OPTION) {
            let text = words.get(place + 1).copied().unwrap_or_default();
            let told = number(text, "a number").and_then(|window: u32| match window {
                0 => Err("is 0; expected 1 or more".into()),
                _ => Ok(window),
            });
            self.window = told.map_err(|it| lines.fault(it).in_field(WINDOW_OPTION))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

fn benchmark(name: &str) -> Benchmark {
    match name {
        "PingPong" => Benchmark::PingPong,
        "Uniband" => Benchmark::Band(ExchangeKind::OneWay),
        "Biband" => Benchmark::Band(ExchangeKind::BothWays),
        // What its size is, its documents and its versions tell differently.
        "Reduce_scatter_block" => Benchmark::Other,
        _ => methods::collective(name).map_or(Benchmark::Other, Benchmark::Collective),
    }
}

impl ImbTable {
    /// Takes in a line between the benchmark's name and its rows; whether it is one.
    fn heading(&mut self, line: &str, words: &[&str]) -> Result<bool, (String, String)> {
        let comment = line.trim_start_matches('#').trim();
        if let Some((_, count)) =
            comment.split_once("processes = ").filter(|_| line.starts_with('#'))
        {
            let count = count.split_whitespace().next().unwrap_or_default();
            let told = number(count, "a number").and_then(|procs: u32| match procs {
                0 => Err("is 0; expected 1 or more".into()),
                _ => Ok(procs),
            });
            self.procs = Some(told.map_err(|problem| ("#processes".to_owned(), problem))?);
            return Ok(true);
        }
        if words.first().is_some_and(|first| ["#bytes", "#repetitions"].contains(first)) {
            self.columns = words.iter().map(|name| (*name).to_owned()).collect();
            return Ok(true);
        }
        Ok(line.starts_with('#') || line.starts_with('('))
    }

    fn row(
        &self,
        fields: &[&str],
        window: u32,
        told: &ImportHints,
        lines: &Lines<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let wanted = self.columns.len();
        if wanted == 0 {
            return Err(lines.fault("a row before the line '#bytes ...'"));
        }
        if fields.len() != wanted {
            return Err(lines.fault(format!("{} fields, expected {wanted}", fields.len())));
        }
        let place = |name: &str| self.columns.iter().position(|column| column.starts_with(name));
        let needed = |name: &str| {
            let place = place(name);
            place.map(|at| fields[at]).ok_or_else(|| lines.fault("is missing").in_field(name))
        };
        let in_field =
            |name: &'static str| move |problem: String| lines.fault(problem).in_field(name);
        let procs = self.procs.ok_or_else(|| {
            lines.fault("the number of processes is missing; expected '# #processes = N'")
        })?;
        let repetitions =
            number(needed("#repetitions")?, "a number").map_err(in_field("#repetitions"))?;
        let bytes = match place("#bytes") {
            Some(at) => number(fields[at], "a size in bytes").map_err(in_field("#bytes"))?,
            None => 0,
        };
        let line = lines.number();
        let summary = |statistic, others| Summary { statistic, repetitions, others };
        match self.benchmark {
            Benchmark::PingPong => {
                let seconds = 2.0 * time(needed("t[usec]")?).map_err(in_field("t[usec]"))? / 1e6;
                sink.exchange(
                    line,
                    &PairExchange {
                        kind: ExchangeKind::PingPong,
                        pairs: 1,
                        bytes,
                        messages: 1,
                        seconds,
                        summary: summary(MEAN, Vec::new()),
                    },
                )
            }
            Benchmark::Band(kind) => {
                let rate = time(needed("Msg/sec")?).map_err(in_field("Msg/sec"))?;
                if procs < 2 {
                    return Err(lines.fault("1 process makes no pair; expected 2 or more"));
                }
                let ways = if kind == ExchangeKind::BothWays { 2.0 } else { 1.0 };
                let pairs = procs / 2;
                let messages = ways * f64::from(pairs) * f64::from(window);
                let seconds = seconds_at_rate(messages, rate).map_err(in_field("Msg/sec"))?;
                let summary = summary(MEAN, Vec::new());
                sink.exchange(
                    line,
                    &PairExchange { kind, pairs, bytes, messages: window, seconds, summary },
                )
            }
            Benchmark::Collective(collective) => {
                let of = |name: &'static str| -> Result<f64, FileError> {
                    Ok(time(needed(name)?).map_err(in_field(name))? / 1e6)
                };
                let others =
                    vec![("least over ranks", of("t_min")?), ("mean over ranks", of("t_avg")?)];
                let meaning = match collective {
                    Collective::ReduceScatter => SizeMeaning::Total,
                    _ => SizeMeaning::AsOurs,
                };
                let Some(bytes) = meaning.ours(collective, procs, bytes, 4) else {
                    sink.note(FEWER_THAN_RANKS);
                    return Ok(());
                };
                let call = ImportedCall {
                    collective,
                    method: &told.method(),
                    of_library: ImportedCall::is_library(&told.method()),
                    procs,
                    bytes,
                    seconds: of("t_max")?,
                    made: Made::Summary(summary(GREATEST, others)),
                    status: ObservationStatus::Ok,
                };
                sink.call(line, &call)
            }
            Benchmark::Other => Ok(()),
        }
    }
}
