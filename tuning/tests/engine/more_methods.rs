//! What it costs to offer our own algorithms beside the library's, each as own and with its fan-outs: a
//! tuning of either goes on until nothing is worth measuring.

use std::{collections::BTreeMap, sync::LazyLock};

use models::{Forms, Model, Predictor, presets};
use records::{
    Algorithm, Collective, Layout, Method, Point, observation::CollectiveCall, plan::Cell,
};
use tuning::{
    Weights,
    plan::{Grid, MethodsOf, cells},
    state::spent_seconds,
};

use crate::{
    on_synthetic::penalties,
    synthetic::{SyntheticBench, SyntheticCluster},
    tuned::{TuningTask, mean_and_95th, tune},
};

/// The truth is what the refined forms say of this network, times a factor of each algorithm's own that
/// changes with the size.
static NETWORK: LazyLock<Predictor> = LazyLock::new(|| {
    let frodo = presets::preset("frodo").unwrap().measured;
    Predictor::new(Model::Refined, Forms::Corrected, &frodo).unwrap()
});

const COLLECTIVES: [Collective; 3] = [Collective::Bcast, Collective::Reduce, Collective::Allreduce];

const SEGMENTS: [u64; 4] = [0, 1 << 10, 8 << 10, 64 << 10];

fn natives(point: Point, segments: &[u64]) -> Vec<Method> {
    libraries::openmpi::methods(point.collective, segments, point.procs(), point.bytes)
}

/// Our own beside them, as far as they are candidates.
fn with_own(point: Point, segments: &[u64]) -> Vec<Method> {
    let mut all = natives(point, segments);
    for algorithm in Model::Refined.algorithms(point.collective) {
        for method in NETWORK.methods(point.collective, algorithm) {
            let cuts = NETWORK.segmented(point.collective, &method).unwrap();
            let segments = if cuts { segments } else { &[0] };
            let segments = segments.iter().filter(|&&bytes| bytes == 0 || bytes < point.bytes);
            all.extend(segments.map(|&bytes| method.clone().with_segment(bytes)).filter(|one| {
                Model::Refined.serves(point.collective, algorithm, point.procs())
                    && NETWORK.is_candidate(point, one).unwrap()
            }));
        }
    }
    all
}

fn modelled(cell: &Cell) -> Option<f64> {
    let method = match cell.method {
        Method::Default => {
            let segment_bytes = if cell.bytes < 8 << 10 { 0 } else { 64 << 10 };
            Method::Own { algorithm: Algorithm::Binomial, segment_bytes }
        }
        ref method => method.clone(),
    };
    NETWORK.predict_method_seconds(cell.point(), &method).ok()
}

fn truth(cell: &Cell) -> f64 {
    // What no form knows is no better than what the default takes.
    let seconds =
        modelled(cell).or_else(|| modelled(&Cell { method: Method::Default, ..cell.clone() }));
    let name = cell.method.algorithm().map_or("default", Algorithm::name);
    let phase = f64::from(name.bytes().map(u32::from).sum::<u32>() % 17);
    let factor = 0.2 * (phase + (cell.bytes as f64).log2() / 4.0).sin();
    seconds.unwrap() * factor.exp()
}

fn expected(cell: &Cell) -> Vec<Option<f64>> {
    let seconds = modelled(cell).filter(|_| cell.method != Method::Default);
    [0.9, 1.1].map(|factor| seconds.map(|seconds| seconds * factor)).into()
}

fn world(methods: MethodsOf, seed: u64) -> SyntheticCluster {
    let grid = Grid {
        ranks: 16,
        collectives: COLLECTIVES.into(),
        layouts: [5, 8, 16].map(Layout::flat).into(),
        sizes: (0..=20).step_by(4).map(|power| 1 << power).collect(),
        segments: SEGMENTS.into(),
        methods,
        weights: Weights::default(),
        others: Vec::new(),
        rank_bytes: None,
    };
    SyntheticCluster { cells: cells(&grid, &grid.sizes), truth, ..SyntheticCluster::new(seed) }
}

/// What a tuning takes until nothing is worth measuring.
struct TuningCost {
    /// Measured.
    seconds: f64,
    /// Of these for methods of ours that no model finds competitive.
    hopeless_seconds: f64,
    /// The mean against the best of the methods.
    penalty: f64,
}

fn cost(world: &SyntheticCluster, seed: u64) -> TuningCost {
    let task = TuningTask {
        cells: &world.cells,
        left_out: &[],
        expected: &expected,
        limits: &BTreeMap::new(),
        ranks: 16,
        costs: tuning::JobCosts::expected(0.0),
        measuring_seconds: 100.0 * world.exhaustive_seconds(),
        confirming_seconds: 1.0,
        seed,
    };
    let mut bench = SyntheticBench::new(world);
    let tuned = tune(&mut bench, &task).unwrap();
    let mut best: BTreeMap<Point, f64> = BTreeMap::new();
    let likely = |cell: &Cell| expected(cell)[0].unwrap_or(f64::INFINITY);
    for cell in &world.cells {
        let known = best.entry(cell.point()).or_insert(f64::INFINITY);
        *known = known.min(likely(cell));
    }
    let is_hopeless = |row: &&CollectiveCall| {
        let CollectiveCall { collective, layout, bytes, .. } = **row;
        let cell = Cell { collective, method: row.method.clone(), layout, bytes };
        let is_ours = row.method.to_string().starts_with("own:");
        is_ours && likely(&cell) > HOPELESS * best[&cell.point()]
    };
    let hopeless: Vec<CollectiveCall> = tuned.rows.iter().filter(is_hopeless).cloned().collect();
    TuningCost {
        seconds: spent_seconds(&tuned.rows),
        hopeless_seconds: spent_seconds(&hopeless),
        penalty: mean_and_95th(&penalties(world, &tuned.chosen())).0,
    }
}

/// Times the best that is expected: the truth here is off by at most a factor of 1.22 either way.
const HOPELESS: f64 = 3.0;

#[test]
#[ignore = "takes minutes: make bench"]
fn our_algorithms_cost_a_tuning_no_more_than_a_tenth() {
    const WORLDS: u64 = 4;
    let (mut seconds, mut penalty, mut hopeless) = ([0.0; 2], [0.0; 2], 0.0);
    for seed in 0..WORLDS {
        let worlds = [world(MethodsOf::new(natives), seed), world(MethodsOf::new(with_own), seed)];
        for (place, world) in worlds.iter().enumerate() {
            let cost = cost(world, seed);
            println!(
                "seed {seed}: {} cells, {:.2} s, mean penalty {:.4}; {:.3} s of ours for nothing",
                world.cells.len(),
                cost.seconds,
                cost.penalty,
                cost.hopeless_seconds
            );
            seconds[place] += cost.seconds;
            penalty[place] += cost.penalty / WORLDS as f64;
            hopeless += cost.hopeless_seconds;
        }
    }
    println!("natives, all: {seconds:.2?} s, mean penalties {penalty:.4?}; {hopeless:.3} s");
    assert!(seconds[1] < 1.1 * seconds[0], "{seconds:?}");
    assert!(penalty[1] < penalty[0] + 0.003, "{penalty:?}");
    assert!(hopeless < 0.01 * seconds[1], "{hopeless} of {seconds:?}");
}
