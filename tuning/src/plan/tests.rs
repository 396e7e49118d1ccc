use records::Algorithm;

use super::*;

fn grid() -> Grid {
    Grid {
        ranks: 8,
        collectives: vec![Collective::Bcast],
        layouts: [2, 4, 8].map(Layout::flat).into(),
        sizes: (0..21).map(|power| 1 << power).collect(),
        segments: vec![0, 1024, 8192],
        methods: MethodsOf::new(|point, segments| {
            libraries::openmpi::methods(point.collective, segments, point.procs(), point.bytes)
        }),
        weights: Weights::default(),
        others: Vec::new(),
        rank_bytes: None,
    }
}

const FAST: JobCosts = JobCosts::expected(0.0);

/// Linear costs p - 1 messages, everything else that is known one; k-chains are not known.
fn expected(cell: &Cell) -> Vec<Option<f64>> {
    let one = 1e-4 + cell.point.bytes as f64 * 1e-7;
    vec![match cell.method.algorithm().map(Algorithm::name) {
        Some("linear") => Some(one * f64::from(cell.point.layout.procs() - 1)),
        Some("k-chain") | None => None,
        Some(_) => Some(one),
    }]
}

#[test]
fn exhaustive_plans_visit_every_cell_in_every_round_in_an_order_fixed_by_the_seed() {
    let make = |seed| make(&grid(), Extent::Exhaustive { rounds: 3 }, seed, &expected, FAST);
    let planned = make(7);
    let mut visited = vec![0; planned.plan.cells.len()];
    planned.plan.visits.iter().for_each(|visit| visited[visit.cell as usize] += 1);
    let wanted = |cell: &Cell| match expected(cell)[0] {
        Some(seconds) if seconds < constants().very_short_seconds => 6,
        Some(_) => 3,
        // As slow as the slowest that is known there: linear.
        None if 1e-4 + cell.point.bytes as f64 * 1e-7
            < constants().very_short_seconds / f64::from(cell.point.layout.procs() - 1) =>
        {
            6
        }
        None => 3,
    };
    assert_eq!(visited, planned.plan.cells.iter().map(wanted).collect::<Vec<_>>());
    assert_eq!(planned, make(7));
    assert_ne!(planned.plan.visits, make(8).plan.visits);
    assert!(planned.notes.is_empty());
}

#[test]
fn a_budget_is_kept_by_leaving_out_the_hopeless_first_and_saying_so() {
    let budget = |seconds| make(&grid(), Extent::Within { seconds }, 1, &expected, FAST);
    let wide = budget(1e6);
    assert!(wide.plan.visits.len() >= wide.plan.cells.len() * *ROUNDS.end() as usize);
    let linear = |cell: &&Cell| cell.method.to_string() == "native:openmpi:linear";
    assert!(wide.plan.cells.iter().filter(linear).all(|cell| cell.point.layout.procs() == 2));
    assert!(wide.notes[0].contains("skipped"), "{:?}", wide.notes);
    let tight = budget(40.0);
    assert!(tight.expected_seconds <= 40.0 && tight.plan.cells.len() < wide.plan.cells.len());
    assert!(tight.notes[1].contains("thinned"), "{:?}", tight.notes);
    let defaults = |cell: &&Cell| cell.method == Method::Default;
    assert!(tight.plan.cells.iter().filter(defaults).count() >= 3 * 4);
}

/// With a latency of 1 ms the barriers around a call of 0.1 ms take 2 to 6 ms.
#[test]
fn barriers_count_in_a_budget() {
    let visits = |costs| -> usize {
        let within = |seconds| {
            let planned = make(&grid(), Extent::Within { seconds }, 1, &expected, costs);
            assert!(planned.expected_seconds <= seconds);
            planned.plan.visits.len()
        };
        [50.0, 60.0, 70.0, 80.0, 100.0, 120.0].map(within).iter().sum()
    };
    let (fast, slow) = (visits(FAST), visits(JobCosts::expected(1e-3)));
    assert!(slow < fast, "{slow} {fast}");
}

#[test]
fn an_impossible_budget_is_said() {
    let planned = make(&grid(), Extent::Within { seconds: 0.1 }, 1, &expected, FAST);
    assert!(
        planned.notes.last().unwrap().contains("even the coarsest grid"),
        "{:?}",
        planned.notes
    );
}
