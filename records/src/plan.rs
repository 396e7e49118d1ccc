//! `plan.json`: what is to be measured, in which order. Made once; a resumed run completes it.

use serde::{Deserialize, Serialize};

use crate::{Method, Point, document::Document};

/// One thing to be timed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    #[serde(flatten)]
    pub point: Point,
    /// By which method.
    pub method: Method,
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
            let procs = cell.point.layout.procs();
            if procs == 0 || procs > self.ranks {
                let problem =
                    format!("is {}, expected 1 to {} (ranks)", cell.point.layout, self.ranks);
                return Err((format!("cells[{index}].procs"), problem));
            }
            let checked = cell.method.check_collective(cell.point.collective);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::document;

    /// A point's fields stand among those of the cell, and are named in errors as these are.
    #[test]
    fn errors_name_the_field_of_a_point() {
        let point = Point::new(crate::Collective::Bcast, "4x2".parse().unwrap(), 64);
        let cells = vec![Cell { point, method: Method::Default }];
        let plan = Plan { seed: 1, ranks: 8, cells, visits: Vec::new() };
        let text = document::text(&plan).unwrap();
        assert_eq!(document::parse::<Plan>(&text, Path::new("p")).unwrap(), plan);
        for (right, wrong, wanted) in [
            ("\"bcast\"", "\"bcats\"", "field cells[0].collective: unknown variant `bcats`"),
            ("\"4x2\"", "\"4y2\"", "field cells[0].procs: "),
            ("\"4x2\"", "true", "field cells[0].procs: invalid type: boolean"),
            ("64", "-64", "field cells[0].bytes: invalid value"),
            ("\"bytes\"", "\"byte\"", "field cells[0]: missing field `bytes`"),
        ] {
            let text = text.replace(right, wrong);
            let error = document::parse::<Plan>(&text, Path::new("p")).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
