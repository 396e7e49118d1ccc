//! Fewer points where the time is short.

use records::plan::Cell;

use super::{Expectation, FEWEST_SIZES, Grid, cells, defaults_seconds, sizes::fewer};
use crate::costs::JobCosts;

/// Share of the time that the defaults alone may take.
const DEFAULTS_SHARE: f64 = 0.5;

/// Every method at as many of a grid's points as `seconds` allow, with what was left out and why.
///
/// Where the defaults alone would take half of the time, that is about every second size; where an
/// application says which points matter, those at which it spends most.
pub fn thinned(
    grid: &Grid,
    seconds: f64,
    expected: Expectation<'_>,
    costs: &JobCosts,
) -> (Vec<Cell>, Vec<String>) {
    let times_too_long =
        |cells: &[Cell]| defaults_seconds(cells, expected, costs) / (DEFAULTS_SHARE * seconds);
    match grid.weights.are_equal() {
        true => coarser(grid, &times_too_long),
        false => heaviest(grid, &|cells| times_too_long(cells) <= 1.0),
    }
}

/// About half of the sizes, until what is left fits; what the whole would have needed, and what even the
/// fewest lack, is said: a slow network may need many times the budget.
fn coarser(grid: &Grid, times_too_long: &dyn Fn(&[Cell]) -> f64) -> (Vec<Cell>, Vec<String>) {
    let mut notes = Vec::new();
    let mut sizes = grid.sizes.clone();
    loop {
        let cells = cells(grid, &sizes);
        let times = times_too_long(&cells);
        let coarser = fewer(&grid.sizes, sizes.len());
        if times <= 1.0 || coarser.len() < FEWEST_SIZES {
            if times > 1.0 {
                notes.push(format!(
                    "even the coarsest grid ({} message sizes) needs about {times:.1} times the budget; \
                     points that are not reached will be listed",
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use records::{Collective, Layout, Method, Point};

    use super::*;
    use crate::{Weights, plan::MethodsOf};

    fn grid(weights: Weights) -> Grid {
        Grid {
            ranks: 8,
            collectives: vec![Collective::Bcast],
            layouts: vec![Layout::flat(8)],
            sizes: (0..16).map(|power| 1 << power).collect(),
            segments: vec![0],
            methods: MethodsOf::new(|_, _| Vec::new()),
            weights,
            others: vec![(Collective::Bcast, "native:openmpi:binomial".parse().unwrap())],
            rank_bytes: None,
        }
    }

    /// A second for each call.
    fn expected(_: &Cell) -> Vec<Option<f64>> {
        vec![Some(1.0)]
    }

    fn sizes(cells: &[Cell]) -> Vec<u64> {
        let defaults = cells.iter().filter(|cell| cell.method == Method::Default);
        defaults.map(|cell| cell.point.bytes).collect()
    }

    #[test]
    fn half_of_the_sizes_is_left_out_until_the_defaults_take_half_of_the_time() {
        let of = |seconds| {
            let (cells, notes) =
                thinned(&grid(Weights::default()), seconds, &expected, &JobCosts::expected(0.0));
            (sizes(&cells).len(), notes.len())
        };
        assert_eq!(of(70.0), (16, 0), "two calls of each are 32 s");
        assert_eq!(of(60.0), (9, 1));
        assert_eq!(of(1.0), (5, 3), "and no fewer than that, which is said");
    }

    #[test]
    fn what_an_application_spends_least_on_is_left_out_first() {
        let point = |bytes| Point::flat(Collective::Bcast, 8, bytes);
        let spent: BTreeMap<Point, f64> =
            (0..16).map(|power| (point(1 << power), f64::from(power + 1))).collect();
        let (cells, notes) = thinned(
            &grid(Weights::from_seconds(&spent)),
            40.0,
            &expected,
            &JobCosts::expected(0.0),
        );
        let kept = sizes(&cells);
        assert!(kept.len() < 11 && kept.len() > 4, "{kept:?}");
        assert!(kept.iter().all(|bytes| *bytes >= 1 << (16 - kept.len())), "{kept:?}");
        assert!(notes[0].starts_with(&format!("{} of 16 points", kept.len())), "{notes:?}");
        assert_eq!(
            thinned(
                &grid(Weights::from_seconds(&spent)),
                70.0,
                &expected,
                &JobCosts::expected(0.0)
            )
            .1,
            [""; 0]
        );
    }
}
