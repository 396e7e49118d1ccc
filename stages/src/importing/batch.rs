//! The record of one job.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use import::{Job, Made};
use records::{
    FileError, document,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Plan, Visit},
    platform::Platform,
    record::BulkWriter,
};

use crate::measurements;
use site::run_directory::RunDirectory;

/// A job's record while it is written.
pub struct ImportedJob {
    pub job: Job,
    /// The number of its record, from 1; 0 while it has none.
    pub number: usize,
    /// Its record.
    pub path: PathBuf,
    writer: Option<BulkWriter<CollectiveCall>>,
    begun: bool,
    /// The visits made, in order.
    pub visits: Vec<Visit>,
    /// Whether anything of it was taken.
    pub is_used: bool,
    /// The repetition counted last, of the visit under way.
    last_repetition: u32,
}

impl ImportedJob {
    pub fn new(job: Job) -> Self {
        let (writer, visits, path) = (None, Vec::new(), PathBuf::new());
        let (begun, is_used) = (false, false);
        ImportedJob { job, number: 0, path, writer, begun, visits, is_used, last_repetition: 0 }
    }

    pub fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// The visit and repetition of a further call of a cell: another cell, or a repetition that is
    /// not counted on, begins a visit.
    pub fn place(&mut self, cell: u32, repetition: Option<u32>) -> (u32, u32) {
        let goes_on = self.visits.last().is_some_and(|visit| visit.cell == cell)
            && repetition.is_none_or(|counted| counted > self.last_repetition);
        if !goes_on {
            self.visits.push(Visit { cell, warmups: 0, repetitions: 0, calls: 1 });
        }
        let visit = self.visits.len() - 1;
        let repetition = repetition.unwrap_or(self.visits[visit].repetitions);
        self.last_repetition = repetition;
        (visit as u32, repetition)
    }

    /// Writes a call; `header` is asked for when it is the first one.
    pub fn append(
        &mut self,
        call: &CollectiveCall,
        header: impl FnOnce(&Job) -> BTreeMap<String, String>,
    ) -> Result<(), FileError> {
        if call.status == ObservationStatus::Ok || call.status == ObservationStatus::Late {
            self.visits[call.visit as usize].repetitions += 1;
        }
        let writer = match (&mut self.writer, self.begun) {
            (Some(writer), _) => writer,
            (none, true) => none.insert(BulkWriter::again(&self.path)?),
            (none, false) => {
                self.begun = true;
                none.insert(BulkWriter::create(&self.path, &header(&self.job))?)
            }
        };
        writer.append(call)
    }

    /// Writes what was kept back and closes the file.
    pub fn close(&mut self) -> Result<(), FileError> {
        self.writer.take().map_or(Ok(()), BulkWriter::finish)
    }
}

/// What says how a row of statistics became an observation; in every record's header.
const SUMMARISED: &str = "each row is one observation of one visit: a statistic of many \
                          repetitions, as `statistic` names it; the others are in statistics.csv";
pub const REPETITIONS: &str = "every repetition that the tool reported";

/// What a record says of itself.
pub fn header(
    job: &Job,
    title: &str,
    file: &Path,
    ranks: u32,
    made: &Made,
) -> BTreeMap<String, String> {
    let platform = serde_json::to_string(&platform(job, ranks)).unwrap_or_default();
    let (statistic, rows) = match made {
        Made::Repetition(_) => ("none", REPETITIONS),
        Made::Summary(summary) => (summary.statistic, SUMMARISED),
    };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut header = BTreeMap::from([
        ("imported".to_owned(), format!("{title}, {name}")),
        ("job".to_owned(), job.name.clone()),
        ("platform".to_owned(), platform),
        ("ranks".to_owned(), ranks.to_string()),
        ("rows".to_owned(), rows.to_owned()),
        ("statistic".to_owned(), statistic.to_owned()),
        ("timing".to_owned(), job.timing.clone()),
    ]);
    if let Some(nodes) = job.nodes {
        header.insert("layout".into(), format!("{nodes:#}"));
    }
    header
}

/// Writes the plans: all name the same cells, each the visits of its own job.
pub fn write_plans(run: &RunDirectory, cells: &[Cell], visits: Vec<Vec<Visit>>) -> Result<()> {
    let ranks = cells
        .iter()
        .map(|cell| cell.point.layout.procs())
        .max()
        .context("there are no collectives")?;
    for (index, visits) in visits.into_iter().enumerate() {
        let plan = Plan { seed: 0, ranks, cells: cells.to_vec(), visits };
        document::write(&measurements::files(run, index + 1).plan, &plan)?;
    }
    Ok(())
}

/// What was measured on, as far as the tool tells. Hosts have numbers for names; where nobody tells
/// on how many nodes the ranks were, each rank's host is `unknown`.
fn platform(job: &Job, procs: u32) -> Platform {
    let hosts = match job.nodes {
        Some(layout) => layout.nodes_of_ranks().iter().map(|node| format!("node-{node}")).collect(),
        None => vec!["unknown".to_owned(); procs as usize],
    };
    Platform {
        hosts,
        mpi_library: job.library.clone(),
        settings: job.settings.clone(),
        ..Platform::default()
    }
}
