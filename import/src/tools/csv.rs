use std::collections::BTreeMap;

use records::{Collective, FileError, Method, observation::ObservationStatus, unknown};

use super::table::{Fault, FieldSplitter, Fields};
use crate::{
    columns::{ColumnMap, ColumnSource, OURS, SizeUnit},
    lines::{Lines, number, time},
    methods,
    rows::{ImportedCall, Job, Made, RanksOnNodes, Sink, Summary},
    sizes::SizeMeaning,
    tool::{MeasuringTool, Told},
};

/// Any table with a line of column names, separated by commas, semicolons or tabulators, whose columns
/// the user names ([`ColumnMap`]).
pub struct Csv;

/// Statistics by which a row may tell the time of several repetitions.
const STATISTICS: [&str; 4] = ["median", "mean", "least", "greatest"];

impl MeasuringTool for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn title(&self) -> &'static str {
        "CSV"
    }

    fn read(
        &self,
        lines: &mut Lines<'_>,
        told: &Told,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let map = told.columns.clone().unwrap_or_default();
        let mut reader: Option<Rows> = None;
        let mut rows = 0_u64;
        while let Some(line) = lines.next_line()? {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some(reader) = &mut reader else {
                let found = Rows::new(line, &map);
                let found = found.map_err(|(field, it)| lines.fault(it).in_field(field))?;
                let timing = "csv: as its columns are told";
                reader = Some(Rows { job: told.job(lines, timing), ..found });
                continue;
            };
            let read = reader.read(line, told);
            let (call, new_job) = read.map_err(|(field, it)| lines.fault(it).in_field(field))?;
            if new_job || rows == 0 {
                sink.job(lines.number(), &reader.job)?;
            }
            let call = ImportedCall { method: &reader.method.1, ..call };
            sink.call(lines.number(), &call)?;
            rows += 1;
        }
        match rows {
            0 => Err(lines.of_file("holds no rows")),
            _ => Ok(()),
        }
    }
}

/// Reads rows; keeps what rows that follow each other have in common.
struct Rows {
    splitter: FieldSplitter,
    columns: Fields,
    map: ColumnMap,
    /// Place of each of our columns.
    places: BTreeMap<String, usize>,
    job: Job,
    method: (String, Method),
    collective: (String, Collective),
}

impl Rows {
    fn new(line: &str, map: &ColumnMap) -> Result<Self, Fault> {
        let separator = [',', ';', '\t'].into_iter().max_by_key(|it| line.matches(*it).count());
        let mut splitter = FieldSplitter::new(separator.unwrap_or(','));
        let columns = Fields::named(line, &mut splitter);
        let mut places = BTreeMap::new();
        for (ours, from) in &map.from {
            let ColumnSource::Column(name) = from else { continue };
            match columns.names.iter().position(|column| column == name) {
                Some(place) => {
                    places.insert(ours.clone(), place);
                }
                None if OURS.iter().any(|(name, needed)| *needed && name == ours) => {
                    let names: Vec<&str> = columns.names.iter().map(String::as_str).collect();
                    return Err((name.clone(), unknown("column", name, &names)));
                }
                None => {}
            }
        }
        Ok(Rows {
            splitter,
            columns,
            map: map.clone(),
            places,
            job: Job::default(),
            method: (String::new(), Method::Default),
            collective: (String::new(), Collective::Barrier),
        })
    }

    /// The call of a row, and whether it is of another job than the row before. The method is kept
    /// in `self`.
    fn read(&mut self, line: &str, told: &Told) -> Result<(ImportedCall<'static>, bool), Fault> {
        let fields = self.columns.row(line, &mut self.splitter)?;
        let places = &self.places;
        let map = &self.map;
        let get = |ours: &str| -> Option<&str> {
            match (places.get(ours), map.from.get(ours)) {
                (Some(place), _) => Some(fields[*place].trim()),
                (None, Some(ColumnSource::Fixed(value))) => Some(value.as_str()),
                _ => None,
            }
        };
        let named = |field: &str| {
            let field = field.to_owned();
            move |problem: String| (field, problem)
        };
        let needed =
            |ours: &str| get(ours).ok_or_else(|| (ours.to_owned(), "is missing".to_owned()));
        let name = needed("collective")?;
        if self.collective.0 != name {
            let found = methods::collective(name).map_err(named("collective"))?;
            self.collective = (name.to_owned(), found);
        }
        let name = get("method").unwrap_or_default();
        if self.method.0 != name || name.is_empty() {
            let found = match name {
                "" => told.method(),
                name => method(name).map_err(named("method"))?,
            };
            self.method = (name.to_owned(), found);
        }
        let collective = self.collective.1;
        let procs = match number(needed("procs")?, "a number of ranks").map_err(named("procs"))? {
            0 => return Err(("procs".into(), "is 0; expected 1 or more".into())),
            procs => procs,
        };
        let size = needed("bytes")?;
        let size: u64 = number(size, "a size in bytes").map_err(named("bytes"))?;
        let meaning = match map.size {
            SizeUnit::Ours => SizeMeaning::AsOurs,
            SizeUnit::Total => SizeMeaning::Total,
        };
        let seconds = time(needed("seconds")?).map_err(named("seconds"))? / map.time.of_second();
        let repetition = get("repetition").filter(|text| !text.is_empty());
        let repetition: u32 = match repetition {
            Some(text) => number(text, "a number").map_err(named("repetition"))?,
            None => 0,
        };
        let made = match get("statistic").unwrap_or_default() {
            "" => Made::Repetition(repetition),
            name => match STATISTICS.into_iter().find(|known| *known == name) {
                Some(statistic) => {
                    Made::Summary(Summary { statistic, repetitions: 0, others: Vec::new() })
                }
                None => {
                    let problem = unknown("statistic", name, &STATISTICS);
                    return Err(("statistic".into(), problem));
                }
            },
        };
        let nodes = match get("nodes").filter(|text| !text.is_empty()) {
            None => self.job.nodes,
            Some(text) => Some(nodes(text, procs).map_err(named("nodes"))?),
        };
        let job = get("job").unwrap_or(&self.job.name);
        let library = get("library").unwrap_or(&self.job.library);
        let is_new = job != self.job.name || library != self.job.library || nodes != self.job.nodes;
        if is_new {
            self.job = Job {
                name: job.to_owned(),
                library: library.to_owned(),
                nodes,
                ..self.job.clone()
            };
        }
        let call = ImportedCall {
            collective,
            method: &Method::Default,
            of_library: ImportedCall::is_library(&self.method.1),
            procs,
            bytes: meaning.ours(collective, procs, size, 1),
            seconds,
            made,
            status: ObservationStatus::Ok,
        };
        Ok((call, is_new))
    }
}

/// One of our methods, or the name of another's.
fn method(name: &str) -> Result<Method, String> {
    match name.contains(':') || name == "default" {
        true => name.parse().map_err(|error| format!("{error}")),
        false => Method::other(name),
    }
}

/// `32x4`, or a number of nodes.
fn nodes(text: &str, procs: u32) -> Result<RanksOnNodes, String> {
    let nodes = match text.parse::<u32>() {
        Ok(nodes) if nodes > 0 && procs.is_multiple_of(nodes) => {
            RanksOnNodes::new(nodes, procs / nodes)?
        }
        Ok(nodes) => return Err(format!("is {nodes}, which {procs} ranks cannot fill evenly")),
        Err(_) => text.parse::<RanksOnNodes>()?,
    };
    match nodes.procs() == procs {
        true => Ok(nodes),
        false => Err(format!("is {nodes}, but there are {procs} ranks")),
    }
}
