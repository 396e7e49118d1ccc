use records::{
    Collective, FileError, Layout, Library, Method, RankPlacement, observation::ObservationStatus,
    unknown,
};

use super::table::{ColumnFault, FieldSplitter, Fields, RowFields};
use crate::{
    lines::{Lines, number, time},
    methods,
    rows::{ImportedCall, Job, Made, RowLeftOut, Sink, Summary},
    sizes::SizeMeaning,
    tool::{ImportHints, MeasuringTool},
};

/// PICO, summarised: a row of quantiles for each job, collective, size and algorithm, in
/// nanoseconds; one repetition's time is the greatest over the ranks. Its size is the whole vector.
/// Its own `aggregated_results_summary.csv` is read, as each version has made it, and a shorter table whose columns
/// tell their units.
///
/// `NAME_ompi`, `NAME_mpich` and `default-NAME` are algorithms of the MPI library; what carries
/// another mark (`_over`, `BINE-`) was written by others and keeps its name.
pub struct Pico;

const TIMING: &str = "pico: greatest over ranks";
const MEDIAN: &str = "median";
/// The columns of its own summary, by those of the shorter table.
const OWN_NAMES: &[(&str, &str)] = &[
    ("collective", "collective_type"),
    ("nodes", "nnodes"),
    ("ppn", "tasks_per_node"),
    ("mpi_version", "mpi_lib_version"),
    ("bytes", "buffer_size"),
    ("algorithm", "algo_name"),
    ("n", "n_iter"),
    ("min_ns", "min"),
    ("p10_ns", "percentile_10"),
    ("median_ns", "median"),
    ("mean_ns", "mean"),
    ("p90_ns", "percentile_90"),
];
/// Where it says whether buffers are in the memory of GPUs: in the shorter table, since the middle of 2025 and
/// before.
const GPU_COLUMNS: [&str; 3] = ["gpu", "gpu_awareness", "CUDA"];
/// What stands there where they are not.
const ON_HOST: [&str; 5] = ["", "no", "null", "false", "False"];
/// Bytes of an element, by PICO's name of its type.
const DATATYPES: &[(&str, u64)] = &[
    ("int8", 1),
    ("char", 1),
    ("int16", 2),
    ("int32", 4),
    ("int", 4),
    ("float", 4),
    ("int64", 8),
    ("double", 8),
];
const STATISTICS: &[(&str, &str)] = &[
    ("min_ns", "least"),
    ("p10_ns", "quantile 0.1"),
    ("mean_ns", "mean"),
    ("p90_ns", "quantile 0.9"),
];

impl MeasuringTool for Pico {
    fn name(&self) -> &'static str {
        "pico"
    }

    fn title(&self) -> &'static str {
        "PICO"
    }

    fn read(
        &self,
        lines: &mut Lines<'_>,
        hints: &ImportHints,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let mut splitter = FieldSplitter::new(',');
        let mut columns: Option<PicoColumns> = None;
        let mut job: Option<Job> = None;
        let mut on_gpu: Option<bool> = None;
        let mut system: Option<String> = None;
        let mut rows = 0_u64;
        while let Some(line) = lines.next_line()? {
            let Some(columns) = &columns else {
                let found = PicoColumns::of(line, &mut splitter);
                let fault = |(field, problem): ColumnFault| lines.fault(problem).in_field(field);
                columns = Some(found.map_err(fault)?);
                continue;
            };
            if line.is_empty() {
                continue;
            }
            let read = read_row(line, columns, &mut splitter, hints);
            let row = read.map_err(|(field, problem)| lines.fault(problem).in_field(field))?;
            rows += 1;
            let row = match row {
                PicoLine::Row(row) => row,
                PicoLine::LeftOut(why) => {
                    sink.left_out(lines.number(), why);
                    continue;
                }
            };
            if *on_gpu.get_or_insert(row.on_gpu) != row.on_gpu {
                sink.left_out(lines.number(), RowLeftOut::OtherMemory);
                continue;
            }
            let first = system.get_or_insert_with(|| row.system.clone());
            if *first != row.system {
                let problem = format!(
                    "is {} after {first}; expected one cluster: import each into a run of its own",
                    row.system
                );
                return Err(lines.fault(problem).in_field("system"));
            }
            if job.as_ref() != Some(&row.job) {
                sink.job(lines.number(), &row.job)?;
                job = Some(row.job);
            }
            let call = ImportedCall {
                collective: row.collective,
                method: &row.method,
                of_library: row.of_library,
                procs: row.procs,
                bytes: row.bytes,
                seconds: row.seconds,
                made: Made::Summary(row.summary),
                status: ObservationStatus::Ok,
            };
            sink.call(lines.number(), &call)?;
        }
        match rows {
            0 => Err(lines.of_file("holds no rows of PICO")),
            _ => Ok(()),
        }
    }
}

/// What a line holds.
enum PicoLine {
    Row(Box<PicoRow>),
    LeftOut(RowLeftOut),
}

struct PicoRow {
    job: Job,
    collective: Collective,
    method: Method,
    of_library: bool,
    procs: u32,
    bytes: u64,
    seconds: f64,
    summary: Summary,
    /// Whether its buffers were in the memory of GPUs.
    on_gpu: bool,
    /// The cluster, where it is given.
    system: String,
}

/// The columns of either form.
struct PicoColumns {
    fields: Fields,
    /// Whether they have the names of PICO's own summary.
    is_own: bool,
    /// The one that tells of GPUs; none where nothing does.
    gpu: Option<&'static str>,
}

impl PicoColumns {
    fn of(line: &str, splitter: &mut FieldSplitter) -> Result<Self, ColumnFault> {
        if line.split(',').next() == Some("highest") {
            let problem = "holds the times of one test, without what was tested; import \
                           aggregated_results_summary.csv, as PICO's summarize_data.py makes it";
            return Err((String::new(), problem.into()));
        }
        let fields = Fields::of(line, splitter)?;
        let has = |name: &str| fields.names.iter().any(|other| other == name);
        let (is_own, gpu) = (has("collective_type"), GPU_COLUMNS.into_iter().find(|it| has(it)));
        Ok(PicoColumns { fields, is_own, gpu })
    }

    /// What a column of the shorter table is called here.
    fn name<'a>(&self, name: &'a str) -> &'a str {
        let own = OWN_NAMES.iter().find(|(short, _)| self.is_own && *short == name);
        own.map_or(name, |(_, own)| own)
    }
}

/// A row's fields.
struct PicoFields<'a> {
    columns: &'a PicoColumns,
    row: RowFields<'a>,
}

impl<'a> PicoFields<'a> {
    fn of(&self, name: &str) -> Result<&'a str, ColumnFault> {
        self.columns.fields.get(&self.row, self.columns.name(name))
    }

    fn in_field(&self, name: &str) -> impl Fn(String) -> ColumnFault {
        let name = self.columns.name(name).to_owned();
        move |problem| (name.clone(), problem)
    }

    fn seconds(&self, name: &str) -> Result<f64, ColumnFault> {
        Ok(time(self.of(name)?).map_err(self.in_field(name))? / 1e9)
    }

    /// A whole number, which pandas writes as 256.0 where another row lacks it.
    fn whole<T: std::str::FromStr>(&self, name: &str, wanted: &str) -> Result<T, ColumnFault> {
        let text = self.of(name)?;
        number(text.strip_suffix(".0").unwrap_or(text), wanted).map_err(self.in_field(name))
    }

    fn count(&self, name: &str) -> Result<u32, ColumnFault> {
        match self.whole(name, "a number")? {
            0 => Err(self.in_field(name)("is 0; expected 1 or more".into())),
            value => Ok(value),
        }
    }

    /// Ranks on nodes; `p` may be given beside them.
    fn nodes(&self) -> Result<Layout, ColumnFault> {
        let (each, shape_text) = (self.count("ppn")?, self.of("nodes")?);
        let shape_text = shape_text.strip_suffix(".0").unwrap_or(shape_text);
        if self.columns.is_own {
            let wanted = || format!("is {}; expected 32 or 8x8x8", records::quoted(shape_text));
            let nodes = shape(shape_text).ok_or_else(wanted).map_err(self.in_field("nodes"))?;
            return Layout::even(nodes, each, RankPlacement::Block).map_err(self.in_field("nodes"));
        }
        let procs = self.count("p")?;
        if !procs.is_multiple_of(each) {
            return Err(("p".into(), format!("is {procs}; expected a multiple of ppn ({each})")));
        }
        let nodes = Layout::even(procs / each, each, RankPlacement::Block);
        let nodes = nodes.map_err(self.in_field("p"))?;
        match shape(shape_text).filter(|shape| *shape != nodes.nodes()) {
            Some(shape) => {
                let problem = format!("is {shape} nodes, but p and ppn tell {}", nodes.nodes());
                Err(("nodes".into(), problem))
            }
            None => Ok(nodes),
        }
    }

    /// The whole vector, and of what elements, in bytes.
    fn bytes(&self) -> Result<(u64, u64), ColumnFault> {
        let bytes = self.whole("bytes", "a size in bytes")?;
        if !self.columns.is_own {
            return Ok((bytes, 4));
        }
        let name = self.of("datatype")?;
        let known = DATATYPES.iter().find(|(datatype, _)| *datatype == name);
        let (_, element) = known.ok_or_else(|| {
            let names: Vec<&str> = DATATYPES.iter().map(|(datatype, _)| *datatype).collect();
            ("datatype".to_owned(), unknown("datatype", name, &names))
        })?;
        Ok((bytes, *element))
    }

    /// Where it says that buffers were in the memory of GPUs, and how; none where they were not.
    fn gpu(&self) -> Result<Option<(&'static str, &'a str)>, ColumnFault> {
        let Some(column) = self.columns.gpu else { return Ok(None) };
        let memory = self.columns.fields.get(&self.row, column)?;
        Ok((!ON_HOST.contains(&memory)).then_some((column, memory)))
    }

    /// What else was set: a note, and buffers of a GPU with what carried them.
    fn settings(&self) -> Result<Vec<String>, ColumnFault> {
        let setting = |name: &str| {
            let field = self.columns.fields.get(&self.row, name).ok();
            field.filter(|text| !["", "null"].contains(text))
        };
        let mut settings: Vec<String> = setting("notes").map(str::to_owned).into_iter().collect();
        if let Some((column, value)) = self.gpu()? {
            settings.push(format!("{column}={value}"));
            for name in ["gpu_lib", "gpu_lib_version"] {
                settings.extend(setting(name).map(|value| format!("{name}={value}")));
            }
        }
        Ok(settings)
    }
}

fn read_row(
    line: &str,
    columns: &PicoColumns,
    splitter: &mut FieldSplitter,
    hints: &ImportHints,
) -> Result<PicoLine, ColumnFault> {
    let row = PicoFields { columns, row: columns.fields.row(line, splitter)? };
    // Its times are empty then.
    if row.whole::<u32>("n", "a number")? == 0 {
        return Ok(PicoLine::LeftOut(RowLeftOut::NoRepetition));
    }
    let nodes = row.nodes()?;
    let collective = methods::collective(row.of("collective")?);
    let collective = collective.map_err(row.in_field("collective"))?;
    let library = row.of("mpi_lib")?;
    let others = STATISTICS.iter().map(|(column, name)| Ok((*name, row.seconds(column)?)));
    let summary = Summary {
        statistic: MEDIAN,
        repetitions: row.count("n")?,
        others: others.collect::<Result<_, ColumnFault>>()?,
    };
    let (bytes, element) = row.bytes()?;
    let Some(bytes) = SizeMeaning::Total.ours(collective, nodes.procs(), bytes, element) else {
        return Ok(PicoLine::LeftOut(RowLeftOut::FewerThanRanks));
    };
    let algorithm = row.of("algorithm")?;
    let on_gpu = row.gpu()?.is_some();
    let system = columns.fields.get(&row.row, "system").unwrap_or_default().to_owned();
    Ok(PicoLine::Row(Box::new(PicoRow {
        job: Job {
            name: format!("{} {}", row.of("timestamp")?, row.of("test_id")?),
            library: match &hints.library {
                Some(library) => library.clone(),
                None => format!("{library} {}", row.of("mpi_version")?).trim().to_owned(),
            },
            nodes: Some(nodes),
            timing: TIMING.into(),
            settings: row.settings()?,
            system: system.clone(),
            memory: if on_gpu { "GPU".into() } else { String::new() },
        },
        collective,
        method: method(collective, library, algorithm).map_err(row.in_field("algorithm"))?,
        of_library: plain(algorithm).is_some(),
        procs: nodes.procs(),
        bytes,
        seconds: row.seconds("median_ns")?,
        summary,
        on_gpu,
        system,
    })))
}

/// Nodes of a shape: `32`, `8x8x8`.
fn shape(text: &str) -> Option<u32> {
    text.split('x')
        .map(|side| side.parse::<u32>().ok())
        .try_fold(1_u32, |all, side| all.checked_mul(side?))
}

/// The library's own name of an algorithm, where its mark says that it is the library's.
fn plain(name: &str) -> Option<&str> {
    let marked = ["_ompi", "_mpich"].into_iter().find_map(|mark| name.strip_suffix(mark));
    marked.or_else(|| name.strip_prefix("default-"))
}

/// The method of a name.
fn method(collective: Collective, library: &str, name: &str) -> Result<Method, String> {
    let Some(plain) = plain(name) else { return Method::other(name) };
    if plain == "default" {
        return Ok(Method::Default);
    }
    let library = match library {
        "OMPI" => "openmpi",
        "FJMPI" => "fujitsu",
        it if it.contains("MPICH") => "mpich",
        _ => "",
    };
    let native = Library::new(library).and_then(|it| methods::native(it, collective, plain));
    native.map_or_else(|| Method::other(name), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_methods_or_stay() {
        let of = |collective, library, name| method(collective, library, name).unwrap().to_string();
        for (collective, library, name, wanted) in [
            (Collective::Bcast, "OMPI", "default_ompi", "default"),
            (Collective::Bcast, "OMPI", "split_binary_ompi", "native:openmpi:splitted-binary"),
            (Collective::Reduce, "OMPI", "in_order_ompi", "native:openmpi:in-order-binary"),
            (Collective::Bcast, "OMPI", "bine_lat_over", "other:bine_lat_over"),
            (Collective::Bcast, "FJMPI", "default-binomial", "native:fujitsu:binomial"),
            (Collective::Bcast, "FJMPI", "default-bintree3d", "other:default-bintree3d"),
            (Collective::Bcast, "FJMPI", "default-default", "default"),
            (Collective::Allgather, "CRAY_MPICH", "brucks_mpich", "native:mpich:bruck"),
            (Collective::Allreduce, "FJMPI", "BINE-L-UTOFU-0-1", "other:BINE-L-UTOFU-0-1"),
        ] {
            assert_eq!(of(collective, library, name), wanted);
        }
    }

    #[test]
    fn a_torus_is_as_many_nodes_as_its_sides_span() {
        assert_eq!((shape("8x8x8"), shape("32"), shape("a")), (Some(512), Some(32), None));
    }
}
