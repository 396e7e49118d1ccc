use records::{Collective, FileError, Library, Method, observation::ObservationStatus};

use super::table::{FieldSplitter, Fields};
use crate::{
    lines::{Lines, number},
    methods,
    rows::{ImportedCall, Job, Made, RanksOnNodes, Sink, Summary},
    sizes::SizeMeaning,
    tool::{MeasuringTool, Told},
};

/// PICO, summarised: a row of quantiles for each job, collective, size and algorithm, in
/// nanoseconds; one repetition's time is the greatest over the ranks. Its size is the whole vector.
///
/// `NAME_ompi`, `NAME_mpich` and `default-NAME` are algorithms of the MPI library; what carries
/// another mark (`_over`, `BINE-`) was written by others and keeps its name.
pub struct Pico;

const TIMING: &str = "pico: greatest over ranks";
const MEDIAN: &str = "median";
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
        told: &Told,
        sink: &mut dyn Sink,
    ) -> Result<(), FileError> {
        let mut splitter = FieldSplitter::new(',');
        let mut columns: Option<Fields> = None;
        let mut job: Option<Job> = None;
        let mut rows = 0_u64;
        while let Some(line) = lines.next_line()? {
            let Some(columns) = &columns else {
                let fields = Fields::of(line, &mut splitter);
                columns = Some(fields.map_err(|problem| lines.fault(problem))?);
                continue;
            };
            if line.is_empty() {
                continue;
            }
            let read = read_row(line, columns, &mut splitter, told);
            let row = read.map_err(|(field, problem)| lines.fault(problem).in_field(field))?;
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
            rows += 1;
        }
        match rows {
            0 => Err(lines.of_file("holds no rows of PICO")),
            _ => Ok(()),
        }
    }
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
}

fn read_row(
    line: &str,
    columns: &Fields,
    splitter: &mut FieldSplitter,
    told: &Told,
) -> Result<PicoRow, (String, String)> {
    let fields = columns.row(line, splitter)?;
    let of = |name: &str| columns.get(&fields, name);
    let named = |field: &str| {
        let field = field.to_owned();
        move |problem: String| (field, problem)
    };
    let count = |name: &str| -> Result<u32, (String, String)> {
        match number(of(name)?, "a number").map_err(named(name))? {
            0 => Err((name.into(), "is 0; expected 1 or more".into())),
            value => Ok(value),
        }
    };
    let (procs, each) = (count("p")?, count("ppn")?);
    if !procs.is_multiple_of(each) {
        return Err(("p".into(), format!("is {procs}; expected a multiple of ppn ({each})")));
    }
    let nodes = RanksOnNodes::new(procs / each, each).map_err(named("p"))?;
    if let Some(shape) = shape(of("nodes")?).filter(|shape| *shape != nodes.nodes) {
        let problem = format!("is {shape} nodes, but p and ppn tell {}", nodes.nodes);
        return Err(("nodes".into(), problem));
    }
    let seconds = |name: &str| -> Result<f64, (String, String)> {
        Ok(crate::lines::time(of(name)?).map_err(named(name))? / 1e9)
    };
    let collective = methods::collective(of("collective")?).map_err(named("collective"))?;
    let library = of("mpi_lib")?;
    let others = STATISTICS.iter().map(|(column, name)| Ok((*name, seconds(column)?)));
    let summary = Summary {
        statistic: MEDIAN,
        repetitions: count("n")?,
        others: others.collect::<Result<_, (String, String)>>()?,
    };
    let bytes = number(of("bytes")?, "a size in bytes").map_err(named("bytes"))?;
    let settings = Some(of("notes")?).filter(|notes| !["", "null"].contains(notes));
    Ok(PicoRow {
        job: Job {
            name: format!("{} {}", of("timestamp")?, of("test_id")?),
            library: told.library.clone().unwrap_or(format!("{library} {}", of("mpi_version")?)),
            nodes: Some(nodes),
            timing: TIMING.into(),
            settings: settings.map(str::to_owned).into_iter().collect(),
        },
        collective,
        method: method(collective, library, of("algorithm")?).map_err(named("algorithm"))?,
        of_library: plain(of("algorithm")?).is_some(),
        procs,
        bytes: SizeMeaning::Total.ours(collective, procs, bytes, 4),
        seconds: seconds("median_ns")?,
        summary,
    })
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
