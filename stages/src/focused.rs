//! Measures what could still change a decision, and tells what is known then.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use models::{Model, Predictor};
use records::{Method, Point, observation::CollectiveCall, plan::Cell};
use tuning::{
    JobCosts, Weights,
    measure::{self, MeasuringTask},
    plan::{Grid, left_out, thinned},
    state::TuningState,
};

use crate::{
    bench::ClusterBench,
    deciding::judged_models,
    judging,
    measurements::RecordedPlan,
    measuring::{expectations, expected_costs, predictors},
    source::CalibrationSource,
};

/// Measures what is in doubt of a grid, or goes on doing so, within about `seconds_left`. That is asked twice: how much is
/// compared is settled before the models decide, and what they took is not there for measuring.
///
/// # Errors
/// A job fails; the records are kept.
pub fn measure_doubtful(
    bench: &mut ClusterBench<'_, '_>,
    grid: &Grid,
    seconds_left: impl Fn() -> f64,
    seed: u64,
) -> Result<()> {
    let source = bench.source;
    let predictors = predictors(source)?;
    let expected = expectations(&predictors);
    let costs = expected_costs(&predictors);
    let (cells, notes) = thinned(grid, seconds_left(), &expected, &costs);
    notes.iter().for_each(|note| say!("plan: {note}"));
    let wanted = decided_by_models(source, &cells)?;
    let limits = limits(&source.predictor(Model::Refined)?, &cells);
    let task = MeasuringTask {
        cells: &cells,
        expected: &expected,
        limits: &limits,
        weights: &grid.weights,
        wanted: &wanted,
        ranks: grid.ranks,
        costs,
        seconds: seconds_left(),
        seed,
    };
    measure::run_batches(bench, &task)?;
    Ok(())
}

/// What jobs cost beside their calls, as the batches of a run tell it. Each has its rows and what it took.
///
/// # Errors
/// The models have no parameters.
pub fn costs(source: &CalibrationSource, batches: &[RecordedPlan]) -> Result<JobCosts> {
    let mut costs = expected_costs(&predictors(source)?);
    for RecordedPlan { took, record, .. } in batches {
        costs.take_in(*took, &record.rows);
    }
    Ok(costs)
}

/// What is known of these cells after all `rows` that were timed; the regret is weighted. Then what is known, too, of the sizes
/// between theirs that a plan has left out of `sizes`: what is believed there, and where the time did not last for the
/// default, rests on the models and on what was measured nearby. Nothing where no size was left out and every default was seen.
///
/// # Errors
/// The models have no parameters.
pub fn known(
    rows: Vec<CollectiveCall>,
    cells: &[Cell],
    sizes: &[u64],
    source: &CalibrationSource,
    weights: Weights,
) -> Result<(TuningState, Option<TuningState>)> {
    let seen = measure::without_drift_samples(rows);
    let predictors = predictors(source)?;
    let (expected, refined) = (expectations(&predictors), source.predictor(Model::Refined)?);
    let of = |cells: &[Cell], weights| {
        let state = TuningState::new(cells, &expected, &seen).with_weights(weights);
        state.with_limits(&limits(&refined, cells))
    };
    let left_out = left_out(cells, sizes);
    let defaults = |cell: &&Cell| cell.method == Method::Default;
    let is_seen = |cell: &Cell| seen.get(cell.point, &Method::Default).is_some();
    let is_all = left_out.is_empty() && cells.iter().filter(defaults).all(is_seen);
    let interpolated = (!is_all).then(|| of(&[cells, &left_out].concat(), Weights::default()));
    Ok((of(cells, weights), interpolated))
}

/// What no algorithm gets below at each point, by the network as it was calibrated; nothing where only
/// the algorithms' own constants are known, or where methods of shared memory are compared: it is one of messages.
fn limits(predictor: &Predictor, cells: &[Cell]) -> BTreeMap<Point, f64> {
    let shared = cells.iter().filter(|cell| cell.method.shares_memory());
    let shared: BTreeSet<Point> = shared.map(|cell| cell.point).collect();
    let limit = |cell: &Cell| Some((cell.point, predictor.limit(cell.point)?.seconds));
    let of_messages = cells.iter().filter(|cell| !shared.contains(&cell.point));
    of_messages.filter_map(limit).collect()
}

/// The cells that the models decide for: measured too, so that their penalty can be reported. None where they know
/// no method.
fn decided_by_models(source: &CalibrationSource, cells: &[Cell]) -> Result<Vec<u32>> {
    let candidates = judging::CandidateMethods::Loadable;
    let Some(decisions) = judging::decisions(source, cells, &judged_models(), candidates)? else {
        return Ok(Vec::new());
    };
    let decided: BTreeSet<(Point, &Method)> =
        decisions.choices.iter().map(|decision| (decision.point, &decision.method)).collect();
    let is_decided = |cell: &Cell| decided.contains(&(cell.point, &cell.method));
    let indexed = cells.iter().zip(0..).filter(|(cell, _)| is_decided(cell));
    Ok(indexed.map(|(_, index)| index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::Forms;
    use records::{Collective, Layout};

    #[test]
    fn the_limit_of_messages_bounds_no_methods_of_shared_memory() {
        let frodo = models::presets::preset("frodo").unwrap().measured;
        let predictor = Predictor::new(Model::Refined, Forms::Corrected, &frodo).unwrap();
        let layout: Layout = "8".parse().unwrap();
        let [short, long] =
            [64, 4096].map(|bytes| Point { collective: Collective::Bcast, layout, bytes });
        let cell = |point, method: &str| Cell { point, method: method.parse().unwrap() };
        let by_messages = [cell(short, "own:binomial"), cell(long, "own:binomial")];
        let all = limits(&predictor, &by_messages);
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), [short, long]);
        let shared = [&by_messages[..], &[cell(long, "own:shared-cells")]].concat();
        let left = limits(&predictor, &shared);
        assert_eq!(left.keys().copied().collect::<Vec<_>>(), [short]);
    }
}
