//! Right files of every kind, made by what writes them, and results to compare with.

// As the tests of the figures have them.
#[allow(dead_code, unreachable_pub, missing_docs, reason = "a part of it is used here")]
#[path = "../../figures/tests/made_up/mod.rs"]
mod made_up;

use std::{collections::BTreeMap, sync::OnceLock};

use models::presets::preset;
use records::{
    Collective, Method,
    calibration::{Calibration, Operation, Parameters},
    choices::{Alternative, Choices, Chosen, Confirmed, Evidence, RunnerUp},
    decisions::Decisions,
    disturbance::{self, Disturbance, Stretch},
    document::{self, Document},
    group_observation::{GroupKind, GroupObservation},
    observation::{ClockError, CollectiveCall, ObservationStatus, PointToPoint, PointToPointKind},
    penalty::{BusyLinks, Penalties},
    plan::Plan,
    platform::{ClockSource, Platform},
    profile::{OtherProcs, Profile, ProfileRange, pgtune as pgtune_form},
    record::{self, Row},
    summary::{
        Application, Gain, Harm, LoadWay, Loading, NotLoaded, Regret, Slower, TakenOut,
        TuningSummary,
    },
    usage::{Calls, Usage},
    violations::{Better, Class, Count, Verdict, Violation, Violations},
};
use tuning::{
    Weights,
    plan::{Extent, Grid, make},
};
use verification::{functions::DecisionFunction, penalty, samples::Samples, selection};

const PROCS: [u32; 2] = [4, 8];
const SIZES: [u64; 3] = [64, 4096, 262_144];
const BCAST: Collective = Collective::Bcast;

fn text<T: Document>(body: &T) -> String {
    document::text(body).unwrap()
}

fn record_of<T: Row>(header: &[(&str, String)], rows: &[T]) -> String {
    let mut text = format!("#@schema={}\n", T::SCHEMA);
    for (key, value) in header {
        text += &format!("#@{key}={value}\n");
    }
    text += &(T::COLUMNS.join(",") + "\n");
    for row in rows {
        text += str::from_utf8(&record::line(row).unwrap()).unwrap();
    }
    text
}

fn bytes(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<Vec<u8>> {
    texts.into_iter().map(|text| text.into().into_bytes()).collect()
}

fn method(text: &str) -> Method {
    text.parse().unwrap()
}

/// A platform with a word in every field.
pub fn platform() -> Platform {
    let clock = ClockSource {
        name: "CLOCK_MONOTONIC".into(),
        resolution_seconds: 1e-9,
        cost_seconds: 2e-8,
    };
    Platform {
        kernel: "6.1.0".into(),
        processor: "a processor".into(),
        cores: 4,
        load: 0.25,
        busy_processors: 0.5,
        clock: "CLOCK_MONOTONIC, shared".into(),
        clock_resolution_seconds: 1e-9,
        clocks: vec![clock],
        governor: "performance".into(),
        transport: "pml ob1; btl self, tcp".into(),
        settings: vec!["OMPI_MCA_btl=self,tcp".into()],
        launcher: "mpirun -np {np}".into(),
        ..made_up::platform(8)
    }
}

/// The header of a record, as the programs write it.
fn header() -> Vec<(&'static str, String)> {
    vec![
        ("platform", serde_json::to_string(&platform()).unwrap()),
        ("timing", "barrier".into()),
        ("spent_seconds", "12.5".into()),
        ("bytes", "65536".into()),
        ("at_once", "2".into()),
        ("members", "0,1,2,3".into()),
    ]
}

/// Open MPI's rules files.
pub fn rules() -> Vec<Vec<u8>> {
    let small = "# 3 words\n2 # collectives\n7 3 # bcast\n0 1\n0 0 0 0\n4 4\n0 6 0 0\n1000 3 0 1024\n\
                 65536 2 4 8192\n1048577 0 0 0\n9 1\n0 2 8 0\n0 1 4 2 0 0 0 0 400 4 0 1024\n";
    let tuned = include_str!("../../figures/data/testbed-16-agreement/tuned-5.rules");
    bytes([small, "0", tuned])
}

fn range(first_bytes: u64, last_bytes: u64, name: &str) -> ProfileRange {
    ProfileRange { first_bytes, last_bytes, method: method(name), gain: Some(1.5) }
}

/// Profiles in Colibri's form.
pub fn profiles() -> Vec<Vec<u8>> {
    let mut first = Profile::new(
        BCAST,
        8,
        vec![
            range(0, 8, "own:binomial"),
            range(9, 9, "own:linear"),
            range(1024, 65536, "own:pipeline,segment=8KiB"),
            range(65537, u64::MAX, "mockup:bcast_as_scatter_allgather"),
        ],
    );
    first.nodes = Some(4);
    first.other_procs = OtherProcs::Interpolated;
    first.library = "Open MPI 4.1.4".into();
    let mut second = Profile::new(Collective::ReduceScatterBlock, 3, vec![range(1, 7, "own:ring")]);
    second.other_procs = OtherProcs::NearestBelow;
    bytes([text(&first), text(&second), text(&Profile::new(Collective::Barrier, 2, Vec::new()))])
}

/// Profiles whose methods the preload library has.
pub fn loadable_profiles() -> Vec<Vec<u8>> {
    let mut profile = Profile::new(
        BCAST,
        8,
        vec![range(0, 8, "own:binomial"), range(9, 4096, "mockup:bcast_as_scatter_allgather")],
    );
    profile.other_procs = OtherProcs::NearestBelow;
    let other = Profile::new(Collective::Scan, 3, vec![range(1024, u64::MAX, "own:linear")]);
    bytes([text(&profile), text(&other)])
}

/// Profiles in PGMPITuneLib's form.
pub fn pgtune() -> Vec<Vec<u8>> {
    let papers = "# pgtune profile\nMPI_Scatter\n1024 # nb. of. processes\n2 # nb. of mock-up impl.\n\
                  2 scatter_as_bcast\n3 scatter_as_scatterv\n3 # nb. of ranges\n1 1 2 # byte_range\n\
                  8 8 2\n10000 10000 3\n";
    let ranges = vec![range(1, 4, "mockup:scan_as_exscan_reduce_local")];
    let ours = pgtune_form::format(&Profile::new(Collective::Scan, 4, ranges)).unwrap();
    bytes([papers.to_owned(), ours])
}

fn calls(collective: Collective, procs: u32, bytes: u64, name: &str) -> Calls {
    Calls { collective, procs, bytes, method: method(name), calls: 80, seconds: 0.25 }
}

/// Traces of applications.
pub fn usages() -> Vec<Vec<u8>> {
    let all = vec![
        calls(BCAST, 8, 65_536, "default"),
        calls(BCAST, 8, 1000, "own:pipeline,segment=8KiB"),
        calls(Collective::Allreduce, 4, 8, "mockup:allreduce_as_reduce_bcast"),
        calls(Collective::Barrier, 8, 0, "own:bruck"),
    ];
    let usage = Usage::of_all_ranks(8, "Open MPI".into(), 60.0, all);
    bytes([text(&usage), text(&Usage::of_all_ranks(1, "MPICH".into(), 0.5, Vec::new()))])
}

/// Parameters of platforms.
pub fn calibrations() -> Vec<Vec<u8>> {
    let mut whole = made_up::calibration();
    thin(&mut whole.measured);
    made_up::complete(&mut whole);
    thin(&mut whole.measured);
    whole.fitted = Some(whole.measured.clone());
    whole.fits.truncate(3);
    bytes([text(&whole), text(&preset("boba").unwrap())])
}

/// Few message sizes: a damage then meets every kind of field.
fn thin(parameters: &mut Parameters) {
    parameters.plogp.knots.retain(|knot| knot.bytes % 5 == 1);
    parameters.hockney_by_size.retain(|knot| knot.bytes % 5 == 1);
}

/// Parameters to compute with.
pub fn parameters() -> Parameters {
    static ONCE: OnceLock<Parameters> = OnceLock::new();
    ONCE.get_or_init(|| made_up::calibration().measured).clone()
}

/// A calibration with these parameters.
pub fn calibration_of(measured: Parameters) -> Calibration {
    Calibration {
        source: "observations.csv".into(),
        platform: Platform::default(),
        measured,
        fitted: None,
        fits: Vec::new(),
        algorithms: None,
        warnings: Vec::new(),
    }
}

/// A calibration of a platform.
pub fn calibration() -> String {
    text(&Calibration { platform: platform(), ..made_up::calibration() })
}

/// Decision functions.
pub fn decisions() -> String {
    let mut all: Decisions = made_up::decisions(&PROCS, &SIZES);
    all.decisions.truncate(14);
    text(&all)
}

fn methods(_: Collective, _: &[u64], _: u32, _: u64) -> Vec<Method> {
    let names = [
        "default",
        "native:openmpi:binomial",
        "native:openmpi:pipeline,segment=1KiB",
        "own:linear",
    ];
    names.map(method).into()
}

fn planned() -> Plan {
    let grid = Grid {
        ranks: 8,
        collectives: vec![BCAST, Collective::Reduce],
        procs: PROCS.into(),
        sizes: SIZES.into(),
        segments: vec![0, 1024],
        methods,
        weights: Weights::default(),
        others: Vec::new(),
    };
    make(&grid, Extent::Exhaustive { rounds: 2 }, 1, &|_| vec![Some(1e-4)]).plan
}

/// A plan of measurements.
pub fn plan() -> String {
    text(&planned())
}

/// Times as a run of [`plan`] might have given them.
fn timed() -> Vec<CollectiveCall> {
    let plan = planned();
    let mut rows = Vec::new();
    for (visit, asked) in (0..).zip(&plan.visits) {
        let cell = &plan.cells[asked.cell as usize];
        let slow = match cell.method {
            Method::Default => 3.0,
            _ => 1.0 + f64::from(asked.cell % 3),
        };
        for repetition in 0..asked.warmups + asked.repetitions.min(4) {
            let shake = 1.0 + 0.01 * f64::from((visit * 7 + repetition * 13) % 11);
            rows.push(CollectiveCall {
                visit,
                collective: cell.collective,
                method: cell.method.clone(),
                ran: String::new(),
                procs: cell.procs,
                bytes: cell.bytes,
                repetition,
                first_start_seconds: 0.0,
                last_start_seconds: 1e-6,
                seconds: slow * shake * (1e-5 + cell.bytes as f64 * 1e-9),
                status: if repetition < asked.warmups {
                    ObservationStatus::Warmup
                } else {
                    ObservationStatus::Ok
                },
            });
        }
    }
    rows
}

/// Timed collectives, with what others took of the processors meanwhile.
pub fn measurements() -> String {
    let stretch = |stolen, others| {
        let stretch = Stretch {
            seconds: 0.5,
            host: "n1".into(),
            processors: 4,
            ranks: 8,
            stolen,
            others,
            involuntary_switches: 17,
            load: Some(2.5),
        };
        let told = serde_json::to_string(&stretch).expect("numbers are numbers");
        format!("#@{}={told}", disturbance::KEY)
    };
    let told = [
        stretch(Some(0.0), Some(0.01)),
        stretch(Some(0.4), None),
        stretch(None, Some(0.2)),
        format!("#@{}=1.250", disturbance::WAITED),
        "#@placement=n1 0-3 on 2; n2 0-3 on 0".into(),
    ];
    let text = record_of(&header(), &timed());
    let mut lines: Vec<&str> = text.lines().collect();
    let between = lines.len() / (told.len() + 1);
    for (number, line) in told.iter().enumerate().rev() {
        lines.insert((number + 1) * between, line);
    }
    lines.join("\n") + "\n"
}

/// What was timed, to look decisions up in.
pub fn samples() -> Samples {
    static ONCE: OnceLock<Samples> = OnceLock::new();
    ONCE.get_or_init(|| Samples::gather(&timed())).clone()
}

/// The penalties of following the library's default and what was measured best.
pub fn judged(samples: &Samples) -> Penalties {
    let choices = selection::choose(samples);
    let functions = [DecisionFunction::default(samples), DecisionFunction::measured(&choices)];
    let busy = BusyLinks { procs: 8, bytes: 65_536, seconds: 0.01, slowdown: 1.25 };
    penalty::penalties(samples, &functions, vec![busy], platform(), "barrier")
}

/// Penalties.
pub fn penalties() -> String {
    text(&judged(&samples()))
}

/// What a run has chosen.
pub fn choices() -> String {
    let one = |choice: &selection::Choice| {
        let seconds = choice.seconds;
        let times = (seconds, Some(choice.default_seconds));
        let [linear, binomial] = ["own:linear", "own:binomial"].map(method);
        let other = Alternative { method: binomial, seconds, beats_default: true };
        Chosen {
            doubt: Some(0.1),
            next: Some(RunnerUp { method: linear, seconds: 2.0 * seconds }),
            alternatives: vec![other],
            ..Chosen::new(choice.point, choice.method.clone(), times, Evidence::Confirmed)
        }
    };
    let choices: Vec<Chosen> = selection::choose(&samples()).iter().map(one).collect();
    let confirmed =
        [LoadWay::Rules, LoadWay::Preload].map(|way| Confirmed { way, choices: choices.clone() });
    text(&Choices {
        platform: platform(),
        message_size: BTreeMap::from([(BCAST, BCAST.message_size().to_owned())]),
        prediction: None,
        choices,
        confirmed: confirmed.into(),
    })
}

/// A comparison of two decision functions.
pub fn agreement() -> String {
    let samples = samples();
    let [first, second] = [
        DecisionFunction::default(&samples),
        DecisionFunction::measured(&selection::choose(&samples)),
    ];
    text(&verification::agreement::agreement(&samples, &[], [&first, &second], platform()))
}

/// Links between ranks.
pub fn pairs() -> String {
    text(&made_up::pairs(4))
}

fn point_to_point(
    kind: PointToPointKind,
    bytes: u64,
    messages: u32,
    seconds: f64,
) -> Vec<PointToPoint> {
    let one = |repetition: u32| PointToPoint {
        kind,
        sender: 0,
        receiver: 1,
        bytes,
        messages,
        job: repetition / 4,
        visit: repetition / 2,
        repetition,
        seconds: seconds * (1.0 + 0.01 * f64::from(repetition * 7 % 5)),
        status: if repetition == 0 { ObservationStatus::Warmup } else { ObservationStatus::Ok },
    };
    (0..7).map(one).collect()
}

/// What was timed between two ranks.
pub fn observations() -> String {
    use PointToPointKind::{Clock, ReceiveOverhead, RoundTrip, SendOverhead, SpacedTrain, Train};
    let mut rows = point_to_point(Clock, 0, 1, 4e-8);
    for bytes in [0, 1024, 65_536, 262_144] {
        let gap = 1e-5 + bytes as f64 * 8e-8;
        rows.extend(point_to_point(RoundTrip, bytes, 1, 1e-4 + bytes as f64 * 8.4e-8));
        rows.extend(point_to_point(SendOverhead, bytes, 1, 3e-6 + bytes as f64 * 1e-9));
        rows.extend(point_to_point(ReceiveOverhead, bytes, 1, 4e-6 + bytes as f64 * 2e-9));
        for messages in [2, 16] {
            rows.extend(point_to_point(Train, bytes, messages, 1e-4 + gap * f64::from(messages)));
        }
        rows.extend(point_to_point(SpacedTrain, bytes, 16, 2e-4 + gap));
    }
    record_of(&header(), &rows)
}

/// What was timed between all pairs of four ranks.
pub fn pair_times() -> String {
    let mut rows = Vec::new();
    for (sender, receiver) in (0..4).flat_map(|one| (0..4).map(move |other| (one, other))) {
        for bytes in [0, 65_536] {
            let slow = if receiver == 3 { 2.0 } else { 1.0 };
            let seconds = 1e-4 + bytes as f64 * 8e-8 * slow;
            let times = point_to_point(PointToPointKind::RoundTrip, bytes, 1, seconds);
            let between =
                times.into_iter().take(4).map(|row| PointToPoint { sender, receiver, ..row });
            rows.extend(between.filter(|_| sender != receiver));
        }
    }
    record_of(&header(), &rows)
}

fn group(
    kind: GroupKind,
    procs: u32,
    bytes: u64,
    messages: u32,
    seconds: f64,
) -> Vec<GroupObservation> {
    let one = |repetition: u32| GroupObservation {
        kind,
        operation: (kind == GroupKind::Combine).then_some(Operation::SumDouble),
        procs,
        bytes,
        messages,
        job: 0,
        visit: repetition / 2,
        repetition,
        seconds: seconds * (1.0 + 0.01 * f64::from(repetition * 3 % 7)),
        status: ObservationStatus::Ok,
    };
    (0..4).map(one).collect()
}

/// What was timed of more than two ranks.
pub fn groups() -> String {
    let mut rows = Vec::new();
    for procs in [2, 4, 8] {
        let many = f64::from(procs);
        for messages in [2, 16] {
            rows.extend(group(
                GroupKind::FlatBarrier,
                procs,
                0,
                messages,
                2e-5 * many * f64::from(messages),
            ));
        }
        for bytes in [1024, 65_536] {
            rows.extend(group(
                GroupKind::ChainBcast,
                procs,
                bytes,
                1,
                many * (5e-5 + bytes as f64 * 8e-8),
            ));
            for (kind, messages) in [
                (GroupKind::FanOut, 2),
                (GroupKind::FanOut, 8),
                (GroupKind::FanIn, 2),
                (GroupKind::FanIn, 8),
            ] {
                rows.extend(group(
                    kind,
                    procs,
                    bytes,
                    messages,
                    f64::from(messages) * many * (1e-5 + bytes as f64 * 8e-8),
                ));
            }
        }
    }
    for bytes in [64, 65_536, 1 << 20] {
        rows.extend(group(GroupKind::Combine, 1, bytes, 8, 8.0 * (1e-7 + bytes as f64 * 3e-10)));
    }
    record_of(&header(), &rows)
}

/// All links of a virtual cluster at once.
pub fn links() -> String {
    let mut rows = Vec::new();
    for procs in [2, 4, 8] {
        for bytes in [1024, 65_536] {
            let seconds = 1e-4 + bytes as f64 * 8e-8 * f64::from(procs);
            rows.extend(group(GroupKind::Ring, procs, bytes, 1, seconds));
        }
    }
    record_of(&header(), &rows)
}

/// How far clocks are apart.
pub fn clock_errors() -> String {
    let one = |rank: u32| ClockError {
        rank,
        seconds_after: 0.5 * f64::from(rank),
        round_trip_seconds: 4e-5,
        seen_error_seconds: -2e-7,
        true_error_seconds: rank.is_multiple_of(2).then_some(1e-7),
        drift_ppm: 1.5,
        status: ObservationStatus::Ok,
    };
    record_of(&header(), &(1..6).map(one).collect::<Vec<_>>())
}

fn loading(way: LoadWay, file: &str) -> Loading {
    let (collective, procs, bytes) = (BCAST, 8, 65_536);
    let method = method("own:pipeline,segment=8KiB");
    Loading {
        way,
        file: file.into(),
        gains: vec![Gain {
            collective,
            procs,
            bytes,
            method: method.clone(),
            default_seconds: 0.02,
            tuned_seconds: 0.01,
            speed_up: 2.0,
        }],
        taken_out: vec![TakenOut {
            collective,
            procs,
            bytes: 64,
            method: method.clone(),
            speed_up: 0.9,
        }],
        unexpressed: vec![NotLoaded {
            collective,
            procs,
            bytes: 8,
            method: method.clone(),
            reason: "why".into(),
        }],
        mean_speed_up: 1.5,
        calls_observed: 8,
        calls_as_told: 8,
        harm: Some(Harm {
            points: 1,
            tolerance: 0.05,
            level: 0.05,
            jobs: 4,
            detectable: Some(0.3),
            greatest_slowdown: Some(-0.5),
            slower: vec![Slower {
                collective,
                procs,
                bytes,
                method,
                default_seconds: 0.02,
                loaded_seconds: 0.03,
                slowdown: 0.5,
                p_value: 0.01,
            }],
            too_few: 0,
        }),
        application_seconds: Some(50.0),
    }
}

/// What tuning gained.
pub fn summary() -> String {
    text(&TuningSummary {
        platform: platform(),
        message_size: BTreeMap::from([(BCAST, BCAST.message_size().to_owned())]),
        points: 3,
        loading: loading(LoadWay::Rules, "openmpi.rules"),
        preload: Some(loading(LoadWay::Preload, "profiles")),
        application: Some(Application {
            trace: "usage.json".into(),
            seconds: 60.0,
            collective_seconds: 20.0,
            tunable_seconds: 15.0,
        }),
        regret: Some(Regret { mean: 0.01, greatest: 0.2 }),
        disturbance: Some(Disturbance {
            seconds: 60.0,
            taken: Some(0.09),
            disturbed: 0.3,
            most_taken: 0.05,
            involuntary_switches_per_second: 3.5,
            waited_seconds: 4.0,
        }),
        warnings: vec!["a warning".into()],
    })
}

fn violation(class: Class, better: Better) -> Violation {
    Violation {
        class,
        collective: BCAST,
        procs: 8,
        bytes: 65_536,
        better,
        seconds: 0.02,
        better_seconds: 0.01,
        gain: 1.0,
        p_value: Some(0.001),
        corrected_p_value: Some(0.01),
        calls_seconds: None,
        calls_gain: Some(0.5),
        gains_less_than_a_barrier: Some(false),
    }
}

/// Guidelines that were broken.
pub fn violations() -> String {
    text(&Violations {
        platform: platform(),
        timing: "barrier".into(),
        message_size: BTreeMap::from([(BCAST, BCAST.message_size().to_owned())]),
        verdict: Verdict {
            unit: "the median of a job".into(),
            jobs: 5,
            test: "rank-sum".into(),
            level: 0.05,
            least_gain: 0.05,
            split_tolerance: 0.05,
            comparisons: 12,
            least_p_value: 0.004,
        },
        counts: vec![Count { class: Class::Pattern, collective: BCAST, points: 6, violated: 1 }],
        violations: vec![
            violation(Class::Pattern, Better::Method(method("mockup:bcast_as_scatter_allgather"))),
            violation(Class::Monotony, Better::Bytes(131_072)),
            violation(Class::SplitRobustness, Better::Calls { calls: 4, bytes: 16_384 }),
        ],
        warnings: vec!["a warning".into()],
    })
}
