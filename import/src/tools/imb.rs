use records::{Collective, FileError, observation::ObservationStatus};

use crate::{
    lines::{Lines, number, seconds_at_rate, time},
    methods,
    rows::{ExchangeKind, ImportedCall, Made, PairExchange, Sink, Summary},
    sizes::SizeMeaning,
    tool::{MeasuringTool, Told},
};

/// The Intel MPI Benchmarks (IMB-MPI1): a table for each benchmark and number of processes.
/// Collectives tell the least, the greatest and the mean over ranks of each rank's mean over the
/// repetitions; the greatest is taken as the time.
pub struct Imb;

/// Messages in a row of Uniband and Biband.
const WINDOW: u32 = 64;
const TIMING: &str = "imb: mean over repetitions, greatest over ranks, calls in a row";
const GREATEST: &str = "mean over repetitions, greatest over ranks";
const MEAN: &str = "mean over repetitions";
/// The program's last words.
const END: &str = "All processes entering MPI_Finalize";

const FOREIGN: &str = "does not begin as output of the Intel MPI Benchmarks does";
const OUTSIDE: &str = "a row of numbers outside of the Intel MPI Benchmarks' tables; other output \
                       begins here";

/// Whether a line is a row of a table, whoever's.
fn is_row(line: &str) -> bool {
    let mut fields = line.split_whitespace();
    line.contains(char::is_whitespace) && fields.all(|field| field.parse::<f64>().is_ok())
}

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
    rows: u32,
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
        told: &Told,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        sink.job(0, &told.job(lines, TIMING))?;
        let (mut table, mut begun, mut ended, mut rows): (Option<ImbTable>, _, _, u64) =
            (None, false, false, 0);
        while let Some(line) = lines.next_line()? {
            let line = line.trim().to_owned();
            let comment = line.strip_prefix('#').map(str::trim);
            if line.contains("Intel(R) MPI Benchmarks") {
                (begun, ended) = (true, false);
                table = None;
            } else if let Some(name) = comment.and_then(|text| text.strip_prefix("Benchmarking ")) {
                let benchmark = benchmark(name.trim());
                if benchmark == Benchmark::Other {
                    sink.left_out(&format!("IMB's {} is not read", name.trim()));
                }
                table = Some(ImbTable { benchmark, procs: None, columns: Vec::new(), rows: 0 });
            } else if comment.is_some_and(|text| text.starts_with(END)) {
                ended = true;
                table = None;
            } else if let Some(open) = table.as_mut().filter(|_| !line.is_empty()) {
                let fault =
                    |(field, problem): (String, String)| lines.fault(problem).in_field(field);
                if open.heading(&line).map_err(fault)? || open.benchmark == Benchmark::Other {
                    continue;
                }
                open.row(&line, told, lines, sink)?;
                rows += 1;
            } else if is_row(&line) {
                return Err(if begun { lines.fault(OUTSIDE) } else { lines.of_file(FOREIGN) });
            }
        }
        match (begun, ended) {
            (false, _) => Err(lines.of_file(FOREIGN)),
            (true, false) => Err(lines.fault(format!("ends without '# {END}'; it was cut off"))),
            (true, true) if rows == 0 => Err(lines.of_file("holds no table that Colibri reads")),
            _ => Ok(()),
        }
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
    fn heading(&mut self, line: &str) -> Result<bool, (String, String)> {
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
        let names: Vec<&str> = line.split_whitespace().collect();
        if ["#bytes", "#repetitions"].contains(&names[0]) {
            self.columns = names.into_iter().map(str::to_owned).collect();
            return Ok(true);
        }
        Ok(line.starts_with('#') || line.starts_with('('))
    }

    fn row(
        &mut self,
        line: &str,
        told: &Told,
        lines: &Lines<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let fields: Vec<&str> = line.split_whitespace().collect();
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
        self.rows += 1;
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
                let messages = ways * f64::from(pairs) * f64::from(WINDOW);
                let seconds = seconds_at_rate(messages, rate).map_err(in_field("Msg/sec"))?;
                let summary = summary(MEAN, Vec::new());
                sink.exchange(
                    line,
                    &PairExchange { kind, pairs, bytes, messages: WINDOW, seconds, summary },
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
                let call = ImportedCall {
                    collective,
                    method: &told.method(),
                    of_library: ImportedCall::is_library(&told.method()),
                    procs,
                    bytes: meaning.ours(collective, procs, bytes, 4),
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
