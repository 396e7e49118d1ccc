use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use records::{
    Collective, FileError, Layout, Library, Method, RankPlacement, imported::MEAN_OVER_RANKS,
    nearest, observation::ObservationStatus, unknown,
};

use super::table::{ColumnFault, FieldSplitter, Fields, RowFields, TWICE};
use crate::{
    columns::{ColumnMap, ColumnSource, OURS, SizeUnit},
    lines::{Lines, number, ranks, time},
    methods,
    rows::{ImportedCall, Job, Made, RowLeftOut, Sink, Summary},
    sizes::SizeMeaning,
    tool::{ImportHints, MeasuringTool},
};

/// Any table with a line of column names, separated by commas, semicolons or tabulators, whose columns
/// the user names ([`ColumnMap`]).
pub struct Csv;

/// Statistics by which a row may tell the time of several repetitions.
const STATISTICS: [&str; 5] = ["median", "mean", "least", "greatest", MEAN_OVER_RANKS];

/// How our own records begin: what their rows lack, such as the job, stands in lines that a table has as comments.
const OWN_SCHEMA: &str = "#@schema=colibri/";
/// Columns that number the ranks: a table that has one has a row for each rank.
const OF_EACH_RANK: [&str; 4] = ["rank", "process", "mpi_rank", "rank_id"];

impl MeasuringTool for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn title(&self) -> &'static str {
        "CSV"
    }

    fn has_named_columns(&self) -> bool {
        true
    }

    fn read(
        &self,
        lines: &mut Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        if let Some(procs) = hints.procs {
            let problem = "each row tells its ranks, in the column procs or by --columns";
            return Err(lines.of_file(format!("{problem} 'procs:={procs},...'; leave out --procs")));
        }
        let map = hints.columns.clone().unwrap_or_default();
        let mut reader: Option<Rows> = None;
        let mut rows = 0_u64;
        while let Some(line) = lines.next_line()? {
            if let Some(schema) = line.strip_prefix(OWN_SCHEMA) {
                let problem = format!(
                    "is a record of Colibri's own ({}); use its run as it is, or what 'colibri export RUN --record \
                     csv' makes of it",
                    schema.trim()
                );
                return Err(lines.fault(problem));
            }
            // Excel is told the separator so.
            if line.is_empty() || line.starts_with('#') || line.starts_with("sep=") {
                continue;
            }
            let Some(reader) = &mut reader else {
                let found = Rows::new(line, &map);
                let found = found.map_err(|(field, it)| lines.fault(it).in_field(field))?;
                let timing = "csv: as its columns are told";
                reader = Some(Rows { job: hints.job(lines, timing), ..found });
                continue;
            };
            let read = reader.read(line, hints);
            let (call, new_job) = read.map_err(|(field, it)| lines.fault(it).in_field(field))?;
            if new_job || rows == 0 {
                sink.job(lines.number(), &reader.job)?;
            }
            rows += 1;
            let Some(call) = call else {
                sink.left_out(lines.number(), RowLeftOut::FewerThanRanks);
                continue;
            };
            sink.call(lines.number(), &ImportedCall { method: &reader.method.1, ..call })?;
        }
        match rows {
            0 => Err(lines.of_file("holds no rows")),
            _ => Ok(()),
        }
    }
}

/// Where a row has one of our columns.
enum FieldSource {
    Place(usize),
    Fixed(String),
    Nowhere,
}

impl FieldSource {
    fn new(ours: &str, map: &ColumnMap, columns: &Fields) -> Result<Self, ColumnFault> {
        let name = match map.from.get(ours) {
            None => return Ok(FieldSource::Nowhere),
            Some(ColumnSource::Fixed(value)) => return Ok(FieldSource::Fixed(value.clone())),
            Some(ColumnSource::Column(name)) => name,
        };
        let mut places = (0..columns.names.len()).filter(|place| columns.names[*place] == *name);
        match places.next() {
            Some(_) if places.next().is_some() => Err((name.clone(), TWICE.to_owned())),
            Some(place) => Ok(FieldSource::Place(place)),
            None if OURS.iter().any(|(name, needed)| *needed && *name == ours) => {
                let names: Vec<&str> = columns.names.iter().map(String::as_str).collect();
                Err((name.clone(), no_column(ours, name, &names)))
            }
            None => Ok(FieldSource::Nowhere),
        }
    }

    fn of<'a>(&'a self, row: RowFields<'a>) -> Option<&'a str> {
        match self {
            FieldSource::Place(place) => Some(row.get(*place)),
            FieldSource::Fixed(value) => Some(value),
            FieldSource::Nowhere => None,
        }
    }

    /// The field where it is there and holds something.
    fn value_in<'a>(&'a self, row: RowFields<'a>) -> Option<&'a str> {
        self.of(row).filter(|text| !text.is_empty())
    }
}

/// Where a row has each of our columns.
struct FieldSources {
    collective: FieldSource,
    method: FieldSource,
    procs: FieldSource,
    bytes: FieldSource,
    seconds: FieldSource,
    repetition: FieldSource,
    job: FieldSource,
    nodes: FieldSource,
    library: FieldSource,
    statistic: FieldSource,
}

impl FieldSources {
    fn new(map: &ColumnMap, columns: &Fields) -> Result<Self, ColumnFault> {
        let of = |ours| FieldSource::new(ours, map, columns);
        Ok(FieldSources {
            collective: of("collective")?,
            method: of("method")?,
            procs: of("procs")?,
            bytes: of("bytes")?,
            seconds: of("seconds")?,
            repetition: of("repetition")?,
            job: of("job")?,
            nodes: of("nodes")?,
            library: of("library")?,
            statistic: of("statistic")?,
        })
    }

    fn made(&self, row: RowFields<'_>) -> Result<Made, ColumnFault> {
        let Some(name) = self.statistic.value_in(row) else {
            let counted = self.repetition.value_in(row).map(|text| number(text, "a number"));
            return Ok(Made::Repetition(counted.transpose().map_err(in_field("repetition"))?));
        };
        match STATISTICS.into_iter().find(|known| *known == name) {
            Some(statistic) => {
                Ok(Made::Summary(Summary { statistic, repetitions: 0, others: Vec::new() }))
            }
            None => Err(("statistic".into(), unknown("statistic", name, &STATISTICS))),
        }
    }
}

/// What to say where a file lacks a column that is needed.
fn no_column(ours: &str, name: &str, columns: &[&str]) -> String {
    let example = nearest(name, columns.iter().copied()).unwrap_or("NAME");
    format!(
        "there is no such column; say which it is, as in --columns '{ours}={example},...' (the file has {})",
        columns.join(", ")
    )
}

fn in_field(field: &'static str) -> impl Fn(String) -> ColumnFault {
    move |problem| (field.to_owned(), problem)
}

fn needed<'a>(ours: &'static str, field: Option<&'a str>) -> Result<&'a str, ColumnFault> {
    field.ok_or_else(|| (ours.to_owned(), "is missing".to_owned()))
}

/// Reads rows; keeps what rows that follow each other have in common.
struct Rows {
    splitter: FieldSplitter,
    columns: Fields,
    sources: FieldSources,
    meaning: SizeMeaning,
    /// Of their unit of time.
    in_a_second: f64,
    job: Job,
    /// With what it was made of: its name, the collective and the library.
    method: ((String, Collective, String), Method),
    collective: (String, Collective),
    /// Of the repetitions of each job and call: how many, the least and the greatest number.
    repetitions: HashMap<u64, (u32, u32, u32)>,
}

impl Rows {
    fn new(line: &str, map: &ColumnMap) -> Result<Self, ColumnFault> {
        let separator = [',', ';', '\t'].into_iter().max_by_key(|it| line.matches(*it).count());
        let mut splitter = FieldSplitter::new(separator.unwrap_or(','));
        let columns = Fields::named(line, &mut splitter)?;
        let is_of_each_rank = |name: &&String| {
            OF_EACH_RANK.contains(&name.to_ascii_lowercase().as_str())
                && !map.from.values().any(|from| *from == ColumnSource::Column((*name).clone()))
        };
        if let Some(name) = columns.names.iter().find(is_of_each_rank) {
            let problem = "numbers ranks; expected one row for each repetition (the time until the slowest rank is \
                           done): take the greatest over the ranks, and leave this column out";
            return Err((name.clone(), problem.to_owned()));
        }
        Ok(Rows {
            sources: FieldSources::new(map, &columns)?,
            splitter,
            columns,
            meaning: match map.size {
                SizeUnit::Ours => SizeMeaning::AsOurs,
                SizeUnit::Total => SizeMeaning::Total,
            },
            in_a_second: map.time.of_second(),
            job: Job::default(),
            method: ((String::new(), Collective::Barrier, String::new()), Method::Default),
            collective: (String::new(), Collective::Barrier),
            repetitions: HashMap::new(),
        })
    }

    /// The call of a row, where it has a size of ours, and whether it is of another job than the row before.
    /// The method is kept in `self`.
    fn read(
        &mut self,
        line: &str,
        hints: &ImportHints,
    ) -> Result<(Option<ImportedCall<'static>>, bool), ColumnFault> {
        let row = self.columns.row(line, &mut self.splitter)?;
        let from = &self.sources;
        let name = needed("collective", from.collective.of(row))?;
        if self.collective.0 != name {
            let found = methods::collective(name).map_err(in_field("collective"))?;
            self.collective = (name.to_owned(), found);
        }
        let collective = self.collective.1;
        let library = from.library.of(row).unwrap_or(&self.job.library);
        let name = from.method.of(row).unwrap_or_default();
        let (known, of, by) = &self.method.0;
        if (known.as_str(), *of, by.as_str()) != (name, collective, library) || name.is_empty() {
            let found = match name {
                "" => hints.method(collective).map_err(in_field("method"))?,
                name => method(name, collective, library).map_err(in_field("method"))?,
            };
            self.method = ((name.to_owned(), collective, library.to_owned()), found);
        }
        let procs = needed("procs", from.procs.of(row))?;
        let procs = ranks(procs).map_err(in_field("procs"))?;
        let size = needed("bytes", from.bytes.of(row))?;
        let size: u64 = number(size, "a size in bytes").map_err(in_field("bytes"))?;
        let seconds = needed("seconds", from.seconds.of(row))?;
        let seconds = time(seconds).map_err(in_field("seconds"))? / self.in_a_second;
        let made = from.made(row)?;
        let nodes = match from.nodes.value_in(row) {
            None => hints.nodes(),
            Some(text) => Some(nodes(text, procs).map_err(in_field("nodes"))?),
        };
        let job = from.job.of(row).unwrap_or(&self.job.name);
        let is_new = job != self.job.name || library != self.job.library || nodes != self.job.nodes;
        if is_new {
            let (name, library) = (job.to_owned(), library.to_owned());
            self.job = Job { name, library, nodes, ..self.job.clone() };
        }
        if let Made::Repetition(Some(number)) = made {
            self.check_repetition((collective, procs, size), number)?;
        }
        let call = |bytes| ImportedCall {
            collective,
            method: &Method::Default,
            of_library: ImportedCall::is_library(&self.method.1),
            procs,
            bytes,
            seconds,
            made,
            status: ObservationStatus::Ok,
        };
        Ok((self.meaning.ours(collective, procs, size, 1).map(call), is_new))
    }

    /// More rows than numbers between the least and the greatest repeat one: a row for each rank, say, or several jobs.
    fn check_repetition(
        &mut self,
        call: (Collective, u32, u64),
        repetition: u32,
    ) -> Result<(), ColumnFault> {
        let mut hasher = DefaultHasher::new();
        let Job { name, library, nodes, .. } = &self.job;
        (call, name, library, nodes, &self.method.1).hash(&mut hasher);
        let seen = self.repetitions.entry(hasher.finish()).or_insert((0, repetition, repetition));
        let (count, least, greatest) = (seen.0 + 1, seen.1.min(repetition), seen.2.max(repetition));
        *seen = (count, least, greatest);
        if u64::from(count) <= u64::from(greatest - least) + 1 {
            return Ok(());
        }
        let problem = format!(
            "is {repetition}, and this call has {count} rows for the repetitions {least} to {greatest} of one job; \
             expected one row for each repetition (the time until the slowest rank is done), and a column job where \
             there are several"
        );
        Err(("repetition".into(), problem))
    }
}

/// One of our methods; where the library is given, its algorithm of one of the field's names; else the name of
/// another's.
fn method(name: &str, collective: Collective, library: &str) -> Result<Method, String> {
    if name.eq_ignore_ascii_case("default") {
        return Ok(Method::Default);
    }
    if name.contains(':') {
        return name.parse().map_err(|error| format!("{error}"));
    }
    // Behind a name stands a version: `openmpi/4.0.3-qpsxmnc`, `mpich 4.0`.
    let plain = library.to_ascii_lowercase();
    let named = || Library::new(plain.split([' ', '/', '-']).next().unwrap_or_default());
    let of = libraries::recognise(library).map(|it| it.library()).or_else(named);
    let native = of.and_then(|of| methods::native(of, collective, name));
    native.map_or_else(|| Method::other(name), Ok)
}

/// A layout such as `32x4`, or a number of nodes.
fn nodes(text: &str, procs: u32) -> Result<Layout, String> {
    let nodes = match text.parse::<u32>() {
        Ok(nodes) if nodes > 0 && procs.is_multiple_of(nodes) => {
            Layout::even(nodes, procs / nodes, RankPlacement::Block)?
        }
        Ok(nodes) => return Err(format!("is {nodes}, which {procs} ranks cannot fill evenly")),
        Err(_) => text.parse::<Layout>()?,
    };
    match nodes.procs() == procs {
        true => Ok(nodes),
        false => Err(format!("is {nodes:#}, but there are {procs} ranks")),
    }
}
