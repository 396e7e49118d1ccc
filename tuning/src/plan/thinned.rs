//! Fewer points where the time is short.

use records::plan::Cell;

use super::{Expectation, FEWEST_SIZES, Grid, cells, defaults_seconds, every_second};

/// Share of the time that the defaults alone may take.
const DEFAULTS_SHARE: f64 = 0.5;

/// Every method at as many of a grid's points as `seconds` allow, with what was left out and why.
///
/// Where the defaults alone would take half of the time, that is every second size; where an
/// application says which points matter, those at which it spends most.
pub fn thinned(grid: &Grid, seconds: f64, expected: Expectation<'_>) -> (Vec<Cell>, Vec<String>) {
    let times_too_long =
        |cells: &[Cell]| defaults_seconds(cells, expected) / (DEFAULTS_SHARE * seconds);
    match grid.weights.are_equal() {
        true => coarser(grid, &times_too_long),
        false => heaviest(grid, &|cells| times_too_long(cells) <= 1.0),
    }
}

/// Every second size, until what is left fits; what the whole would have needed, and what even the
/// fewest lack, is said: a slow network may need many times the budget.
fn coarser(grid: &Grid, times_too_long: &dyn Fn(&[Cell]) -> f64) -> (Vec<Cell>, Vec<String>) {
    let mut notes = Vec::new();
    let mut sizes = grid.sizes.clone();
    loop {
        let cells = cells(grid, &sizes);
        let times = times_too_long(&cells);
        let coarser = every_second(&sizes);
        if times <= 1.0 || coarser.len() < FEWEST_SIZES {
            if times > 1.0 {
                notes.push(format!(
                    "even these {} message sizes need about {times:.1} times the budget; what is not \
                     reached will be said",
                    sizes.len()
                ));
            }
            return (cells, notes);
        }
        notes.push(format!(
            "message sizes thinned from {} to {}: the budget is too short for all, which need about \
             {times:.1} times as much",
            sizes.len(),
            coarser.len()
        ));
        sizes = coarser;
    }
}

/// The points at which an application spends most; the lightest are left out until the others fit.
fn heaviest(grid: &Grid, fits: &dyn Fn(&[Cell]) -> bool) -> (Vec<Cell>, Vec<String>) {
    let all = grid.weights.points();
    let mut count = all;
    loop {
        let (weights, share) = grid.weights.heaviest(count);
        let grid = Grid { weights, ..grid.clone() };
        let cells = cells(&grid, &grid.sizes);
        if !fits(&cells) && count > FEWEST_SIZES {
            count -= count.div_ceil(8);
            continue;
        }
        let notes = (count < all).then(|| {
            format!(
                "{count} of {all} points are measured, at which {:.0} % of the time is spent: the \
                 budget is too short for all",
                share * 100.0
            )
        });
        return (cells, notes.into_iter().collect());
    }
}
