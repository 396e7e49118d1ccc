//! The record of one job.

use std::{collections::BTreeMap, path::PathBuf};

use import::{Job, RanksOnNodes};
use records::{
    FileError,
    observation::{CollectiveCall, ObservationStatus},
    plan::Visit,
    platform::Platform,
    record::BulkWriter,
};

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
        let told = repetition.unwrap_or(self.visits[visit].repetitions);
        self.last_repetition = told;
        (visit as u32, told)
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

/// What was measured on, as far as the tool tells. Hosts have numbers for names; where nobody tells
/// on how many nodes the ranks were, each rank's host is `unknown`.
pub fn platform(job: &Job, procs: u32) -> Platform {
    let host = |rank: u32| match job.nodes {
        Some(RanksOnNodes { ranks_per_node, .. }) => {
            format!("node-{}", rank / ranks_per_node.max(1))
        }
        None => "unknown".to_owned(),
    };
    Platform {
        hosts: (0..procs).map(host).collect(),
        mpi_library: job.library.clone(),
        settings: job.settings.clone(),
        ..Platform::default()
    }
}
