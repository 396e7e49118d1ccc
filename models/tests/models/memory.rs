//! Ranks that share the memory of one node: a node of 16 cores, on which every method was timed.
//!
//! `data/node16` has its calibration (50 seconds, Open MPI 5.0.11, 16 ranks) with what a benchmark of the memory
//! measured beside it, and the times of Colibri's methods there: means of the middle halves of all observations.
//! No parameter was fitted to these.

use std::{collections::BTreeMap, path::Path};

use models::{
    Forms, LimitCause, Model, Point, Predictor,
    decide::{Outline, decide_among, decide_near},
    explain::Explainer,
    limit,
    parameters::Network,
    presets::preset,
    simulated::LevelledNetwork,
};
use proptest::prelude::*;
use records::{
    Collective, Layout, Method, OwnMethod,
    calibration::{Calibration, Estimate, InsideNode, Parameters},
    document,
};
use statistics::median;

use crate::least::{on_levels, ratios};

const RANKS: u32 = 16;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/data/node16").join(name)
}

fn calibration() -> Calibration {
    document::read(&data("calibration.json")).unwrap()
}

/// By collective, size and method.
fn times() -> BTreeMap<(Collective, u64), Vec<(Method, f64)>> {
    let mut times: BTreeMap<(Collective, u64), Vec<(Method, f64)>> = BTreeMap::new();
    let mut reader = csv::Reader::from_path(data("times.csv")).unwrap();
    for row in reader.records() {
        let row = row.unwrap();
        let key = (row[0].parse().unwrap(), row[2].parse().unwrap());
        times.entry(key).or_default().push((row[1].parse().unwrap(), row[3].parse().unwrap()));
    }
    times
}

/// Of each collective: what choosing among the measured methods costs in the mean, and the median error.
fn judged(predictor: &Predictor) -> BTreeMap<Collective, (f64, f64)> {
    let mut of_collectives: BTreeMap<Collective, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for ((collective, bytes), methods) in times() {
        let point = Point::flat(collective, RANKS, bytes);
        let predicted: Vec<(f64, f64)> = methods
            .iter()
            .filter_map(|(method, seconds)| {
                Some((predictor.predict_method(point, method).ok()?.value, *seconds))
            })
            .collect();
        let chosen = predicted.iter().min_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
        let best = predicted.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
        let (penalties, errors) = of_collectives.entry(collective).or_default();
        penalties.push(chosen.1 / best - 1.0);
        errors.extend(predicted.iter().map(|(told, seconds)| (told / seconds - 1.0).abs()));
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    of_collectives
        .into_iter()
        .map(|(of, (penalties, errors))| (of, (mean(&penalties), median(&errors).unwrap())))
        .collect()
}

#[test]
fn on_a_node_of_16_cores_the_memory_decides() {
    let calibration = calibration();
    let predictor =
        Predictor::new(Model::Refined, Forms::Corrected, &calibration.measured).unwrap();
    let with = judged(&predictor);
    let mut without = calibration.measured.clone();
    without.memory = None;
    let messages_alone =
        judged(&Predictor::new(Model::Refined, Forms::Corrected, &without).unwrap());
    // What choosing by one half of the observations costs on the other half there, and 3 more; allgather needs 4.
    let bounds = [
        (Collective::Bcast, 0.05),
        (Collective::Reduce, 0.07),
        (Collective::Allreduce, 0.07),
        (Collective::Allgather, 0.10),
        (Collective::Alltoall, 0.05),
    ];
    for (collective, bound) in bounds {
        let ((penalty, error), (before, _)) = (with[&collective], messages_alone[&collective]);
        assert!(penalty <= bound, "{collective}: {penalty}");
        assert!(error <= 0.23, "{collective}: median error {error}");
        println!("{collective}: {penalty:.3} ({before:.3}), error {error:.3}");
        assert!(penalty < before, "{collective}: {penalty}, by messages alone {before}");
    }
}

/// By collective and size: seconds of algorithms of shared memory on such a node on another day, medians of three jobs.
fn times_in_shared_memory() -> Vec<(Point, Method, f64)> {
    let mut reader = csv::Reader::from_path(data("shared.csv")).unwrap();
    let row = |row: csv::StringRecord| {
        let (collective, bytes): (Collective, u64) =
            (row[0].parse().unwrap(), row[1].parse().unwrap());
        let algorithm = schedules::shared_of_collective(collective).unwrap().algorithm;
        let microseconds: f64 = row[2].parse().unwrap();
        let point = Point::flat(collective, RANKS, bytes);
        (point, Method::Own(OwnMethod::plain(algorithm)), microseconds / 1e6)
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

/// What the memory takes was measured, none of these times was fitted to.
#[test]
fn algorithms_of_shared_memory_take_what_flags_and_reads_take() {
    let calibration = calibration();
    let predictor =
        Predictor::new(Model::Refined, Forms::Corrected, &calibration.measured).unwrap();
    let timed = times_in_shared_memory();
    let messages = times();
    let (mut errors, mut decided) = (Vec::new(), 0);
    let mut of_collectives: BTreeMap<Collective, Vec<f64>> = BTreeMap::new();
    for (point, method, seconds) in &timed {
        let predicted = predictor.predict_method(*point, method).unwrap().value;
        let ratio = predicted / seconds;
        assert!((1.0 / 2.7..2.7).contains(&ratio), "{point:?}: {predicted} for {seconds}");
        println!("{} {}: {predicted:.2e} for {seconds:.2e}", point.collective, point.bytes);
        errors.push((ratio - 1.0).abs());
        of_collectives.entry(point.collective).or_default().push((ratio - 1.0).abs());
        // Where the best by messages takes longer by half, models choose shared memory.
        let Some(others) = messages.get(&(point.collective, point.bytes)) else { continue };
        let best = others.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
        if best > 1.5 * seconds {
            let mut methods: Vec<Method> = others.iter().map(|(other, _)| other.clone()).collect();
            methods.push(method.clone());
            let chosen = decide_among(&predictor, *point, &methods).unwrap();
            assert_eq!(chosen.method, *method, "{point:?}");
            decided += 1;
        }
    }
    for (collective, errors) in &of_collectives {
        println!("{collective}: median error {:.3}", median(errors).unwrap());
    }
    assert!(median(&errors).unwrap() < 0.2, "{errors:?}");
    assert!(decided > 10, "{decided}");
    // Other models know none of it, nor does this one without what was measured.
    let (point, method, _) = &timed[1];
    let hockney = Predictor::new(Model::Hockney, Forms::Corrected, &calibration.measured).unwrap();
    assert!(!hockney.knows(point.collective, method));
    let mut without = calibration.measured;
    without.memory.as_mut().unwrap().shared = None;
    let without = Predictor::new(Model::Refined, Forms::Corrected, &without).unwrap();
    let refused = without.predict_method(*point, method).unwrap_err().to_string();
    assert!(refused.contains("was not measured"), "{refused}");
}

#[test]
fn the_tables_forms_know_no_memory() {
    let calibration = calibration();
    let mut without = calibration.measured.clone();
    without.memory = None;
    for model in [Model::Hockney, Model::LogGp, Model::PLogP] {
        let [with, without] = [&calibration.measured, &without].map(|parameters| {
            let predictor = Predictor::new(model, Forms::Corrected, parameters).unwrap();
            let point = Point::flat(Collective::Bcast, RANKS, 1 << 18);
            predictor.predict_method(point, &"own:binomial".parse().unwrap()).unwrap().value
        });
        assert_eq!(with, without, "{model}");
    }
}

/// A calibration of several nodes like this one.
fn nodes_of_16_cores(between: &Parameters, measured: &Parameters) -> Predictor {
    let inside =
        InsideNode { measured: measured.clone(), fitted: None, fits: Vec::new(), port: Vec::new() };
    let flat = Predictor::new(Model::Refined, Forms::Corrected, between).unwrap();
    flat.on_nodes(between, Some(&inside), false).unwrap()
}

/// Times and their intervals.
#[test]
fn on_several_nodes_memory_counts_inside_them() {
    let with = calibration().measured;
    let without = Parameters { memory: None, ..with.clone() };
    let between = preset("frodo").unwrap().measured;
    let predicted = |layout: &str, method: &str| {
        let layout: Layout = layout.parse().unwrap();
        let point = Point { collective: Collective::Bcast, layout, bytes: 1 << 18 };
        let method = method.parse().unwrap();
        [&with, &without].map(|measured| {
            let predictor = nodes_of_16_cores(&between, measured);
            predictor.predict_method(point, &method).unwrap()
        })
    };
    for method in ["own:binomial", "own:pipeline,segment=8KiB"] {
        let [memory, messages] = predicted("4x1", method);
        assert_eq!(memory, messages, "each rank is alone on its node: {method}");
        for layout in ["2x4", "5+4", "2x32"] {
            let [memory, messages] = predicted(layout, method);
            assert!(memory.low < memory.high, "{layout} {method}: {memory:?}");
            let ratio = memory.value / messages.value;
            // Frodo's network takes nearly all of it.
            assert!((ratio - 1.0).abs() > 1e-4, "{layout} {method}: {memory:?} {messages:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Also where messages take longer on their way, so that they go whole.
    #[test]
    fn in_memory_no_schedule_is_quicker_than_the_limit(
        way in 1.0..4.0_f64, slower in 1.0..3.0_f64, procs in 2_u32..20, elements in 1_u64..20_000,
        cache in prop_oneof![Just(None), (2_u32..8).prop_map(Some)],
    ) {
        let mut parameters = calibration().measured;
        let memory = parameters.memory.as_mut().unwrap();
        memory.ranks_per_cache = cache;
        for knot in &mut memory.messages {
            knot.trip_seconds = Estimate::exact(way * knot.trip_seconds.value);
        }
        for knot in memory.slowdown.iter_mut().flat_map(|row| &mut row.knots) {
            knot.factor = Estimate::exact(slower * knot.factor.value);
        }
        let network = Network::new(Model::Refined, &parameters).unwrap();
        for collective in Collective::ALL {
            let bytes = if collective == Collective::Barrier { 0 } else { 8 * elements };
            for (algorithm, ratio) in ratios(&network, Point::flat(collective, procs, bytes)) {
                // The simulator's busy ranks may be 3 % old.
                prop_assert!(ratio > 0.97, "{collective} by {algorithm}, {procs} of {bytes}: {ratio}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// The same of several nodes, whose ranks have ports between these.
    #[test]
    fn on_nodes_with_memory_no_schedule_is_quicker_than_the_limit(
        way in 1.0..4.0_f64, elements in 1_u64..20_000,
        layout in prop::sample::select(&["2x3", "3x4:cyclic", "4x1", "5+1+3", "4x4", "2x9"][..]),
        cache in prop_oneof![Just(None), (2_u32..8).prop_map(Some)],
    ) {
        let mut measured = calibration().measured;
        let memory = measured.memory.as_mut().unwrap();
        memory.ranks_per_cache = cache;
        for knot in &mut memory.messages {
            knot.trip_seconds = Estimate::exact(way * knot.trip_seconds.value);
        }
        let inside = InsideNode { measured, fitted: None, fits: Vec::new(), port: Vec::new() };
        let between = preset("frodo").unwrap().measured;
        let network =
            LevelledNetwork::new(Model::Refined, &between, Some(&inside), false).unwrap();
        let layout: Layout = layout.parse().unwrap();
        for (call, seconds, least) in on_levels(&network, layout, elements) {
            // The simulator's busy ranks may be 3 % old.
            prop_assert!(seconds >= 0.97 * least.seconds, "{call:?}: {seconds} {least:?}");
        }
    }
}

/// What all ranks must copy, and how much of that can go on at once, is what long messages take.
#[test]
fn of_long_messages_the_limit_is_what_all_ranks_copy() {
    let network = Network::new(Model::Refined, &calibration().measured).unwrap();
    let point = Point::flat(Collective::Alltoall, RANKS, 1 << 18);
    assert_eq!(limit(&network, point).cause, LimitCause::Memory);
    let best = ratios(&network, point).into_iter().map(|(_, ratio)| ratio).fold(f64::MAX, f64::min);
    assert!((0.97..1.3).contains(&best), "{best}");
}

/// Each parameter of the memory counts, and it is said how many ranks copy at once.
#[test]
fn a_time_in_memory_is_explained_by_copies() {
    let parameters = calibration().measured;
    let predictor = Predictor::new(Model::Refined, Forms::Corrected, &parameters).unwrap();
    let explainer = Explainer::new(&predictor, &parameters, None, false).unwrap();
    let cases = [
        (Collective::Bcast, "own:binomial", 1 << 18),
        (Collective::Allreduce, "own:rabenseifner", 1 << 18),
        (Collective::Alltoall, "own:bruck", 1 << 12),
        (Collective::Alltoall, "own:pairwise", 1 << 15),
    ];
    for (collective, method, bytes) in cases {
        let (point, method) = (Point::flat(collective, RANKS, bytes), method.parse().unwrap());
        let seconds = predictor.predict_method_seconds(point, &method).unwrap();
        let terms = explainer.terms(point, &method).unwrap();
        let sum: f64 = terms.iter().map(|term| term.seconds).sum();
        assert!((sum / seconds - 1.0).abs() < 0.02, "{method}: {sum} of {seconds}: {terms:?}");
        let names: Vec<&str> = terms.iter().map(|term| term.parameter).collect();
        let known = ["gamma", "trip", "copy in", "copy out", "local copy"];
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
        let text = explainer.formula(point, &method).unwrap().text;
        assert!(text.contains("of a node's 16 ranks are busy"), "{text}");
    }
    // All exchange all the time.
    let (point, method) = (Point::flat(Collective::Alltoall, RANKS, 1 << 18), "own:pairwise");
    let text = explainer.formula(point, &method.parse().unwrap()).unwrap().text;
    assert!(text.contains("on average 16.0 of a") || text.contains("on average 15."), "{text}");
    assert!(text.contains("a message of 256 KiB takes"), "{text}");
}

/// What few nodes tell of many, against the simulation of all of them.
#[test]
fn few_nodes_tell_what_many_take() {
    let between = preset("frodo").unwrap().measured;
    let predictor = nodes_of_16_cores(&between, &calibration().measured);
    let in_full = predictor.clone().simulating(None);
    let mut errors = Vec::new();
    let blocks = [Collective::Allreduce, Collective::Allgather, Collective::Alltoall];
    let trees = [Collective::Bcast, Collective::Reduce];
    for (layout, collectives, sizes) in
        [("16x12", &blocks[..], &[64, 1 << 15][..]), ("32x16", &trees[..], &[1 << 18][..])]
    {
        let layout: Layout = layout.parse().unwrap();
        for (&collective, &bytes) in
            collectives.iter().flat_map(|one| sizes.iter().map(move |bytes| (one, bytes)))
        {
            let point = Point { collective, layout, bytes };
            let names = Model::Refined.algorithms(collective).into_iter();
            let names = names.map(|algorithm| algorithm.to_string());
            let composed = ["two-level", "two-level,inter=pipeline", "multi-lane"];
            let names = names.chain(composed.map(str::to_owned));
            for name in names.flat_map(|name| [format!("{name},segment=8KiB"), name]) {
                let Ok(method) = format!("own:{name}").parse::<Method>() else { continue };
                if predictor.found_by(point, &method) != Ok("simulated, on fewer nodes") {
                    continue;
                }
                let Ok(few) = predictor.predict_method_seconds(point, &method) else { continue };
                let all = in_full.predict_method_seconds(point, &method).unwrap();
                println!("{layout} {collective} {bytes} {method}: {:.2}", few / all);
                errors.push((few / all).ln().abs());
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: f64| errors[((errors.len() - 1) as f64 * part) as usize];
    println!("{} calls: {:.3} {:.3} {:.3}", errors.len(), at(0.5), at(0.9), at(1.0));
    assert!(errors.len() > 40 && at(0.5) < 0.05 && at(1.0) < 0.3, "{errors:?}");
}

/// Few segments of a long call on at most 128 ranks, against the simulation of all of them.
#[test]
fn few_segments_tell_what_many_take() {
    let between = preset("frodo").unwrap().measured;
    let predictor = nodes_of_16_cores(&between, &calibration().measured);
    let in_full = predictor.clone().simulating(None);
    let mut errors = Vec::new();
    let points = [("2x8", 1 << 20), ("4x8", 1 << 18), ("8x4", 1 << 17), ("3x5:cyclic", 1 << 19)];
    for (layout, bytes) in points {
        let layout: Layout = layout.parse().unwrap();
        for collective in [Collective::Bcast, Collective::Reduce, Collective::Allreduce] {
            let point = Point { collective, layout, bytes };
            for method in methods(point, &predictor).iter().filter(|one| one.segment_bytes() > 0) {
                if predictor.found_by(point, method) != Ok("simulated, with fewer segments") {
                    continue;
                }
                let few = predictor.predict_method_seconds(point, method).unwrap();
                let all = in_full.predict_method_seconds(point, method).unwrap();
                println!("{layout} {collective} {bytes} {method}: {:.4}", few / all);
                errors.push((few / all).ln().abs());
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: f64| errors[((errors.len() - 1) as f64 * part) as usize];
    println!("{} calls: {:.4} {:.4} {:.4}", errors.len(), at(0.5), at(0.9), at(1.0));
    assert!(errors.len() > 150 && at(0.9) < 0.01 && at(1.0) < 0.1, "{errors:?}");
}

/// What can be decided among: each whole and in two segment sizes.
fn methods(point: Point, predictor: &Predictor) -> Vec<Method> {
    let names = Model::Refined.algorithms(point.collective).into_iter();
    let names = names.map(|algorithm| algorithm.to_string());
    let composed = [
        "two-level",
        "two-level,inter=pipeline",
        "two-level,inter=segmented-ring",
        "multi-lane",
        "multi-lane,inter=pipeline",
        "segmented-ring,order=node",
    ];
    let composed = composed.map(str::to_owned);
    let cuts = ["", ",segment=1KiB", ",segment=8KiB"];
    let names = names.chain(composed).flat_map(|name| cuts.map(|cut| format!("own:{name}{cut}")));
    let methods = names.filter_map(|name| name.parse::<Method>().ok());
    let can = |method: &Method| {
        method.segment_bytes() < point.bytes && predictor.is_candidate(point, method) == Ok(true)
    };
    methods.filter(can).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Though most methods are given up before they end, what is chosen is the best of all that are simulated to their
    /// ends, and among the full simulations better than all by no more than fewer segments err by.
    #[test]
    fn what_is_given_up_early_is_not_the_best(
        layout in prop::sample::select(&["2x3", "3x4:cyclic", "5+1+3", "4x4", "2x9", "8x4"][..]),
        collective in prop::sample::select(
            &[Collective::Bcast, Collective::Reduce, Collective::Allreduce, Collective::Alltoall][..]
        ),
        power in 3_u32..19,
    ) {
        let between = preset("boba").unwrap().measured;
        let predictor = nodes_of_16_cores(&between, &calibration().measured);
        let in_full = predictor.clone().simulating(None);
        let point = Point { collective, layout: layout.parse().unwrap(), bytes: 1 << power };
        let methods = methods(point, &predictor);
        let chosen = decide_among(&predictor, point, &methods).unwrap();
        let least = |predictor: &Predictor| {
            let seconds = methods.iter().map(|one| predictor.predict_method_seconds(point, one));
            seconds.map(Result::unwrap).fold(f64::INFINITY, f64::min)
        };
        prop_assert!((chosen.seconds / least(&predictor) - 1.0).abs() < 1e-9, "{chosen:?}");
        let of_chosen = in_full.predict_method_seconds(point, &chosen.method).unwrap();
        prop_assert!(of_chosen <= 1.05 * least(&in_full), "{chosen:?}");
    }
}

/// Of many nodes what takes far longer at sizes around is not simulated: what is chosen is the best of all methods all the same.
#[test]
fn sizes_around_tell_what_is_not_the_best() {
    let between = preset("boba").unwrap().measured;
    let predictor = nodes_of_16_cores(&between, &calibration().measured);
    let layout: Layout = "16x12".parse().unwrap();
    assert!(predictor.at(layout).takes_fewer_nodes(layout));
    let sizes = [16, 64, 512, 4 << 10, 16 << 10, 128 << 10];
    for collective in [Collective::Bcast, Collective::Allreduce, Collective::Allgather] {
        let mut outline = Outline::default();
        for sizes in Outline::split(&sizes) {
            let mut next = outline.clone();
            for bytes in sizes {
                let point = Point { collective, layout, bytes };
                let methods = methods(point, &predictor);
                let decided = decide_near(&predictor, point, &methods, &outline).unwrap();
                let chosen = &decided.chosen;
                let seconds =
                    methods.iter().map(|one| predictor.predict_method_seconds(point, one));
                let least = seconds.map(Result::unwrap).fold(f64::INFINITY, f64::min);
                assert!((chosen.seconds / least - 1.0).abs() < 1e-9, "{least} {chosen:?}");
                next.add(bytes, decided.times);
            }
            outline = next;
        }
    }
}

/// What the ends of intervals do to a few ranks, against the same of all.
#[test]
fn few_ranks_tell_how_wide_intervals_are() {
    let mut between = preset("boba").unwrap().measured;
    for knot in &mut between.plogp.knots {
        let gap = &mut knot.gap_seconds;
        (gap.low, gap.high) = (0.9 * gap.value, 1.1 * gap.value);
    }
    let predictor = nodes_of_16_cores(&between, &calibration().measured);
    let in_full = predictor.clone().simulating(None);
    let mut ratios = Vec::new();
    for collective in [Collective::Bcast, Collective::Reduce, Collective::Allreduce] {
        for bytes in [64, 8 << 10] {
            let point = Point { collective, layout: "8x18".parse().unwrap(), bytes };
            for method in methods(point, &predictor).iter().filter(|one| one.segment_bytes() == 0) {
                // Its time is simulated in full, so that intervals alone differ.
                if predictor.found_by(point, method) != Ok("simulated") {
                    continue;
                }
                let [few, all] = [&predictor, &in_full].map(|predictor| {
                    let told = predictor.predict_method(point, method).unwrap();
                    (told.high - told.low) / told.value
                });
                println!("{collective} {bytes} {method}: {few:.3} of {all:.3}");
                ratios.push(few / all);
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part) as usize];
    println!("{}: {:.2} {:.2} {:.2}", ratios.len(), at(0.0), at(0.5), at(1.0));
    assert!(ratios.len() > 20 && (0.8..1.25).contains(&at(0.5)), "{ratios:?}");
    assert!(at(0.0) > 0.4 && at(1.0) < 2.5, "{ratios:?}");
}
