//! What is worth measuring on once everything has been seen.

use std::collections::BTreeMap;

use choosing::samples::Samples;
use records::{
    Method, Point,
    plan::{Cell, Plan},
};

use super::{Costed, Planned};

/// Further rounds of what a first plan visited, without the methods whose median there was more than
/// `beyond` times the least. The default stays, and what the first plan did not reach.
pub fn hopeful(first: &Plan, seen: &Samples, beyond: f64, rounds: u32) -> Planned {
    let median = |cell: &Cell| seen.get(cell.point, &cell.method)?.median();
    let mut least: BTreeMap<Point, f64> = BTreeMap::new();
    for (cell, seconds) in first.cells.iter().filter_map(|cell| Some((cell, median(cell)?))) {
        let least = least.entry(cell.point).or_insert(seconds);
        *least = least.min(seconds);
    }
    let has_chance = |cell: &&Cell| {
        cell.method == Method::Default
            || median(cell).is_none_or(|seconds| seconds <= beyond * least[&cell.point])
    };
    let cells: Vec<Cell> = first.cells.iter().filter(has_chance).cloned().collect();
    let note = format!(
        "{} of {} cells took more than {beyond} times the best method's time: they are not measured any further",
        first.cells.len() - cells.len(),
        first.cells.len()
    );
    let costed = Costed::new(cells, &|cell| vec![median(cell)]);
    let rounds = costed.all(rounds);
    // Another order than the first plan's.
    costed.planned(first.ranks, rounds, first.seed.wrapping_add(1), vec![note])
}

#[cfg(test)]
mod tests {
    use records::{
        Collective,
        observation::{CollectiveCall, ObservationStatus},
        plan::Visit,
    };

    use super::*;

    #[test]
    fn what_is_far_from_the_best_is_given_up_and_the_default_and_the_unseen_are_not() {
        let methods = [
            "default",
            "native:openmpi:linear",
            "native:openmpi:binomial",
            "native:openmpi:pipeline",
        ];
        let cell = |name: &str| Cell {
            point: Point::flat(Collective::Bcast, 4, 8),
            method: name.parse().unwrap(),
        };
        let cells: Vec<Cell> = methods.iter().map(|name| cell(name)).collect();
        let visit = |cell| Visit { cell, warmups: 1, repetitions: 4, calls: 1 };
        let first = Plan { seed: 3, ranks: 4, visits: (0..4).map(visit).collect(), cells };
        let call = |(visit, seconds): (u32, f64)| CollectiveCall {
            visit,
            point: Point::flat(Collective::Bcast, 4, 8),
            method: methods[visit as usize].parse().unwrap(),
            ran: String::new(),
            repetition: 0,
            first_start_seconds: 0.0,
            last_start_seconds: 0.0,
            seconds,
            status: ObservationStatus::Ok,
        };
        // Nothing was seen of the last one.
        let rows: Vec<CollectiveCall> = [(0, 5.0), (1, 1.0), (2, 1.31)].map(call).into();
        let seen = Samples::gather(&rows, libraries::ran_as_asked);
        let kept = |beyond| -> Vec<String> {
            let planned = hopeful(&first, &seen, beyond, 3);
            assert_eq!(planned.plan.visits.len(), 3 * planned.plan.cells.len());
            assert!(planned.notes[0].contains("of 4 cells"), "{:?}", planned.notes);
            planned.plan.cells.iter().map(|cell| cell.method.to_string()).collect()
        };
        assert_eq!(kept(1.3), [methods[0], methods[1], methods[3]]);
        assert_eq!(kept(1.4), methods);
    }
}
