//! The same plan measured with other roots than rank 0, and what decisions for root 0 cost there.

use std::path::{Path, PathBuf};

use anyhow::Result;
use choosing::samples::Samples;
use rand::{SeedableRng, seq::IndexedRandom};
use rand_pcg::Pcg64;
use records::{Collective, Root, document, penalty::Penalties, plan::Plan, record};
use timing::scheme::TimingScheme;
use verification::{functions::DecisionFunction, penalty};

use crate::{headers::platform, links};
use site::{run_directory::RunDirectory, usage};

/// A root in a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedRoot {
    This(Root),
    /// One of the job's ranks, drawn.
    Random,
}

impl WantedRoot {
    /// Rank 0, by which is decided.
    pub const ZERO: WantedRoot = WantedRoot::This(Root::Rank(0));
}

/// Whether other roots than 0 mean anything for any of these collectives.
///
/// # Errors
/// None of them has a root.
pub fn check_wanted(wanted: &[WantedRoot], collectives: &[Collective]) -> Result<()> {
    if *wanted != [WantedRoot::ZERO] && !collectives.iter().any(|of| of.is_rooted()) {
        usage!("--roots: none of the collectives has a root; leave it out");
    }
    Ok(())
}

impl std::str::FromStr for WantedRoot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "random" => Ok(WantedRoot::Random),
            _ => text
                .parse()
                .map(WantedRoot::This)
                .map_err(|problem| format!("{problem}, or random")),
        }
    }
}

/// The roots beside rank 0 that are measured in a job of so many ranks, each once. What is drawn is a
/// rank that is not named beside it, where there is one.
///
/// # Errors
/// A rank is none of the job's.
pub fn beside_zero(wanted: &[WantedRoot], ranks: u32, seed: u64) -> Result<Vec<Root>> {
    let mut roots = vec![Root::default()];
    for root in wanted {
        let WantedRoot::This(root) = *root else { continue };
        check(root, ranks)?;
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    let mut random = Pcg64::seed_from_u64(seed);
    for _ in wanted.iter().filter(|root| **root == WantedRoot::Random) {
        let is_free = |rank: &u32| roots.iter().all(|root| root.among(ranks) != *rank);
        let free: Vec<u32> = (0..ranks).filter(is_free).collect();
        roots.extend(free.choose(&mut random).map(|rank| Root::Rank(*rank)));
    }
    roots.remove(0);
    Ok(roots)
}

/// What is to be known of a tuning whose batches and turns had these roots; nothing of root 0 alone.
pub fn in_turn(roots: &[Root]) -> Option<String> {
    let names: Vec<String> = roots.iter().map(Root::to_string).collect();
    (roots.len() > 1).then(|| {
        format!(
            "calls took the roots {} in turns: one method was chosen for all of them",
            names.join(", ")
        )
    })
}

/// Whether a job of so many ranks has this root.
///
/// # Errors
/// It has not.
pub fn check(root: Root, ranks: u32) -> Result<()> {
    match root {
        Root::Rank(rank) if rank >= ranks => {
            usage!("root {rank}, but a job has ranks 0 to {}", ranks - 1)
        }
        _ => Ok(()),
    }
}

/// Whether calls with another root than 0, which `flag` asks for, can be timed so.
///
/// # Errors
/// They can't.
pub fn check_timing(timing: TimingScheme, flag: &str) -> Result<()> {
    match timing {
        TimingScheme::Bcast => usage!("--timing bcast measures only root 0; leave out {flag}"),
        _ => Ok(()),
    }
}

/// The part of a plan in which there is a root.
pub fn rooted(plan: &Plan) -> Plan {
    let is_rooted = |cell: u32| plan.cells[cell as usize].point.collective.is_rooted();
    let mut visits = plan.visits.clone();
    visits.retain(|visit| is_rooted(visit.cell));
    Plan { visits, ..plan.clone() }
}

/// Where a root's plan and record lie.
pub fn files(run: &RunDirectory, root: Root) -> (PathBuf, PathBuf) {
    (run.file(&format!("plan-root-{root}.json")), run.file(&format!("{RECORD}{root}.csv")))
}

const RECORD: &str = "measurements-root-";

/// The roots beside rank 0 of which a run has a record; `last` comes at the end.
fn measured(run: &RunDirectory) -> Result<Vec<Root>> {
    let root_of = |record: PathBuf| {
        let name = record.file_stem()?.to_str()?.strip_prefix(RECORD)?;
        name.parse::<Root>().ok()
    };
    let mut roots: Vec<Root> = run.records(&[RECORD])?.into_iter().filter_map(root_of).collect();
    roots.sort_by_key(|root| root.among(u32::MAX));
    Ok(roots)
}

/// What decisions cost with a root.
pub struct RootPenalties {
    pub root: Root,
    pub penalties: Penalties,
}

/// What it costs with every other measured root to decide as for root 0; written down for each.
///
/// # Errors
/// A record can't be read.
pub fn judge(run: &RunDirectory, functions: &[DecisionFunction]) -> Result<Vec<RootPenalties>> {
    let of_root = |root: Root| {
        let path = files(run, root).1;
        let record = record::read(&path)?;
        let samples = Samples::gather(&record.rows, libraries::ran_as_asked);
        let decided_there = |function: &DecisionFunction| {
            let decided = function.decided.iter();
            let there = decided.filter(|(point, _)| samples.at(**point).next().is_some());
            let decided = there.map(|(point, method)| (*point, method.clone())).collect();
            DecisionFunction { name: function.name.clone(), decided }
        };
        let functions: Vec<DecisionFunction> = functions.iter().map(decided_there).collect();
        let platform = platform(&record.header, &path)?;
        let timing = record.header.get("timing").cloned().unwrap_or_default();
        let links = links::judge(run)?;
        let penalties = penalty::penalties(&samples, &functions, links, platform, &timing);
        run.write(&run.file(&format!("penalty-root-{root}.json")), &penalties)?;
        Ok(RootPenalties { root, penalties })
    };
    measured(run)?.into_iter().map(of_root).collect()
}

/// The plan of a root: the one that is there, or what has a root of another.
///
/// # Errors
/// It can't be read or written.
pub fn planned(path: &Path, of_zero: &Plan) -> Result<Plan> {
    if path.exists() {
        return Ok(document::read(path)?);
    }
    let plan = rooted(of_zero);
    document::write(path, &plan)?;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{Method, Point, plan};

    #[test]
    fn each_root_is_measured_once_and_what_is_drawn_is_another() {
        let wanted = |text: &str| -> Vec<WantedRoot> {
            text.split(',').map(|root| root.parse().unwrap()).collect()
        };
        for seed in 0..20 {
            let roots = beside_zero(&wanted("random,0,1,last,1"), 4, seed).unwrap();
            assert_eq!(roots, [Root::Rank(1), Root::Last, Root::Rank(2)]);
            let [Root::Rank(drawn)] = beside_zero(&wanted("random"), 4, seed).unwrap()[..] else {
                panic!("no rank was drawn")
            };
            assert!((1..4).contains(&drawn));
        }
        assert_eq!(beside_zero(&wanted("0,last,random"), 2, 1).unwrap(), [Root::Last]);
        let error = beside_zero(&wanted("4"), 4, 1).unwrap_err().to_string();
        assert!(error.contains("ranks 0 to 3"), "{error}");
        assert!("first".parse::<WantedRoot>().unwrap_err().ends_with("or last, or random"));
    }

    #[test]
    fn a_plan_for_another_root_keeps_what_has_a_root() {
        let cell = |collective| plan::Cell {
            point: Point::flat(collective, 4, 8),
            method: Method::Default,
        };
        let visit = |cell| plan::Visit { cell, warmups: 1, repetitions: 3, calls: 1 };
        let cells = [Collective::Allreduce, Collective::Bcast, Collective::Reduce].map(cell);
        let plan =
            Plan { seed: 1, ranks: 4, cells: cells.into(), visits: [0, 1, 2, 0].map(visit).into() };
        let of_root = rooted(&plan);
        assert_eq!(of_root.visits, [visit(1), visit(2)]);
        assert_eq!(of_root.cells, plan.cells);
    }
}
