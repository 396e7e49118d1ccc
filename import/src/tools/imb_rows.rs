//! The rows of the Intel MPI Benchmarks' tables.

use records::{Collective, FileError, imported::StreamDirection, observation::ObservationStatus};

use crate::{
    lines::{Lines, number, seconds_at_rate, time},
    methods,
    rows::{ImportedCall, Made, PairExchange, RowLeftOut, Sink, Summary},
    sizes::SizeMeaning,
    tool::ImportHints,
};

const GREATEST: &str = "mean over repetitions, greatest over ranks";
const MEAN: &str = "mean over repetitions";

/// What a benchmark's table holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Benchmark {
    PingPong,
    Band(StreamDirection),
    /// With what its sizes are.
    Collective(Collective, SizeMeaning),
    /// Its sizes differ between versions, and the version is not known.
    UnknownSize,
    /// Not read.
    Other,
}

impl Benchmark {
    /// `has_blocks`: whether the version's Reduce_scatter counts the block of each rank; none where the version is
    /// not known.
    pub(super) fn of(name: &str, has_blocks: Option<bool>) -> Self {
        match name {
            "PingPong" => Benchmark::PingPong,
            "Uniband" => Benchmark::Band(StreamDirection::OneWay),
            "Biband" => Benchmark::Band(StreamDirection::BothWays),
            // What its size is, its documents and its versions tell differently.
            "Reduce_scatter_block" => Benchmark::Other,
            _ => match (methods::collective(name), has_blocks) {
                (Ok(Collective::ReduceScatter), None) => Benchmark::UnknownSize,
                (Ok(it @ Collective::ReduceScatter), Some(false)) => {
                    Benchmark::Collective(it, SizeMeaning::Total)
                }
                (Ok(collective), _) => Benchmark::Collective(collective, SizeMeaning::AsOurs),
                (Err(_), _) => Benchmark::Other,
            },
        }
    }
}

/// What is known of the rows of a table beside the table.
pub(super) struct RowContext<'a> {
    pub(super) procs: u32,
    /// Messages in a row.
    pub(super) window: u32,
    /// Bytes of the elements of what is reduced.
    pub(super) element_bytes: u64,
    pub(super) hints: &'a ImportHints,
}

/// A row below the line `#bytes ...`, with as many fields as there are columns.
pub(super) struct ImbRow<'a> {
    columns: &'a [String],
    fields: &'a [&'a str],
    lines: &'a Lines<'a>,
    bytes: u64,
    repetitions: u32,
}

impl<'a> ImbRow<'a> {
    pub(super) fn new(
        columns: &'a [String],
        fields: &'a [&'a str],
        lines: &'a Lines<'a>,
    ) -> Result<Self, FileError> {
        let wanted = columns.len();
        if wanted == 0 {
            return Err(lines.fault("a row before the line '#bytes ...'"));
        }
        if fields.len() != wanted {
            return Err(lines.fault(format!("{} fields, expected {wanted}", fields.len())));
        }
        let mut row = ImbRow { columns, fields, lines, bytes: 0, repetitions: 0 };
        row.repetitions = number(row.field("#repetitions")?, "a number")
            .map_err(|problem| lines.fault(problem).in_field("#repetitions"))?;
        if let Some(text) = row.found("#bytes") {
            row.bytes = number(text, "a size in bytes")
                .map_err(|problem| lines.fault(problem).in_field("#bytes"))?;
        }
        Ok(row)
    }

    /// The title of the column that begins so, and its field.
    fn column(&self, name: &str) -> Option<(&'a str, &'a str)> {
        let mut columns = self.columns.iter().zip(self.fields);
        let (title, field) = columns.find(|(title, _)| title.starts_with(name))?;
        Some((title, field))
    }

    fn found(&self, name: &str) -> Option<&'a str> {
        self.column(name).map(|(_, field)| field)
    }

    fn field(&self, name: &str) -> Result<&'a str, FileError> {
        self.found(name).ok_or_else(|| self.lines.fault("is missing").in_field(name))
    }

    /// The number of a column of times or rates, as it is written.
    fn value(&self, name: &'static str) -> Result<f64, FileError> {
        time(self.field(name)?).map_err(|problem| self.lines.fault(problem).in_field(name))
    }

    /// The seconds of a column of times; its title tells that these are microseconds.
    fn seconds(&self, name: &'static str) -> Result<f64, FileError> {
        if let Some((title, _)) = self.column(name)
            && title[name.len()..] != *"[usec]"
        {
            let problem = format!("is not in microseconds; expected the column {name}[usec]");
            return Err(self.lines.fault(problem).in_field(title));
        }
        Ok(self.value(name)? / 1e6)
    }

    /// The benchmark compares what it has received, where it is built so.
    fn check_data(&self) -> Result<(), FileError> {
        match self.found("defects") {
            Some(defects) if !time(defects).is_ok_and(|defects| defects == 0.0) => {
                let problem = format!(
                    "is {}; expected 0.00: what was received was wrong, so its times mean nothing",
                    records::quoted(defects)
                );
                Err(self.lines.fault(problem).in_field("defects"))
            }
            _ => Ok(()),
        }
    }

    fn summary(&self, statistic: &'static str, others: Vec<(&'static str, f64)>) -> Summary {
        Summary { statistic, repetitions: self.repetitions, others }
    }

    /// Hands on what the row tells.
    pub(super) fn hand_on(
        &self,
        benchmark: Benchmark,
        context: &RowContext<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        if !matches!(benchmark, Benchmark::UnknownSize | Benchmark::Other) {
            self.check_data()?;
        }
        match benchmark {
            Benchmark::PingPong => self.ping_pong(sink),
            Benchmark::Band(kind) => self.band(kind, context, sink),
            Benchmark::Collective(collective, meaning) => {
                self.call(collective, meaning, context, sink)
            }
            Benchmark::UnknownSize | Benchmark::Other => Ok(()),
        }
    }

    fn ping_pong(&self, sink: &mut dyn Sink) -> Result<(), FileError> {
        let exchange = PairExchange {
            direction: StreamDirection::PingPong,
            pairs: 1,
            is_of_first: true,
            bytes: self.bytes,
            messages: 1,
            seconds: 2.0 * self.seconds("t")?,
            summary: self.summary(MEAN, Vec::new()),
        };
        sink.exchange(self.lines.number(), &exchange)
    }

    fn band(
        &self,
        direction: StreamDirection,
        context: &RowContext<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let rate = self.value("Msg/sec")?;
        if context.procs < 2 {
            return Err(self.lines.fault("1 rank makes no pair; expected 2 or more"));
        }
        if rate == 0.0 {
            sink.left_out(self.lines.number(), RowLeftOut::Zero);
            return Ok(());
        }
        let ways = if direction == StreamDirection::BothWays { 2.0 } else { 1.0 };
        let (pairs, window) = (context.procs / 2, context.window);
        let messages = ways * f64::from(pairs) * f64::from(window);
        let seconds = seconds_at_rate(messages, rate)
            .map_err(|problem| self.lines.fault(problem).in_field("Msg/sec"))?;
        let (bytes, summary) = (self.bytes, self.summary(MEAN, Vec::new()));
        let exchange = PairExchange {
            direction,
            pairs,
            is_of_first: true,
            bytes,
            messages: window,
            seconds,
            summary,
        };
        sink.exchange(self.lines.number(), &exchange)
    }

    fn call(
        &self,
        collective: Collective,
        meaning: SizeMeaning,
        context: &RowContext<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let others = vec![
            ("least over ranks", self.seconds("t_min")?),
            ("mean over ranks", self.seconds("t_avg")?),
        ];
        let RowContext { procs, element_bytes, hints, .. } = *context;
        let seconds = self.seconds("t_max")?;
        let Some(bytes) = meaning.ours(collective, procs, self.bytes, element_bytes) else {
            sink.left_out(self.lines.number(), RowLeftOut::FewerThanRanks);
            return Ok(());
        };
        let method = hints.method(collective).map_err(|why| self.lines.of_file(why))?;
        let call = ImportedCall {
            collective,
            method: &method,
            of_library: ImportedCall::is_library(&method),
            procs,
            bytes,
            seconds,
            made: Made::Summary(self.summary(GREATEST, others)),
            status: ObservationStatus::Ok,
        };
        sink.call(self.lines.number(), &call)
    }
}
