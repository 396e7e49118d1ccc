//! Measures what could still change a decision: batch after batch, each planned from what the
//! ones before it showed.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use records::{
    Method, Point,
    decisions::Decision,
    document,
    observation::CollectiveCall,
    plan::{Cell, Plan},
    record,
    summary::Regret,
};
use verification::{
    Weights,
    drift::steadied,
    focus::{self, Batch, Focus, START_SECONDS},
    plan::{self, FEWEST_SIZES, Grid},
    samples::Samples,
};

use crate::{
    site::{ranks::Site, run_directory::RunDirectory},
    stages::{
        deciding::judged_models,
        judging,
        measurements::files,
        measuring::{self, expectation, predictors},
        source::Source,
    },
};

/// Measures within about `seconds`, or goes on doing so; tells the regret that is left.
///
/// # Errors
/// A job fails; the records are kept.
pub fn measure(
    run: &RunDirectory,
    site: &Site,
    source: &Source,
    grid: &Grid,
    seconds: f64,
    seed: u64,
) -> Result<()> {
    let predictors = predictors(source)?;
    let expected = |cell: &Cell| expectation(&predictors, cell);
    let cells = cells(grid, seconds, &expected);
    let wanted = decided_by_models(source, &cells)?;
    let mut rows: Vec<CollectiveCall> = Vec::new();
    let mut spent = 0.0;
    for number in 1.. {
        let files = files(run, number);
        if !files.plan.exists() {
            let seen = Samples::gather(&steadied(rows.clone()));
            let focus = Focus::new(&cells, &expected, &seen).weighing(grid.weights.clone());
            let batch = focus.wanting(wanted.iter().copied());
            let batch = batch.next(seconds - spent - START_SECONDS);
            tell(&batch, number);
            if batch.visits.is_empty() {
                break;
            }
            let seed = seed.wrapping_add(number as u64);
            document::write(&files.plan, &batch.plan(cells.clone(), grid.ranks, seed))?;
        }
        if !files.done.exists() {
            let plan: Plan = document::read(&files.plan)?;
            let left = (seconds - spent).max(START_SECONDS) * measuring::PATIENCE;
            let deadline = Duration::from_secs_f64(left);
            measuring::measure(site, &plan, &files.plan, &files.record, deadline, &[])?;
            document::write_text(&files.done, "")?;
        }
        let made = record::read::<CollectiveCall>(&files.record)?.rows;
        spent += START_SECONDS + focus::spent(&made);
        rows.extend(made);
    }
    Ok(())
}

fn tell(Batch { visits, expected_seconds, regret }: &Batch, number: usize) {
    let Regret { mean, greatest } = regret;
    let expected =
        format!("expected regret {:.1} %, greatest {:.0} %", mean * 100.0, greatest * 100.0);
    match visits.len() {
        0 => eprintln!("plan: {expected}; nothing more to measure"),
        visits => {
            eprintln!("plan {number}: {expected}; {visits} visits, about {expected_seconds:.0} s");
        }
    }
}

/// What is known of these cells after all `rows` that a run has measured, in their order; the regret is
/// weighted.
///
/// # Errors
/// The models have no parameters.
pub fn known(
    rows: Vec<CollectiveCall>,
    cells: &[Cell],
    source: &Source,
    weights: &Weights,
) -> Result<Focus> {
    let predictors = predictors(source)?;
    let expected = |cell: &Cell| expectation(&predictors, cell);
    let seen = Samples::gather(&steadied(rows));
    Ok(Focus::new(cells, &expected, &seen).weighing(weights.clone()))
}

/// Every method at every point; every second size where the defaults alone would take half of the
/// time.
fn cells(grid: &Grid, seconds: f64, expected: plan::Expectation<'_>) -> Vec<Cell> {
    if !grid.weights.are_equal() {
        return heaviest(grid, seconds, expected);
    }
    let mut sizes = grid.sizes.clone();
    loop {
        let cells = plan::cells(grid, &sizes);
        let defaults = plan::defaults_seconds(&cells, expected);
        let coarser = plan::every_second(&sizes);
        if defaults <= seconds / 2.0 || coarser.len() < FEWEST_SIZES {
            return cells;
        }
        eprintln!(
            "plan: message sizes thinned from {} to {}: the budget is too short for all",
            sizes.len(),
            coarser.len()
        );
        sizes = coarser;
    }
}

/// Every method at the points where an application spends most; the lightest points left out where
/// the defaults alone would take half of the time.
fn heaviest(grid: &Grid, seconds: f64, expected: plan::Expectation<'_>) -> Vec<Cell> {
    let all = grid.weights.points();
    let mut count = all;
    loop {
        let (weights, share) = grid.weights.heaviest(count);
        let grid = Grid { weights, ..grid.clone() };
        let cells = plan::cells(&grid, &grid.sizes);
        let fits = plan::defaults_seconds(&cells, expected) <= seconds / 2.0;
        if fits || count <= FEWEST_SIZES {
            if count < all {
                eprintln!(
                    "plan: {count} of {all} points are measured, at which {:.0} % of the time is \
                     spent: the budget is too short for all",
                    share * 100.0
                );
            }
            return cells;
        }
        count -= count.div_ceil(8);
    }
}

/// The cells that the models decide for: measured too, so that their penalty can be told.
fn decided_by_models(source: &Source, cells: &[Cell]) -> Result<Vec<u32>> {
    let decisions = judging::decisions(source, cells, &judged_models())?;
    let decided: BTreeSet<(Point, &Method)> = decisions
        .decisions
        .iter()
        .map(|Decision { collective, procs, bytes, method, .. }| {
            (Point { collective: *collective, procs: *procs, bytes: *bytes }, method)
        })
        .collect();
    let is_decided = |cell: &Cell| decided.contains(&(cell.point(), &cell.method));
    let indexed = cells.iter().zip(0..).filter(|(cell, _)| is_decided(cell));
    Ok(indexed.map(|(_, index)| index).collect())
}
