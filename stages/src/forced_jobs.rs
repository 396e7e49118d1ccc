//! Plans with methods that are forced for a whole job: a job for each, all in turns, and one record.
//!
//! A library that cannot change its algorithms within a job (Intel MPI) reads them when one starts, an
//! algorithm for each collective. So a plan is parted: what needs nothing forced is one job, and the
//! first method of every collective another, the second ones the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use records::{
    Collective, FileError, Method, document,
    observation::CollectiveCall,
    plan::{Cell, Plan},
    record::{self, Writer},
};

use crate::natives::{self, Natives};
use site::ranks::{JobSetting, Site};

/// A part of a plan that one job makes.
#[derive(Debug)]
pub struct PlanPart {
    plan: Plan,
    /// Of each of its visits, the index in the whole plan.
    visits: Vec<u32>,
    /// What the job is started with.
    environment: BTreeSet<(String, String)>,
}

/// The parts of a plan, in the order in which they begin; nothing where one job makes all of it.
pub fn parts(site: &Site, plan: &Plan) -> Option<Vec<PlanPart>> {
    parts_with(natives::of_site(site)?, plan)
}

/// What a job must be started with to run a cell, where it can't be forced within the job.
fn forced(natives: Natives, cell: &Cell) -> Option<Vec<(String, String)>> {
    match &cell.method {
        Method::Native(native) => natives.for_a_whole_job(cell.point, native),
        _ => None,
    }
}

/// How often each part's job is started at most: what a machine passes through is to meet all.
const TURNS: usize = 2;
/// Fewer visits than this are not parted any further.
const FEWEST_VISITS: usize = 8;

fn parts_with(natives: Natives, plan: &Plan) -> Option<Vec<PlanPart>> {
    // Of each collective, its forced methods get numbers from 1 on; 0 is nothing forced.
    let mut numbers: BTreeMap<(Collective, &Method), usize> = BTreeMap::new();
    let mut next: BTreeMap<Collective, usize> = BTreeMap::new();
    let mut of_cells = Vec::new();
    for cell in &plan.cells {
        let environment = forced(natives, cell);
        let number = environment.as_ref().map_or(0, |_| {
            *numbers.entry((cell.point.collective, &cell.method)).or_insert_with(|| {
                let next = next.entry(cell.point.collective).or_default();
                *next += 1;
                *next
            })
        });
        of_cells.push((number, environment.unwrap_or_default()));
    }
    // The cells count, not the visits: our program refuses what it can't run, visited or not.
    if of_cells.iter().all(|(number, _)| *number == 0) {
        return None;
    }
    let turns = if plan.visits.len() >= TURNS * FEWEST_VISITS { TURNS } else { 1 };
    let in_turn = plan.visits.len().div_ceil(turns).max(1);
    let mut parts: BTreeMap<(usize, usize), PlanPart> = BTreeMap::new();
    for (visit, index) in plan.visits.iter().zip(0_u32..) {
        let (number, environment) = &of_cells[visit.cell as usize];
        let part = parts.entry((index as usize / in_turn, *number)).or_insert_with(|| PlanPart {
            plan: Plan { visits: Vec::new(), ..plan.clone() },
            visits: Vec::new(),
            environment: BTreeSet::new(),
        });
        part.plan.visits.push(visit.clone());
        part.visits.push(index);
        part.environment.extend(environment.iter().cloned());
    }
    Some(parts.into_values().map(PlanPart::thinned).collect())
}

impl PlanPart {
    /// With the cells alone that it visits: the program refuses what it is not to run.
    fn thinned(mut self) -> Self {
        let used: BTreeSet<u32> = self.plan.visits.iter().map(|visit| visit.cell).collect();
        let places: BTreeMap<u32, u32> = used.iter().copied().zip(0..).collect();
        let cells = used.iter().map(|&cell| self.plan.cells[cell as usize].clone()).collect();
        self.plan.cells = cells;
        self.plan.visits.iter_mut().for_each(|visit| visit.cell = places[&visit.cell]);
        self
    }
}

/// Runs the job of a plan, with the plan's file and the record's.
pub type RunJob<'a> = dyn Fn(&Plan, &Path, &Path, &[JobSetting]) -> Result<()> + 'a;

/// Runs the parts that have not run, and makes one record of theirs.
///
/// # Errors
/// A job fails, whose record is kept; a file cannot be read or written.
pub fn run(
    parts: &[PlanPart],
    (plan, record): (&Path, &Path),
    settings: &[JobSetting],
    job: &RunJob<'_>,
) -> Result<()> {
    if record.exists() {
        return Ok(());
    }
    let beside = |path: &Path, number: usize| -> PathBuf {
        let mut name = OsString::from(path.file_stem().unwrap_or_default());
        name.push(format!(".part-{number}."));
        name.push(path.extension().unwrap_or_default());
        path.with_file_name(name)
    };
    let mut records = Vec::new();
    for (part, number) in parts.iter().zip(1..) {
        let (plan, record) = (beside(plan, number), beside(record, number));
        document::write(&plan, &part.plan)?;
        let forced = part.environment.iter();
        let forced = forced.map(|(name, value)| JobSetting::Variable(name.clone(), value.into()));
        let settings: Vec<JobSetting> = settings.iter().cloned().chain(forced).collect();
        job(&part.plan, &plan, &record, &settings)?;
        records.push(record);
    }
    merge(parts, &records, record)
}

/// One record of all, whole or not there.
fn merge(parts: &[PlanPart], records: &[PathBuf], whole: &Path) -> Result<()> {
    let unfinished = whole.with_extension("merging");
    if unfinished.exists() {
        fs::remove_file(&unfinished).map_err(|e| FileError::io(&unfinished, "remove", &e))?;
    }
    let mut writer: Option<Writer<CollectiveCall>> = None;
    for (part, path) in parts.iter().zip(records) {
        let record = record::read::<CollectiveCall>(path)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(Writer::open(&unfinished, &record.header)?),
        };
        for mut row in record.rows {
            row.visit = *part.visits.get(row.visit as usize).ok_or_else(|| {
                let problem = format!(
                    "is {}; expected a visit of the job's plan, which has {}",
                    row.visit,
                    part.visits.len()
                );
                FileError::new(path, problem).in_field("visit")
            })?;
            writer.append(&row)?;
        }
    }
    drop(writer);
    fs::rename(&unfinished, whole).map_err(|e| FileError::io(whole, "write", &e))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use libraries::{MpiLibrary, intel::IntelLibrary, openmpi::OpenMpiLibrary};
    use records::{Point, plan::Visit};

    use super::*;

    fn plan(library: &str) -> Plan {
        let methods = ["default", "own:binomial", "native:LIB:binomial", "native:LIB:k-nomial"];
        let cell = |collective, method: &str| Cell {
            point: Point::flat(collective, 4, 64),
            method: method.replace("LIB", library).parse().unwrap(),
        };
        let of = |collective| methods.map(|method| cell(collective, method));
        let cells = [of(Collective::Bcast), of(Collective::Reduce)].concat();
        let visit = |cell| Visit { cell, warmups: 1, repetitions: 2, calls: 1 };
        let visits = (0..cells.len() as u32).rev().chain(0..cells.len() as u32).map(visit);
        Plan { seed: 1, ranks: 4, visits: visits.collect(), cells }
    }

    #[test]
    fn what_is_forced_for_a_job_has_a_job_in_each_turn() {
        let natives = Natives { library: &IntelLibrary as &dyn MpiLibrary, version: (2021, 19) };
        let whole = plan("intel");
        let parts = parts_with(natives, &whole).unwrap();
        assert_eq!(parts.len(), 2 * 3, "{parts:#?}");
        assert!(parts[0].environment.is_empty());
        assert_eq!(parts[1].environment.len(), 2, "one for each collective");
        let mut seen: Vec<u32> = Vec::new();
        for part in &parts {
            for (visit, &index) in part.plan.visits.iter().zip(&part.visits) {
                let cell = &part.plan.cells[visit.cell as usize];
                assert_eq!(cell, &whole.cells[whole.visits[index as usize].cell as usize]);
                let is_native = cell.method.is_native();
                assert_eq!(is_native, !part.environment.is_empty());
            }
            seen.extend(&part.visits);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn a_job_is_not_told_of_forced_methods_that_it_does_not_visit() {
        let natives = Natives { library: &IntelLibrary as &dyn MpiLibrary, version: (2021, 19) };
        let mut whole = plan("intel");
        whole.visits.retain(|visit| visit.cell < 2);
        let parts = parts_with(natives, &whole).unwrap();
        assert!(parts.len() == 1 && parts[0].environment.is_empty(), "{parts:#?}");
        assert_eq!(parts[0].plan.cells[..], whole.cells[..2]);
    }

    #[test]
    fn what_is_forced_within_a_job_is_one_job() {
        let natives = Natives { library: &OpenMpiLibrary as &dyn MpiLibrary, version: (4, 1) };
        assert!(parts_with(natives, &plan("openmpi")).is_none());
    }

    /// Open MPI's allgatherv beside collectives that need no job of their own.
    #[test]
    fn what_cannot_be_forced_within_a_job_has_jobs_of_its_own() {
        let natives = Natives { library: &OpenMpiLibrary as &dyn MpiLibrary, version: (4, 1) };
        let mut whole = plan("openmpi");
        for (cell, method) in whole.cells[4..].iter_mut().zip(["default", "bruck", "ring"]) {
            cell.point.collective = Collective::Allgatherv;
            if method != "default" {
                cell.method = format!("native:openmpi:{method}").parse().unwrap();
            }
        }
        let parts = parts_with(natives, &whole).unwrap();
        let forced = parts.iter().filter(|part| !part.environment.is_empty());
        for part in forced.clone() {
            assert!(
                part.plan.cells.iter().all(|cell| cell.point.collective == Collective::Allgatherv)
            );
        }
        assert_eq!((parts.len(), forced.count()), (2 * 3, 2 * 2), "{parts:#?}");
    }
}
