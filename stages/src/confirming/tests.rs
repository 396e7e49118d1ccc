use choosing::samples::Samples;
use records::{observation::CollectiveCall, plan::Cell};

use super::*;

const RUN: [&str; 3] = ["default", "native:openmpi:binomial", "own:binomial"];

fn at(layout: &str) -> Point {
    Point { collective: Collective::Bcast, layout: layout.parse().unwrap(), bytes: 1024 }
}

/// Of a broadcast on 4 processes, each method three times; the default takes 9 s.
fn timed(layout: &str, [native, own]: [f64; 2]) -> Vec<CollectiveCall> {
    let point = at(layout);
    let row = |(visit, (method, seconds)): (u32, (&str, f64))| {
        let cell = Cell { point, method: method.parse().unwrap() };
        CollectiveCall { visit, ..CollectiveCall::timed(&cell, seconds) }
    };
    let methods = RUN.into_iter().zip([9.0, native, own]);
    (0..3).flat_map(|_| methods.clone()).zip(0..).map(|(one, visit)| row((visit, one))).collect()
}

/// What one way of loading tries, of calls on 4 nodes and on 2 of 2: the points, and where its files run what was
/// chosen for another layout. On 4 nodes the native method takes so many seconds.
fn tried(
    way: LoadWay,
    library: &str,
    seconds: f64,
) -> (Vec<(Point, String)>, BTreeMap<Point, Layout>) {
    let rows = [timed("4x1", [seconds, 6.0]), timed("2x2", [3.0, 6.0])].concat();
    let layouts = [at("4x1"), at("2x2")];
    let cells: Vec<Cell> =
        layouts.iter().flat_map(|point| RUN.map(|method| cell(*point, method))).collect();
    let known =
        TuningState::new(&cells, &|_| vec![None], &Samples::gather(&rows, libraries::ran_as_asked));
    let plan = Plan { seed: 1, ranks: 4, cells, visits: Vec::new() };
    let platform = Platform { mpi_library: library.into(), ..Platform::default() };
    let parts = way.parts().iter().map(|&part| WayPart::new(part, &platform, true).unwrap());
    let target = WayTarget { way, parts: parts.collect() };
    let chosen = target.choose(&known.beliefs, None, &plan);
    let choices = chosen.choices.iter().map(|one| (one.point, one.method.to_string()));
    (choices.collect(), chosen.shadowed_points)
}

fn cell(point: Point, method: &str) -> Cell {
    Cell { point, method: method.parse().unwrap() }
}

/// A method that was timed alone is neither faster nor slower than anything.
#[test]
fn points_whose_default_was_not_timed_are_counted() {
    let mut rows = [timed("4x1", [3.0, 6.0]), timed("2x2", [3.0, 6.0])].concat();
    rows.retain(|row| row.point == at("4x1") || row.method != Method::Default);
    let cells: Vec<Cell> =
        [at("4x1"), at("2x2")].iter().flat_map(|point| RUN.map(|of| cell(*point, of))).collect();
    let samples = Samples::gather(&rows, libraries::ran_as_asked);
    let known = TuningState::new(&cells, &|_| vec![None], &samples).beliefs;
    assert_eq!(untimed(&known, &known.choices()), 1);
    assert_eq!(untimed(&known, &[]), 2);
}

/// Open MPI's rules know the number of processes alone, profiles the layout.
#[test]
fn only_where_a_file_leads_is_what_was_chosen_tried() {
    let open_mpi = "Open MPI v4.1.4";
    let (native, own) = (RUN[1].to_owned(), RUN[2].to_owned());
    let all = |method: &String| vec![(at("4x1"), method.clone()), (at("2x2"), method.clone())];
    let shadowed_points = BTreeMap::from([(at("4x1"), at("2x2").layout)]);
    assert_eq!(tried(LoadWay::Rules, open_mpi, 3.0), (all(&native), shadowed_points));
    assert_eq!(tried(LoadWay::Preload, open_mpi, 3.0), (all(&own), BTreeMap::new()));
    // What the rules do not lead the profiles may.
    let both = vec![(at("4x1"), own), (at("2x2"), native)];
    assert_eq!(tried(LoadWay::Both, open_mpi, 3.0), (both, BTreeMap::new()));
}

/// What is fast on 2 nodes of 2 is not written into rules where it is slow on 4 nodes, which they do not tell apart.
#[test]
fn what_harms_a_layout_that_a_file_does_not_tell_apart_is_not_tried() {
    let default = "default".to_owned();
    let tried_by = |library| tried(LoadWay::Rules, library, 90.0).0;
    assert_eq!(tried_by("Open MPI v4.1.4"), [(at("4x1"), default.clone()), (at("2x2"), default)]);
    // The preload library knows the layouts.
    let (own, _) = tried(LoadWay::Preload, "Open MPI v4.1.4", 90.0);
    assert!(own.iter().all(|(_, method)| method == RUN[2]), "{own:?}");
}

/// Neither a rules file nor the preload library can have coll/sm, though it is the fastest.
#[test]
fn what_a_library_does_in_memory_is_reported_and_never_tried() {
    let at = Point::flat(Collective::Bcast, 4, 1024);
    let methods = ["default", "native:openmpi:binomial", "native:openmpi:sm"];
    let cells: Vec<Cell> = methods.iter().map(|method| cell(at, method)).collect();
    let seconds = [9.0, 6.0, 3.0];
    let timed = cells.iter().zip(seconds).cycle().take(9).zip(0..);
    let rows: Vec<CollectiveCall> = timed
        .map(|((cell, seconds), visit)| CollectiveCall {
            visit,
            ..CollectiveCall::timed(cell, seconds)
        })
        .collect();
    let samples = Samples::gather(&rows, libraries::ran_as_asked);
    let known = TuningState::new(&cells, &|_| vec![None], &samples).beliefs;
    let best = known.choices();
    assert_eq!(best[0].method, cells[2].method);
    let plan = Plan { seed: 1, ranks: 4, cells: cells.clone(), visits: Vec::new() };
    let platform = Platform { mpi_library: "Open MPI v4.1.4".into(), ..Platform::default() };
    for way in [LoadWay::Rules, LoadWay::Preload, LoadWay::Both] {
        let parts = way.parts().iter().map(|&part| WayPart::new(part, &platform, true).unwrap());
        let target = WayTarget { way, parts: parts.collect() };
        let tried = target.choose(&known, None, &plan).choices;
        assert_eq!(tried[0].method, cells[1].method, "{way:?}");
        let told = target.withheld(&best);
        if way == LoadWay::Rules {
            // Of what is believed, not of the times as they are.
            assert!(told[0].points == 1 && (2.8..=3.0).contains(&told[0].speed_up), "{told:?}");
            assert!(told[0].reason.contains("can't name coll/sm"), "{}", told[0].reason);
        }
    }
}

/// Open MPI's pipeline of reduce is wrong for operations that are not commutative, its linear one is not.
#[test]
fn what_cannot_be_loaded_is_told_with_what_it_would_gain() {
    let choice = |bytes, method: &str, seconds| {
        let point = Point::flat(Collective::Reduce, 4, bytes);
        Chosen::measured(point, method.parse().unwrap(), seconds, 6.0)
    };
    let best = [
        choice(8, "native:openmpi:linear", 1.0),
        choice(1 << 10, "native:openmpi:pipeline", 2.0),
        choice(1 << 20, "native:openmpi:pipeline", 1.5),
        choice(2 << 20, "native:openmpi:binary", 3.0),
    ];
    let platform = Platform { mpi_library: "Open MPI v4.1.4".into(), ..Platform::default() };
    let withheld = |commutative| {
        let part = WayPart::new(LoadWay::Rules, &platform, commutative).unwrap();
        WayTarget { way: LoadWay::Rules, parts: vec![part] }.withheld(&best)
    };
    assert_eq!(withheld(true), []);
    let told = withheld(false);
    let gains: Vec<(u32, f64)> = told.iter().map(|one| (one.points, one.speed_up)).collect();
    assert_eq!(gains, [(2, 4.0), (1, 2.0)]);
    assert!(told[0].reason.contains("pipeline of reduce") && told[1].reason.contains("binary"));
}

#[test]
fn what_was_settled_is_read_and_damage_is_told_with_its_field() {
    let parse =
        |text: &str| document::parse::<SettledConfirmation>(text, "confirmation.json".as_ref());
    let costs = JobCosts::expected(0.0);
    let settled =
        SettledConfirmation { seconds: 2.0, costs, commutative: false, generation: 1, batches: 6 };
    let text = document::text(&settled).unwrap();
    assert_eq!(parse(&text).unwrap(), settled);
    let damaged = text.replace(r#""latency": 0.0"#, r#""latency": -1.0"#);
    let error = parse(&damaged).unwrap_err().to_string();
    assert!(error.starts_with("confirmation.json"), "{error}");
    assert!(error.contains("costs.latency: expected seconds from 0"), "{error}");
}

/// Intel MPI's hold on every communicator of the job: nothing is chosen for a smaller one, and what they do there is
/// timed as harm.
#[test]
fn settings_of_a_whole_job_are_chosen_at_all_its_ranks() {
    let native: Method = "native:intel:binomial".parse().unwrap();
    let mut rows = [timed("4x1", [3.0, 6.0]), timed("2x1", [3.0, 6.0])].concat();
    for row in rows.iter_mut().filter(|row| row.method.is_native()) {
        row.method = native.clone();
    }
    let points = [at("4x1"), at("2x1")];
    let methods = [Method::Default, native.clone()];
    let cells =
        points.iter().flat_map(|&point| methods.clone().map(|method| Cell { point, method }));
    let cells: Vec<Cell> = cells.collect();
    let samples = Samples::gather(&rows, libraries::ran_as_asked);
    let known = TuningState::new(&cells, &|_| vec![None], &samples).beliefs;
    let plan = Plan { seed: 1, ranks: 4, cells, visits: Vec::new() };
    let library = "Intel(R) MPI Library 2021.19 for Linux* OS";
    let platform = Platform { mpi_library: library.into(), ..Platform::default() };
    let part = WayPart::new(LoadWay::Rules, &platform, true).unwrap();
    let chosen = WayTarget { way: LoadWay::Rules, parts: vec![part] }.choose(&known, None, &plan);
    let of = |point: Point| chosen.choices.iter().find(|one| one.point == point).unwrap();
    assert_eq!(of(points[0]).method, native);
    assert_eq!(of(points[1]).method, Method::Default);
    assert_eq!(chosen.shadowed_points, BTreeMap::from([(points[1], points[0].layout)]));
}
