//! A run's times of collectives in other tools' forms, as `import` reads them back.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Result, bail};
use records::{
    Collective, Layout, Method, Point, RankPlacement,
    observation::{CollectiveCall, ObservationStatus},
};
use statistics::mean;

use crate::{headers::platform, measurements};
use site::run_directory::RunDirectory;

/// Another tool's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordForm {
    Csv,
    Reprompi,
    Osu,
}

impl RecordForm {
    pub const ALL: [RecordForm; 3] = [RecordForm::Csv, RecordForm::Reprompi, RecordForm::Osu];

    /// As it is named on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RecordForm::Csv => "csv",
            RecordForm::Reprompi => "reprompi",
            RecordForm::Osu => "osu",
        }
    }
}

/// A file to be written.
pub struct FormattedFile {
    pub name: String,
    pub text: String,
}

/// A job with what it timed.
struct TimedJob {
    name: String,
    library: String,
    /// Where all of its ranks lay, where the record tells.
    layout: Option<Layout>,
    timing: String,
    /// What each time is of many; none where it is a single repetition's.
    statistic: Option<&'static str>,
    calls: Vec<CollectiveCall>,
}

/// The statistics that the forms can name.
const STATISTICS: [&str; 4] = ["median", "mean", "least", "greatest"];

/// The record's files in a form.
///
/// # Errors
/// The record cannot be read, or holds what the form cannot tell.
pub fn files(run: &RunDirectory, form: RecordForm) -> Result<Vec<FormattedFile>> {
    let mut jobs = Vec::new();
    for (index, batch) in measurements::batches(run)?.into_iter().enumerate() {
        let header = &batch.record.header;
        let of = |key: &str| header.get(key).cloned().unwrap_or_default();
        let statistic = match of("statistic").as_str() {
            "" | "none" => None,
            other => match STATISTICS.into_iter().find(|known| other.starts_with(known)) {
                None => {
                    bail!("{}: holds '{other}', which the other formats cannot express", batch.name)
                }
                known => known,
            },
        };
        jobs.push(TimedJob {
            name: header.get("job").cloned().unwrap_or_else(|| format!("job-{}", index + 1)),
            library: platform(header, &run.file(&batch.name))?.mpi_library,
            layout: of("layout").parse().ok(),
            timing: of("timing"),
            statistic,
            calls: batch.record.rows,
        });
    }
    match form {
        RecordForm::Csv => Ok(vec![csv(&jobs)]),
        RecordForm::Reprompi => Ok(jobs.iter().flat_map(TimedJob::reprompi).collect()),
        RecordForm::Osu => {
            let mut files = Vec::new();
            for job in &jobs {
                files.extend(job.osu()?);
            }
            Ok(files)
        }
    }
}

/// A field of a CSV table, in quotes where it needs them.
fn field(text: &str) -> String {
    match text.contains(['"', ',', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// One table of all jobs, in seconds and bytes as Colibri counts them.
fn csv(jobs: &[TimedJob]) -> FormattedFile {
    let mut text = String::from(
        "collective,method,procs,bytes,seconds,repetition,job,nodes,library,statistic\n",
    );
    for job in jobs {
        let (name, library) = (field(&job.name), field(&job.library));
        let statistic = job.statistic.unwrap_or_default();
        for call in job.calls.iter().filter(|call| call.status == ObservationStatus::Ok) {
            let CollectiveCall { point, method, seconds, repetition, .. } = call;
            let Point { collective, layout, bytes } = *point;
            let (method, procs) = (field(&method.to_string()), layout.procs());
            let nodes = job.nodes(layout).map(|it| format!("{it:#}")).unwrap_or_default();
            let _ = writeln!(
                text,
                "{collective},{method},{procs},{bytes},{seconds},{repetition},{name},{nodes},{library},{statistic}"
            );
        }
    }
    FormattedFile { name: "record.csv".into(), text }
}

/// A file's name: other signs than these mean something to shells.
fn file_name(parts: &[&str]) -> String {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '-' };
    let parts = parts.iter().map(|part| part.chars().map(plain).collect::<String>());
    parts.collect::<Vec<_>>().join("_")
}

/// `MPI_Reduce_scatter`.
fn mpi_name(collective: Collective) -> String {
    let name = collective.name();
    let (first, rest) = name.split_at(1);
    format!("MPI_{}{}", first.to_uppercase(), rest.replace('-', "_"))
}

impl TimedJob {
    /// Where the ranks of a call lay. One on each node is also what stands for nodes that nobody named, unless
    /// these are all ranks of a job that tells.
    fn nodes(&self, layout: Layout) -> Option<Layout> {
        match layout.is_flat() {
            true => self.layout.filter(|job| job.procs() == layout.procs()),
            false => Some(layout),
        }
    }

    /// The calls of each layout and method, in order.
    fn by_method(&self) -> BTreeMap<(Layout, &Method), Vec<&CollectiveCall>> {
        let mut parts: BTreeMap<_, Vec<&CollectiveCall>> = BTreeMap::new();
        for call in &self.calls {
            if matches!(call.status, ObservationStatus::Ok | ObservationStatus::Late) {
                parts.entry((call.point.layout, &call.method)).or_default().push(call);
            }
        }
        parts
    }

    /// The name of a file of the job.
    fn file_name(&self, layout: Layout, rest: &[&str]) -> String {
        let layout = layout.to_string();
        file_name(&[&[self.name.as_str(), &layout], rest].concat())
    }

    fn reprompi(&self) -> Vec<FormattedFile> {
        let file = |((layout, method), calls): ((Layout, &Method), Vec<&CollectiveCall>)| {
            let mut text = format!(
                "#@nprocs={}\n#@datatype_extent_bytes=1\n#@method={method}\n#@job={}\n#@library={}\n#@runtime_type={}\n",
                layout.procs(),
                self.name,
                self.library,
                self.timing
            );
            if let Some(nodes) = self.nodes(layout) {
                let _ = writeln!(text, "#@layout={nodes:#}");
            }
            text += &match self.statistic {
                None => "test nrep count errorcode runtime_sec\n".to_owned(),
                Some("least") => "test count min_sec\n".to_owned(),
                Some("greatest") => "test count max_sec\n".to_owned(),
                Some(statistic) => format!("test count {statistic}_sec\n"),
            };
            for call in calls {
                let (test, bytes, seconds) =
                    (mpi_name(call.point.collective), call.point.bytes, call.seconds);
                let late = u8::from(call.status == ObservationStatus::Late);
                let _ = match self.statistic {
                    None => writeln!(text, "{test} {} {bytes} {late} {seconds}", call.repetition),
                    Some(_) => writeln!(text, "{test} {bytes} {seconds}"),
                };
            }
            let name = self.file_name(layout, &[&method.to_string()]);
            FormattedFile { name: format!("{name}.txt"), text }
        };
        self.by_method().into_iter().map(file).collect()
    }

    /// A table for each layout, method and collective, and the script that tells the ranks.
    fn osu(&self) -> Result<Vec<FormattedFile>> {
        if let Some(statistic) = self.statistic.filter(|statistic| *statistic != "mean") {
            bail!(
                "{}: holds {statistic}s, but OSU's tables hold means; use --record csv",
                self.name
            );
        }
        let mut files = Vec::new();
        for ((layout, method), calls) in self.by_method() {
            let mut tables: BTreeMap<Collective, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
            for call in calls.iter().filter(|call| call.status == ObservationStatus::Ok) {
                let sizes = tables.entry(call.point.collective).or_default();
                sizes.entry(call.point.bytes).or_default().push(call.seconds);
            }
            let of_method = method.to_string();
            for (collective, sizes) in tables {
                let name = self.file_name(layout, &[collective.name(), &of_method]);
                let script = self.script(layout, collective)?;
                files.push(FormattedFile { name: format!("{name}.job.sh"), text: script });
                let text = osu_table(collective, layout.procs(), &sizes);
                files.push(FormattedFile { name: format!("{name}.txt"), text });
            }
        }
        Ok(files)
    }

    fn script(&self, layout: Layout, collective: Collective) -> Result<String> {
        let mut script = format!("#!/bin/sh\n#SBATCH --ntasks={}\n", layout.procs());
        if let Some(nodes) = self.nodes(layout) {
            let (Some(each), Some(RankPlacement::Block)) = (nodes.per_node(), nodes.placement())
            else {
                bail!(
                    "{}: holds calls on {nodes}, which a job's script for OSU does not tell; use --record csv",
                    self.name
                );
            };
            let _ = writeln!(script, "#SBATCH --nodes={}", nodes.nodes());
            let _ = writeln!(script, "#SBATCH --ntasks-per-node={each}");
        }
        // Without a line that starts them, ranks would be a guess.
        let _ = writeln!(script, "srun osu_{collective}");
        Ok(script)
    }
}

/// The means at each size, in microseconds.
fn osu_table(collective: Collective, procs: u32, sizes: &BTreeMap<u64, Vec<f64>>) -> String {
    let title = match collective {
        Collective::Bcast => "Broadcast".to_owned(),
        Collective::Alltoall => "All-to-All Personalized Exchange".to_owned(),
        Collective::Alltoallv => "All-to-Allv Personalized Exchange".to_owned(),
        _ => mpi_name(collective).replacen("MPI_", "", 1),
    };
    let columns = match collective {
        Collective::Barrier => "# Avg Latency(us)",
        _ => "# Size          Avg Latency(us)",
    };
    let mut text = format!("# OSU MPI {title} Latency Test v5.6.2\n{columns}\n");
    for (&bytes, seconds) in sizes {
        let microseconds = mean(seconds).unwrap_or_default() * 1e6;
        let _ = match collective {
            Collective::Barrier => writeln!(text, "{microseconds}"),
            // Its size is the vector that is dealt.
            Collective::ReduceScatter => {
                writeln!(text, "{:<16}{microseconds}", bytes.saturating_mul(procs.into()))
            }
            _ => writeln!(text, "{bytes:<16}{microseconds}"),
        };
    }
    text
}
