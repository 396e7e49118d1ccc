//! `plan.json`: what is to be measured, in which order. Made once; a resumed run completes it.

use serde::{Deserialize, Serialize};

use crate::{Collective, Layout, Method, Point, document::Document};

/// One thing to be timed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    pub collective: Collective,
    /// By which method.
    pub method: Method,
    /// The communicator's ranks and nodes; `procs` in files, where a number is one rank per node.
    #[serde(rename = "procs")]
    pub layout: Layout,
    /// Message size; see [`Collective::message_size`].
    pub bytes: u64,
}

impl Cell {
    /// Where it is, whatever the method.
    pub fn point(&self) -> Point {
        Point { collective: self.collective, layout: self.layout, bytes: self.bytes }
    }
}

/// Repetitions of one cell, made one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// Index of the cell.
    pub cell: u32,
    /// Calls made first and recorded as warm-ups: 1 on a cell's first visit and where calls are
    /// short, 0 where another call costs more than it could change.
    pub warmups: u32,
    /// Observations to make after the warm-ups.
    pub repetitions: u32,
    /// Calls in a row that one observation times together; more than one where it is asked what
    /// they take instead of one call with as much data.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub calls: u32,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_one(calls: &u32) -> bool {
    *calls == 1
}

/// Everything to be measured by one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Seed of the order in which the cells are visited.
    pub seed: u64,
    /// Ranks of the job.
    pub ranks: u32,
    /// What is timed.
    pub cells: Vec<Cell>,
    /// In which order; a cell may be visited several times.
    pub visits: Vec<Visit>,
}

impl Document for Plan {
    const SCHEMA: &'static str = "colibri/plan/1";

    fn validate(&self) -> Result<(), (String, String)> {
        for (index, cell) in self.cells.iter().enumerate() {
            let procs = cell.layout.procs();
            if procs == 0 || procs > self.ranks {
                let problem = format!("is {}, expected 1 to {} (ranks)", cell.layout, self.ranks);
                return Err((format!("cells[{index}].procs"), problem));
            }
            let checked = cell.method.check_collective(cell.collective);
            checked.map_err(|problem| (format!("cells[{index}].method"), problem))?;
        }
        for (index, visit) in self.visits.iter().enumerate() {
            if visit.cell as usize >= self.cells.len() {
                let problem =
                    format!("is {}, but there are {} cells", visit.cell, self.cells.len());
                return Err((format!("visits[{index}].cell"), problem));
            }
            if visit.calls == 0 {
                let problem = "is 0, expected at least 1".to_owned();
                return Err((format!("visits[{index}].calls"), problem));
            }
        }
        Ok(())
    }
}
