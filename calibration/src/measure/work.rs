//! What of the plan is left to do.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use records::{
    Collective, FileError, Method, Point, Root,
    job_nodes::JobNodes,
    observation::{CollectiveCall, ObservationStatus},
    plan::{Cell, Plan},
};
use timing::{
    operations::{UnevenBlocks, has_displacements},
    scheme::TimingScheme,
};

use super::{
    methods::{self, RunningLibrary},
    participant::CallingWay,
};
use crate::{Error, Result};

/// A visit that is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenVisit {
    /// Its index in the plan.
    pub index: u32,
    /// Calls to make first.
    pub warmups: u32,
    /// Observations that it lacks.
    pub repetitions: u32,
    /// The number of its next observation.
    pub next_repetition: u32,
}

/// The visits of a plan that are not done.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenWork {
    /// In the plan's order.
    pub visits: Vec<OpenVisit>,
    /// Observations in the plan, without warm-ups.
    pub planned: u64,
    /// Of these, observations in the record.
    pub done: u64,
}

impl OpenWork {
    /// Of a plan and the rows that earlier runs left in the record.
    ///
    /// A run that goes on with a record begins without connections and with cold caches, as the
    /// first run did, so that its first visit of every cell has a warm-up.
    ///
    /// # Errors
    /// The record was made by another plan.
    pub fn new(plan: &Plan, rows: &[CollectiveCall], path: &Path) -> Result<Self> {
        let mut seen: HashMap<u32, (u32, u32)> = HashMap::new();
        for row in rows {
            check_row(plan, row, path)?;
            let (judged, next) = seen.entry(row.visit).or_default();
            *judged += u32::from(!matches!(
                row.status,
                ObservationStatus::Warmup | ObservationStatus::Disturbed
            ));
            *next = (*next).max(row.repetition.saturating_add(1));
        }
        let mut work = OpenWork { visits: Vec::new(), planned: 0, done: 0 };
        let mut cold: HashSet<u32> = match rows {
            [] => HashSet::new(),
            _ => (0..plan.cells.len() as u32).collect(),
        };
        for (visit, index) in plan.visits.iter().zip(0..) {
            let (judged, next_repetition) = seen.get(&index).copied().unwrap_or_default();
            let done = judged.min(visit.repetitions);
            work.planned += u64::from(visit.repetitions);
            work.done += u64::from(done);
            let repetitions = visit.repetitions - done;
            if repetitions > 0 {
                let warmups = visit.warmups.max(u32::from(cold.remove(&visit.cell)));
                work.visits.push(OpenVisit { index, warmups, repetitions, next_repetition });
            }
        }
        Ok(work)
    }
}

fn check_row(plan: &Plan, row: &CollectiveCall, path: &Path) -> Result<()> {
    let planned = plan.visits.get(row.visit as usize).map(|visit| &plan.cells[visit.cell as usize]);
    let found = Cell { point: row.point, method: row.method.clone() };
    if planned == Some(&found) {
        return Ok(());
    }
    let describe = |cell: &Cell| {
        let Cell { point: Point { collective, layout, bytes }, method } = cell;
        format!("{collective} by {method} of {bytes} bytes on {}", layout.in_words())
    };
    let wanted = planned.map_or_else(|| "no such visit".to_owned(), describe);
    let problem = format!(
        "visit {} is {} here and {wanted} in the plan: the record belongs to another plan; name \
         another --record",
        row.visit,
        describe(&found)
    );
    Err(FileError::new(path, problem).in_field("visit").into())
}

/// Whether this job and this version can do what a plan asks for.
///
/// # Errors
/// The first thing that it cannot.
pub fn check_plan(
    plan: &Plan,
    ranks: u32,
    nodes: &JobNodes,
    way: &CallingWay,
    running: RunningLibrary,
    path: &Path,
) -> Result<()> {
    let fault =
        |field: String, problem: String| Error::from(FileError::new(path, problem).in_field(field));
    if plan.ranks != ranks {
        let problem = format!("is {}, but the job has {ranks} ranks", plan.ranks);
        return Err(fault("ranks".into(), problem));
    }
    let timing = way.scheme.timing;
    if timing == TimingScheme::Bcast && way.root != Root::default() {
        let problem = format!("the timing scheme bcast measures root 0, not {}", way.root);
        return Err(Error::Usage(problem));
    }
    for (index, cell) in plan.cells.iter().enumerate() {
        let field = |name: &str| format!("cells[{index}].{name}");
        nodes.members(cell.point.layout).map_err(|problem| fault(field("procs"), problem))?;
        if way.factors.is_some() && !UnevenBlocks::COLLECTIVES.contains(&cell.point.collective) {
            let problem = format!("is {}, which takes no factors", cell.point.collective);
            return Err(fault(field("collective"), problem));
        }
        if timing == TimingScheme::Bcast && cell.point.collective != Collective::Bcast {
            let problem =
                format!("is {}, but the timing scheme bcast is for bcast", cell.point.collective);
            return Err(fault(field("collective"), problem));
        }
        if timing == TimingScheme::Bcast && cell.point.layout.procs() < 2 {
            let problem = "is 1, but the timing scheme bcast needs a rank that confirms";
            return Err(fault(field("procs"), problem.into()));
        }
        let procs = cell.point.layout.procs();
        methods::check_supported(
            running,
            cell.point.collective,
            &cell.method,
            procs,
            cell.point.bytes,
        )
        .map_err(|error| fault(field("method"), error.to_string()))?;
        if cell.method == Method::Default
            && let Some(forced) = forced_for_all(plan, cell.point.collective, running)
        {
            let problem =
                format!("is the default, but the job's environment forces {forced} for all calls");
            return Err(fault(field("method"), problem));
        }
        if cell.point.bytes > i32::MAX as u64 {
            let problem =
                format!("is {}; one call moves at most {} bytes", cell.point.bytes, i32::MAX);
            return Err(fault(field("bytes"), problem));
        }
        let all = cell.point.bytes * u64::from(cell.point.layout.procs());
        if all > i32::MAX as u64 && has_displacements(cell.point.collective) {
            let problem = format!(
                "is {}; the blocks of {} together have at most {} bytes",
                cell.point.bytes,
                cell.point.collective,
                i32::MAX
            );
            return Err(fault(field("bytes"), problem));
        }
    }
    Ok(())
}

/// A method of the plan that all calls of a collective are forced to run, where there is one.
fn forced_for_all(plan: &Plan, collective: Collective, running: RunningLibrary) -> Option<&Method> {
    let methods = plan.cells.iter().filter(|cell| cell.point.collective == collective);
    methods.map(|cell| &cell.method).find(|method| match method {
        Method::Native(native) => running.is_forced_by_environment(collective, native),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{Layout, plan};
    use timing::scheme::Scheme;

    fn running() -> RunningLibrary {
        RunningLibrary::that_says("Open MPI v4.1.4")
    }

    fn plan() -> Plan {
        let cell = |bytes| Cell {
            point: Point::flat(Collective::Bcast, 4, bytes),
            method: Method::Default,
        };
        let visit = |cell| plan::Visit { cell, warmups: 0, repetitions: 3, calls: 1 };
        Plan {
            seed: 1,
            ranks: 4,
            cells: vec![cell(8), cell(16)],
            visits: [0, 1, 0].map(visit).into(),
        }
    }

    fn row(visit: u32, bytes: u64, repetition: u32, status: ObservationStatus) -> CollectiveCall {
        CollectiveCall {
            visit,
            point: Point::flat(Collective::Bcast, 4, bytes),
            method: Method::Default,
            ran: String::new(),
            repetition,
            first_start_seconds: 0.0,
            last_start_seconds: 0.0,
            seconds: 1.0,
            status,
        }
    }

    #[test]
    fn warm_ups_and_disturbed_ones_do_not_count_and_late_ones_do() {
        let rows = [
            row(0, 8, 0, ObservationStatus::Warmup),
            row(0, 8, 1, ObservationStatus::Late),
            row(1, 16, 0, ObservationStatus::Warmup),
            row(1, 16, 1, ObservationStatus::Ok),
            row(1, 16, 2, ObservationStatus::Warmup),
            row(1, 16, 3, ObservationStatus::Ok),
            row(1, 16, 4, ObservationStatus::Ok),
            row(2, 8, 0, ObservationStatus::Disturbed),
        ];
        let work = OpenWork::new(&plan(), &rows, Path::new("m.csv")).unwrap();
        let visit = |index, warmups, repetitions, next_repetition| OpenVisit {
            index,
            warmups,
            repetitions,
            next_repetition,
        };
        assert_eq!(work.visits, [visit(0, 1, 2, 2), visit(2, 0, 3, 1)]);
        assert_eq!((work.planned, work.done), (9, 4));
    }

    #[test]
    fn a_first_run_makes_the_plans_warm_ups() {
        let work = OpenWork::new(&plan(), &[], Path::new("m.csv")).unwrap();
        assert!(work.visits.iter().all(|visit| visit.warmups == 0 && visit.repetitions == 3));
    }

    #[test]
    fn a_record_of_another_plan_is_refused() {
        for row in [row(0, 16, 0, ObservationStatus::Ok), row(3, 8, 0, ObservationStatus::Ok)] {
            let error = OpenWork::new(&plan(), &[row], Path::new("m.csv")).unwrap_err();
            assert!(error.to_string().contains("another plan"), "{error}");
        }
    }

    fn one_node() -> JobNodes {
        JobNodes::new(&[0; 4])
    }

    #[test]
    fn what_cannot_be_done_is_said_with_its_place() {
        let path = Path::new("plan.json");
        let way = |timing| CallingWay {
            scheme: Scheme { timing, watched: false },
            root: Root::default(),
            factors: None,
        };
        let (bcast, global) = (way(TimingScheme::Bcast), way(TimingScheme::Global));
        let from_last = CallingWay { root: Root::Last, ..bcast.clone() };
        let uneven = CallingWay { factors: Some(vec![1.0; 4]), ..global.clone() };
        let of = |way| check_plan(&plan(), 4, &one_node(), way, running(), path);
        let error = of(&from_last).unwrap_err().to_string();
        assert!(error.contains("measures root 0, not last"), "{error}");
        let error = of(&uneven).unwrap_err().to_string();
        assert!(error.contains("cells[0].collective: is bcast, which takes no factors"), "{error}");
        check_plan(&plan(), 4, &one_node(), &bcast, running(), path).unwrap();
        let of = |plan: &Plan, ranks| {
            check_plan(plan, ranks, &one_node(), &global, running(), path).unwrap_err().to_string()
        };
        let error = of(&plan(), 8);
        assert!(error.contains("field ranks: is 4, but the job has 8"), "{error}");
        let mut other = plan();
        (other.cells[1].point.collective, other.cells[1].point.bytes) =
            (Collective::Gatherv, 1 << 30);
        other.cells[1].point.layout = Layout::flat(4);
        let error = of(&other, 4);
        assert!(error.contains("cells[1].bytes") && error.contains("together"), "{error}");
        let mut other = plan();
        other.cells[1].point.layout = "2x2".parse().unwrap();
        let error = of(&other, 4);
        let problem = "cells[1].procs: layout 2x2 is more than the job's nodes (1x4) hold";
        assert!(error.contains(problem), "{error}");
        let mut other = plan();
        other.cells[0].method = "mockup:scatter_as_bcast".parse().unwrap();
        let error = of(&other, 4);
        assert!(error.contains("cells[0].method") && error.contains("not bcast"), "{error}");
    }
}
