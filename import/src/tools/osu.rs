use records::{
    Collective, FileError, Method,
    imported::{MEAN_OVER_RANKS, StreamDirection},
    number::check_procs,
    observation::ObservationStatus,
};

use super::{
    osu_titles::{OsuTest, OsuTitles, WINDOW},
    table::{TWICE, repeated},
};
use crate::{
    lines::{Lines, number, seconds_at_rate, time, untagged},
    other_lines::{OtherLines, are_numbers, is_row},
    rows::{ImportedCall, Made, PairExchange, RowLeftOut, Sink, Summary},
    sizes::{ELEMENT_BYTES, SizeMeaning, element_bytes},
    tool::{ImportHints, MeasuringTool},
};

/// The OSU micro-benchmarks, blocking: a table of sizes and times in microseconds, or of bandwidths,
/// under a title. Collectives tell the mean over repetitions and ranks; with `-f` also the least and
/// the greatest over ranks. The number of ranks is not given. Each title is a start of its program:
/// a title that comes again begins another job.
pub struct Osu;

const TIMING: &str = "osu: mean over repetitions and ranks, MPI_Barrier between repetitions";
/// Further columns of times in microseconds.
const OTHERS: [(&str, &str); 5] = [
    ("Min Latency", "least over ranks"),
    ("Max Latency", "greatest over ranks"),
    ("P50 Tail Lat", "quantile 0.5"),
    ("P90 Tail Lat", "quantile 0.9"),
    ("P99 Tail Lat", "quantile 0.99"),
];

/// Of the columns with times and with rates.
const UNITS: [&str; 2] = ["us", "MB/s"];

/// The table under a title.
struct OsuTable {
    test: OsuTest,
    columns: Vec<String>,
    last_bytes: Option<u64>,
    /// Of the elements, where it is given.
    datatype: String,
    /// Whether its rows go on with another datatype than the first, or are of buffers in another memory.
    is_further: bool,
}

impl MeasuringTool for Osu {
    fn name(&self) -> &'static str {
        "osu"
    }

    fn title(&self) -> &'static str {
        "OSU micro-benchmarks"
    }

    fn read(
        &self,
        lines: &mut Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let mut titles = OsuTitles::new(hints.job(lines, TIMING));
        let mut table: Option<OsuTable> = None;
        let (mut others, mut rows) = (OtherLines::default(), 0_u64);
        while let Some(line) = lines.next_line()? {
            let line = untagged(line.trim()).trim().to_owned();
            if line.is_empty() {
                continue;
            }
            if let Some(title) = line.strip_prefix("# OSU ") {
                check_rows(lines, table.as_ref())?;
                table = Some(OsuTable::new(titles.begin(title, lines, sink)?));
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match (&mut table, line.strip_prefix('#')) {
                (Some(open), Some(comment)) => {
                    open.is_further |= titles.is_other_memory(comment, sink);
                    let outcome = open.comment(comment, sink);
                    outcome.map_err(|(field, problem)| lines.fault(problem).in_field(field))?;
                }
                (None, Some(_)) => {}
                (Some(OsuTable { test: OsuTest::Other, .. }), None) => {
                    // The command of the next test may stand below the rows of one that is not read.
                    if !are_numbers(&words) {
                        hints.check_command(lines, &line, sink)?;
                    }
                }
                (Some(open), None) if is_row(&words, open.columns.len()) => {
                    if open.is_further {
                        continue;
                    }
                    let fault =
                        |(field, problem): (String, String)| lines.fault(problem).in_field(field);
                    let row = open.row(&words).map_err(fault)?;
                    open.hand_on(&row, hints, lines, sink)?;
                    rows += 1;
                }
                (None, None) if are_numbers(&words) => {
                    return Err(lines.fault(format!(
                        "is {}; expected a title, as in '# OSU MPI Allreduce Latency Test v5.6.2'",
                        records::quoted(&line)
                    )));
                }
                (_, None) => {
                    hints.check_command(lines, &line, sink)?;
                    others.add(lines, &line);
                }
            }
        }
        check_rows(lines, table.as_ref())?;
        others.tell(lines, sink);
        match (rows, titles.unread) {
            (0, Some(unread)) => Err(unread),
            (0, None) => Err(lines.of_file("holds no table of the OSU micro-benchmarks")),
            _ => Ok(()),
        }
    }
}

fn check_rows(lines: &Lines<'_>, table: Option<&OsuTable>) -> Result<(), FileError> {
    match table {
        Some(OsuTable { test: OsuTest::Other, .. } | OsuTable { is_further: true, .. }) => Ok(()),
        Some(OsuTable { last_bytes: None, .. }) => {
            Err(lines.fault("the table before ends without a row; it was cut off"))
        }
        _ => Ok(()),
    }
}

/// A row of a table.
struct OsuRow {
    bytes: u64,
    /// The column that is taken as the time or rate.
    value: f64,
    repetitions: u32,
    others: Vec<(&'static str, f64)>,
}

impl OsuRow {
    /// `bytes` as we define them.
    fn call<'a>(
        &self,
        collective: Collective,
        method: &'a Method,
        procs: u32,
        bytes: u64,
        summary: Summary,
    ) -> ImportedCall<'a> {
        ImportedCall {
            collective,
            method,
            of_library: ImportedCall::is_library(method),
            procs,
            bytes,
            seconds: self.value / 1e6,
            made: Made::Summary(summary),
            status: ObservationStatus::Ok,
        }
    }
}

impl OsuTable {
    fn new(test: OsuTest) -> Self {
        let (columns, datatype) = (Vec::new(), String::new());
        OsuTable { test, columns, last_bytes: None, datatype, is_further: false }
    }

    /// What a comment tells: the columns, the elements, or how many pairs there are.
    fn comment(&mut self, text: &str, sink: &mut dyn Sink) -> Result<(), (String, String)> {
        if let Some(datatype) = text.trim().strip_prefix("Datatype:") {
            let datatype = datatype.trim().trim_end_matches('.');
            let is_other = self.last_bytes.is_some() && self.datatype != datatype;
            self.is_further |= is_other;
            match is_other {
                true => sink.note(&format!(
                    "OSU's times of elements of {datatype} are left out: those of {} stand before",
                    self.datatype
                )),
                false => datatype.clone_into(&mut self.datatype),
            }
        } else if let (OsuTest::MessageRate { .. }, Some(title)) =
            (self.test, text.trim().strip_prefix('['))
        {
            let of = |name: &str| -> Result<u32, String> {
                let after = title.split_once(name).map_or("", |(_, after)| after);
                let text = after.trim_start_matches(':').split(']').next().unwrap_or_default();
                let counted: u32 = number(text.trim(), "a number")?;
                match counted {
                    0 => Err("is 0; expected 1 or more".to_owned()),
                    _ => Ok(counted),
                }
            };
            let of = |name: &str| of(name).map_err(|problem| (name.to_owned(), problem));
            let (pairs, window) = (of("pairs")?, of("window size")?);
            check_procs(pairs.saturating_mul(2)).map_err(|it| ("ranks of all pairs".into(), it))?;
            self.test = OsuTest::MessageRate { pairs, window };
        } else if text.trim_start().starts_with("Size") || text.contains("Latency(us)") {
            // Names hold single spaces: `Avg Latency(us)`. Before a quantile of bandwidths is only one, too.
            let text = (0..10).fold(text.to_owned(), |text, digit| {
                text.replace(&format!(" P{digit}"), &format!("  P{digit}"))
            });
            let names = text.split("  ").map(str::trim).filter(|name| !name.is_empty());
            self.columns = names.map(str::to_owned).collect();
            let is_derived = self.columns.iter().any(|name| name == "Transmit Size");
            if is_derived && self.test != OsuTest::Other {
                let problem = "derived datatypes (-D) were timed; expected none, as their times are not those \
                               of so many bytes";
                return Err((String::new(), problem.into()));
            }
            // `Size Latency (us)` of a point-to-point test has no second column beside it.
            if let Some((size, rest)) = self
                .columns
                .first()
                .and_then(|first| first.split_once(' '))
                .filter(|(it, _)| *it == "Size")
            {
                let (size, rest) = (size.to_owned(), rest.to_owned());
                self.columns.splice(0..1, [size, rest]);
            }
            let names: Vec<&str> = self.columns.iter().map(String::as_str).collect();
            if self.test == OsuTest::Other {
                return Ok(());
            }
            if let Some(name) = repeated(&names) {
                return Err((name.to_owned(), TWICE.to_owned()));
            }
            let has_other_unit = |name: &&str| {
                let unit = name.split_once('(').map(|(_, unit)| unit.trim_end_matches(')'));
                unit.is_some_and(|unit| !UNITS.contains(&unit))
            };
            if let Some(name) = names.iter().copied().find(has_other_unit) {
                let problem = format!("has another unit; expected one of ({})", UNITS.join("), ("));
                return Err((name.to_owned(), problem));
            }
        }
        Ok(())
    }

    /// Bytes of an element; a float up to version 6, which does not tell it.
    fn element_bytes(&self) -> Result<u64, String> {
        match self.datatype.as_str() {
            "" => Ok(ELEMENT_BYTES),
            name => element_bytes(name),
        }
    }

    fn row(&mut self, fields: &[&str]) -> Result<OsuRow, (String, String)> {
        let in_field = |field: &str| {
            let field = field.to_owned();
            move |problem| (field, problem)
        };
        if self.columns.is_empty() {
            return Err((String::new(), "a row before the line '# Size ...'".into()));
        }
        if fields.len() != self.columns.len() {
            let problem = format!("{} fields, expected {}", fields.len(), self.columns.len());
            return Err((String::new(), problem));
        }
        let column = |name: &str| {
            let mut columns = self.columns.iter().zip(fields);
            columns.find(|(column, _)| column.starts_with(name)).map(|(_, field)| *field)
        };
        let is_barrier = self.test == OsuTest::Collective(Collective::Barrier);
        let bytes = match column("Size") {
            Some(text) => number(text, "a size in bytes").map_err(in_field("Size"))?,
            None if is_barrier => 0,
            None => return Err(("Size".into(), "is missing".into())),
        };
        if self.last_bytes.is_some_and(|last| last >= bytes) {
            let last = self.last_bytes.unwrap_or_default();
            let problem =
                format!("is {bytes} after {last}; two outputs are mixed, or one is broken");
            return Err(("Size".into(), problem));
        }
        self.last_bytes = Some(bytes);
        let value = self.value(&column, bytes)?;
        if let Some(validation) = column("Validation").filter(|validation| *validation != "Pass") {
            let problem = format!("is {}; expected Pass", records::quoted(validation));
            return Err(("Validation".into(), problem));
        }
        let mut others = Vec::new();
        for (name, statistic) in OTHERS {
            if let Some(text) = column(name) {
                others.push((statistic, time(text).map_err(in_field(name))? / 1e6));
            }
        }
        let repetitions = match column("Iterations") {
            Some(text) => number(text, "a number").map_err(in_field("Iterations"))?,
            None => 0,
        };
        Ok(OsuRow { bytes, value, repetitions, others })
    }

    /// The time or rate of a row, by the name of a column.
    fn value<'a>(
        &self,
        column: &dyn Fn(&str) -> Option<&'a str>,
        bytes: u64,
    ) -> Result<f64, (String, String)> {
        let wanted = match self.test {
            OsuTest::Latency => "Latency",
            OsuTest::Bandwidth(_) => "Bandwidth",
            OsuTest::MessageRate { .. } => "Messages/s",
            OsuTest::Collective(_) | OsuTest::Other => "Avg Latency",
        };
        // Point to point it is the mean since version 7, of collectives without that word up to 3.
        let text = column(wanted).or_else(|| column("Avg Latency")).or_else(|| column("Latency"));
        let (name, text, per_byte) = match (text, column("MB/s")) {
            (Some(text), _) => (wanted, text, 1.0),
            // The rate may be left out.
            (None, Some(text)) => ("MB/s", text, 1e6 / bytes.max(1) as f64),
            (None, None) => return Err((wanted.to_owned(), "there is no such column".to_owned())),
        };
        Ok(per_byte * time(text).map_err(|problem| (name.to_owned(), problem))?)
    }

    fn hand_on(
        &self,
        row: &OsuRow,
        hints: &ImportHints,
        lines: &Lines<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let line = lines.number();
        if row.value == 0.0 {
            sink.left_out(line, RowLeftOut::Zero);
            return Ok(());
        }
        let summary = Summary {
            statistic: MEAN_OVER_RANKS,
            repetitions: row.repetitions,
            others: row.others.clone(),
        };
        let exchange = |direction, pairs, messages, seconds| PairExchange {
            direction,
            pairs,
            is_of_first: false,
            bytes: row.bytes,
            messages,
            seconds,
            summary: summary.clone(),
        };
        let at_rate = |name: &'static str, amount, rate| {
            seconds_at_rate(amount, rate).map_err(|problem| lines.fault(problem).in_field(name))
        };
        match self.test {
            OsuTest::Other => Ok(()),
            // Half the way there and back.
            OsuTest::Latency => {
                let seconds = 2.0 * row.value / 1e6;
                sink.exchange(line, &exchange(StreamDirection::PingPong, 1, 1, seconds))
            }
            // MB are millions of bytes; both ways are counted.
            OsuTest::Bandwidth(direction) => {
                let ways = if direction == StreamDirection::BothWays { 2.0 } else { 1.0 };
                let carried = ways * f64::from(WINDOW) * row.bytes as f64;
                let seconds = at_rate("Bandwidth", carried, 1e6 * row.value)?;
                sink.exchange(line, &exchange(direction, 1, WINDOW, seconds))
            }
            OsuTest::MessageRate { pairs: 0, .. } => {
                Err(lines.fault("the number of pairs is missing; expected '# [ pairs: N ] ...'"))
            }
            OsuTest::MessageRate { pairs, window } => {
                let messages = f64::from(pairs) * f64::from(window);
                let seconds = at_rate("Messages/s", messages, row.value)?;
                sink.exchange(line, &exchange(StreamDirection::OneWay, pairs, window, seconds))
            }
            OsuTest::Collective(collective) => {
                let procs = hints.procs().map_err(|why| lines.of_file(why))?;
                // Its vector is dealt to all ranks; elsewhere sizes are as ours.
                let bytes = match collective {
                    Collective::ReduceScatter => {
                        let element_bytes = self.element_bytes().map_err(|it| lines.fault(it))?;
                        SizeMeaning::Total.ours(collective, procs, row.bytes, element_bytes)
                    }
                    _ => SizeMeaning::AsOurs.ours(collective, procs, row.bytes, 1),
                };
                let Some(bytes) = bytes else {
                    sink.left_out(line, RowLeftOut::FewerThanRanks);
                    return Ok(());
                };
                let method = hints.method(collective).map_err(|why| lines.of_file(why))?;
                sink.call(line, &row.call(collective, &method, procs, bytes, summary))
            }
        }
    }
}
