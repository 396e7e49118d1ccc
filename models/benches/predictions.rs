//! How fast predictions, decisions and fits are: `cargo bench -p colibri-models`.

#[path = "../src/decide/tests/as_measured.rs"]
mod as_measured;

use as_measured::as_measured;
use divan::{Bencher, black_box, counter::ItemsCount};
use models::{
    Forms, Model, Point, Predictor, algorithms,
    closed_forms::COLLECTIVES,
    compress::{Bounds, CompressionForm, DecisionGrid},
    decide::{Outline, Segments, decide, decide_near, methods},
    fit::fit,
    presets::preset,
};
use rand::{RngExt as _, SeedableRng as _};
use records::{
    Algorithm, Collective, Layout, Method,
    calibration::{Calibration, InsideNode, Parameters},
    document,
    observation::{ObservationStatus, PointToPoint, PointToPointKind},
};

fn main() {
    divan::main();
}

/// Frodo's parameters, PLogP with as many knots as a calibration may have.
fn parameters() -> Parameters {
    let mut parameters = preset("frodo").expect("a preset").measured;
    let last = parameters.plogp.knots.pop().expect("presets have knots");
    parameters.plogp.knots.extend((2..60).map(|knot| {
        let mut knot_here = last.clone();
        knot_here.bytes = knot * knot * 600;
        knot_here.gap_seconds.value = 23.8e-6 + 0.084e-6 * knot_here.bytes as f64;
        knot_here.gap_seconds.low = 0.0;
        knot_here.gap_seconds.high = 1.0;
        knot_here
    }));
    parameters
}

fn predictor(model: Model) -> Predictor {
    Predictor::new(model, Forms::Corrected, &parameters()).expect("good parameters")
}

#[divan::bench(args = [
    Model::Hockney, Model::LogP, Model::LogGp, Model::PLogP, Model::Refined
])]
fn predictions(bencher: Bencher, model: Model) {
    const POINTS: usize = 1000;
    let predictor = predictor(model);
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    let points: Vec<(Point, u64)> = (0..POINTS)
        .map(|_| {
            let (procs, bytes) = (random.random_range(2..1000), random.random_range(0..2_000_000));
            let point = Point::flat(Collective::Bcast, procs, bytes);
            (point, random.random_range(1..100_000))
        })
        .collect();
    bencher.counter(ItemsCount::new(POINTS)).bench(|| {
        let predict = |&(point, segment): &(Point, u64)| {
            predictor.predict(point, Algorithm::Pipeline, segment).unwrap_or(f64::NAN)
        };
        black_box(&points).iter().map(predict).sum::<f64>()
    });
}

/// Seconds of what is decided for at each number of processes and size, added up.
fn map(
    predictor: &Predictor,
    collective: Collective,
    (procs, sizes): (&[u32], &[u64]),
    algorithms: &[Algorithm],
) -> f64 {
    let at = |procs, bytes| {
        let point = Point::flat(collective, procs, bytes);
        decide(predictor, point, algorithms, &Segments::Auto).expect("a decision").seconds
    };
    procs.iter().flat_map(|procs| sizes.iter().map(move |bytes| at(*procs, *bytes))).sum()
}

/// The decision functions of all collectives with closed forms, every algorithm and every segment
/// size, for 2 to 1024 processes and 24 sizes from 1 B to 8 MiB.
#[divan::bench(args = [
    Model::Hockney, Model::LogP, Model::LogGp, Model::PLogP, Model::Refined
], sample_count = 3, sample_size = 1)]
fn whole_map(bencher: Bencher, model: Model) {
    let predictor = predictor(model);
    let procs: Vec<u32> = (2..=1024).collect();
    let sizes: Vec<u64> = (0..=23).map(|shift| 1 << shift).collect();
    bencher.bench(|| {
        COLLECTIVES.map(|collective| {
            let sizes = if collective == Collective::Barrier { &[0][..] } else { &sizes };
            map(&predictor, collective, (&procs, sizes), algorithms(collective))
        })
    });
}

/// The same by the refined model for the collectives of the paper's maps: some algorithms have no
/// form there and are simulated.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn whole_map_refined(bencher: Bencher) {
    let parameters = preset("frodo").expect("a preset").measured;
    let predictor =
        Predictor::new(Model::Refined, Forms::Corrected, &parameters).expect("good parameters");
    let procs: Vec<u32> = (2..=1024).collect();
    let sizes: Vec<u64> = (0..=23).map(|shift| 1 << shift).collect();
    bencher.bench(|| {
        [Collective::Bcast, Collective::Reduce].map(|collective| {
            let known = Model::Refined.algorithms(collective);
            map(&predictor, collective, (&procs, &sizes), &known)
        })
    });
}

/// The same by parameters that scatter and are uncertain as measured ones are: 3 s are wanted at most on
/// two processors, which `colibri decide` shares the points among.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn whole_map_measured(bencher: Bencher) {
    let parameters = as_measured(preset("frodo").expect("a preset").measured, 1);
    let predictor =
        Predictor::new(Model::Refined, Forms::Corrected, &parameters).expect("good parameters");
    let procs: Vec<u32> = (2..=1024).collect();
    let sizes: Vec<u64> = (0..=23).map(|shift| 1 << shift).collect();
    bencher.bench(|| {
        [Collective::Bcast, Collective::Reduce].map(|collective| {
            let known = Model::Refined.algorithms(collective);
            map(&predictor, collective, (&procs, &sizes), &known)
        })
    });
}

/// The same on 64 nodes of 48 ranks, inside which memory is shared as on a node that was measured: 21 sizes, 1 B to 1 MiB,
/// by one processor. 5 s are wanted at most.
#[divan::bench(args = ["bcast", "reduce", "allreduce"], sample_count = 1, sample_size = 1)]
fn whole_map_of_64x48(bencher: Bencher, collective: &str) {
    let collective: Collective = collective.parse().expect("a collective");
    let layout: Layout = "64x48".parse().expect("a layout");
    let between = as_measured(preset("boba").expect("a preset").measured, 1);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/data/node16/calibration.json");
    let node: Calibration = document::read(path.as_ref()).expect("a calibration");
    let inside =
        InsideNode { measured: node.measured, fitted: None, fits: Vec::new(), port: Vec::new() };
    let flat = Predictor::new(Model::Refined, Forms::Corrected, &between).expect("good parameters");
    let predictor = flat.on_nodes(&between, Some(&inside), false).expect("good parameters");
    let known = Model::Refined.algorithms(collective);
    let plain = methods(predictor.at(layout), collective, &known, &[0, 1 << 10, 8 << 10]);
    let schemes = ["two-level", "multi-lane"].into_iter();
    let composed = schemes.flat_map(|scheme| {
        let between = ["", ",inter=pipeline", ",inter=ring", ",inter=rabenseifner"];
        let cut = ["", ",segment=1KiB", ",segment=8KiB"];
        let named = move |inter| cut.map(|cut| format!("own:{scheme}{inter}{cut}"));
        between.into_iter().flat_map(named)
    });
    let composed = composed.filter_map(|name| name.parse::<Method>().ok());
    let all: Vec<Method> = plain.expect("known").into_iter().chain(composed).collect();
    let sizes: Vec<u64> = (0..=20).map(|shift| 1 << shift).collect();
    bencher.bench(|| {
        let mut outline = Outline::default();
        for sizes in Outline::split(&sizes) {
            let mut next = outline.clone();
            for bytes in sizes {
                let point = Point { collective, layout, bytes };
                let can = |one: &&Method| {
                    one.segment_bytes() < point.bytes
                        && predictor.is_candidate(point, one) == Ok(true)
                };
                let methods: Vec<Method> = all.iter().filter(can).cloned().collect();
                let decided = decide_near(&predictor, point, &methods, &outline).expect("known");
                next.add(bytes, decided.times);
            }
            outline = next;
        }
    });
}

/// Looking up the decision function of the paper's Figure 6 in its short forms.
#[divan::bench(args = [CompressionForm::Table, CompressionForm::Tree, CompressionForm::Quadtree])]
fn look_ups(bencher: Bencher, shape: CompressionForm) {
    const POINTS: usize = 1000;
    let predictor = predictor(Model::LogGp);
    let bcast = Collective::Bcast;
    let procs: Vec<u32> = (3..=32).collect();
    let sizes: Vec<u64> = (0..=23).map(|shift| 1 << shift).collect();
    let segments = [0, 1 << 10, 8 << 10];
    let methods = methods(&predictor, bcast, algorithms(bcast), &segments).expect("known");
    let map = DecisionGrid::new(&predictor, bcast, (&procs, &sizes), &methods).expect("a grid");
    let bounds = Bounds { depth: 16, penalty: 0.0 };
    let compressed = map.compress(&predictor, shape, bounds).expect("segments of some size");
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    let points: Vec<(u32, u64)> = (0..POINTS)
        .map(|_| (random.random_range(3..33), 1 << random.random_range(0..24)))
        .collect();
    bencher.counter(ItemsCount::new(POINTS)).bench(|| {
        let segment =
            |&(procs, bytes): &(u32, u64)| compressed.decide(procs, bytes).segment_bytes();
        black_box(&points).iter().map(segment).sum::<u64>()
    });
}

/// 20 000 observations.
#[divan::bench]
fn whole_fit(bencher: Bencher) {
    use PointToPointKind::{Clock, ReceiveOverhead, RoundTrip, SendOverhead, Train};
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    let mut observations = Vec::new();
    for repetition in 0..180 {
        for shift in 0..=21 {
            let bytes = if shift == 0 { 0 } else { 1 << (shift - 1) };
            let gap = 24e-6 + 0.084e-6 * bytes as f64;
            for (kind, messages, seconds) in [
                (Clock, 1, 1e-7),
                (RoundTrip, 1, 150e-6 + gap),
                (SendOverhead, 1, 5e-6),
                (ReceiveOverhead, 1, 6e-6),
                (Train, 16, 150e-6 + 16.0 * gap),
                (Train, 48, 150e-6 + 48.0 * gap),
            ] {
                observations.push(PointToPoint {
                    kind,
                    sender: 0,
                    receiver: 1,
                    bytes,
                    messages,
                    job: 0,
                    visit: repetition,
                    repetition,
                    seconds: seconds * random.random_range(0.95..1.05),
                    status: ObservationStatus::Ok,
                });
            }
        }
    }
    bencher.bench(|| fit(black_box(&observations)));
}
