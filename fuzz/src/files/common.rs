//! What files of every kind have in common, and the small kinds.

use super::made_up;
use std::sync::OnceLock;

use models::presets::preset;
use records::{
    Collective, Method, Point, RangeMethod, Ranges, SizeRange,
    calibration::{Calibration, GapKnot, InsideNode, Parameters, PortGap},
    candidates::{CandidateClass, Candidates, PredictedCandidate},
    choices::Choices,
    document::{self, Document},
    learned::{Learned, LearnedClass, LearnedMethod, LogRatios},
    platform::{ClockSource, Platform},
    profile::{OtherProcs, Profile, pgtune as pgtune_form},
    record::{self, Row},
    usage::{Calls, Usage},
};

pub(super) const PROCS: [u32; 2] = [4, 8];
pub(super) const SIZES: [u64; 3] = [64, 4096, 262_144];
pub(super) const BCAST: Collective = Collective::Bcast;

pub(super) fn text<T: Document>(body: &T) -> String {
    document::text(body).unwrap()
}

pub(super) fn record_of<T: Row>(header: &[(&str, String)], rows: &[T]) -> String {
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

pub(super) fn bytes(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<Vec<u8>> {
    texts.into_iter().map(|text| text.into().into_bytes()).collect()
}

pub(super) fn method(text: &str) -> Method {
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
pub(super) fn header() -> Vec<(&'static str, String)> {
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
    let tuned = include_str!("../../../figures/data/testbed-16/tuned-5.rules");
    bytes([small, "0", tuned])
}

fn ranges(of: &[(u64, u64, &str)]) -> Ranges<RangeMethod> {
    let range = |&(first, last, name): &(u64, u64, &str)| {
        SizeRange::new(first, last, RangeMethod { method: method(name), gain: Some(1.5) })
    };
    of.iter().map(range).collect::<Vec<_>>().try_into().expect("ranges ascend")
}

/// Profiles in Colibri's form.
pub fn profiles() -> Vec<Vec<u8>> {
    let mut first = Profile::new(
        BCAST,
        8,
        ranges(&[
            (0, 8, "own:binomial"),
            (9, 9, "own:linear"),
            (1024, 65536, "own:pipeline,segment=8KiB"),
            (65537, u64::MAX, "mockup:bcast_as_scatter_allgather"),
        ]),
    );
    first.nodes = Some(4);
    first.other_procs = OtherProcs::Interpolated;
    first.library = "Open MPI 4.1.4".into();
    let mut second = Profile::new(Collective::ReduceScatterBlock, 3, ranges(&[(1, 7, "own:ring")]));
    second.other_procs = OtherProcs::NearestBelow;
    bytes([
        text(&first),
        text(&second),
        text(&Profile::new(Collective::Barrier, 2, Ranges::default())),
    ])
}

/// Profiles whose methods the preload library has.
pub fn loadable_profiles() -> Vec<Vec<u8>> {
    let mut profile = Profile::new(
        BCAST,
        8,
        ranges(&[(0, 8, "own:binomial"), (9, 4096, "mockup:bcast_as_scatter_allgather")]),
    );
    profile.other_procs = OtherProcs::NearestBelow;
    let other = Profile::new(Collective::Scan, 3, ranges(&[(1024, u64::MAX, "own:linear")]));
    bytes([text(&profile), text(&other)])
}

/// Profiles in PGMPITuneLib's form.
pub fn pgtune() -> Vec<Vec<u8>> {
    let papers = "# pgtune profile\nMPI_Scatter\n1024 # nb. of. processes\n2 # nb. of mock-up impl.\n\
                  2 scatter_as_bcast\n3 scatter_as_scatterv\n3 # nb. of ranges\n1 1 2 # byte_range\n\
                  8 8 2\n10000 10000 3\n";
    let ranges = ranges(&[(1, 4, "mockup:scan_as_exscan_reduce_local")]);
    let ours = pgtune_form::format(&Profile::new(Collective::Scan, 4, ranges)).unwrap();
    bytes([papers.to_owned(), ours])
}

fn calls(collective: Collective, procs: u32, bytes: u64, name: &str) -> Calls {
    Calls {
        point: Point::flat(collective, procs, bytes),
        method: method(name),
        calls: 80,
        seconds: 0.25,
    }
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

/// What applications have taught.
pub fn learned() -> String {
    let tried = |name: &str, mean: f64| LearnedMethod {
        method: method(name),
        ratios: LogRatios { trials: 9, mean, squares: 0.03 },
    };
    let class = |layout: &str, bytes: u64, tried: Vec<LearnedMethod>| LearnedClass {
        point: Point::new(BCAST, layout.parse().unwrap(), bytes),
        last_bytes: 2 * bytes - 1,
        calls: 4000,
        default_seconds: 0.000_25,
        chosen: tried.first().map_or(Method::Default, |tried| tried.method.clone()),
        tried,
    };
    let compared = vec![tried("own:binomial", -0.5), tried("own:pipeline,segment=8KiB", 0.25)];
    let [library, processor] = ["Open MPI 4.1.4", "AMD EPYC 7543 32-Core Processor"];
    let mut learned = Learned::new(library.into(), processor.into());
    learned.jobs = 3;
    learned.classes = vec![class("8x4", 1024, compared), class("8x4:cyclic", 2048, Vec::new())];
    text(&learned)
}

/// What the preload library tries first.
pub fn candidates() -> String {
    let candidate = |name: &str, seconds: f64| PredictedCandidate {
        method: method(name),
        seconds,
        max_seconds: 3.0 * seconds,
    };
    let class = |bytes: u64| CandidateClass {
        point: Point::new(BCAST, "8x4".parse().unwrap(), bytes),
        last_bytes: 2 * bytes - 1,
        methods: vec![candidate("own:binomial", 0.25), candidate("own:pipeline,segment=8KiB", 0.5)],
    };
    let [calibration, model] = ["run/calibration.json", "refined"];
    let mut all = Candidates::new(calibration.into(), model.into(), "Open MPI 4.1.4".into());
    all.classes = vec![class(1024), class(2048)];
    text(&all)
}

/// Parameters of platforms.
pub fn calibrations() -> Vec<Vec<u8>> {
    let mut whole = made_up::calibration();
    thin(&mut whole.measured);
    made_up::complete(&mut whole);
    thin(&mut whole.measured);
    whole.fitted = Some(whole.measured.clone());
    whole.fits.truncate(3);
    whole.inside = Some(inside(&whole));
    bytes([text(&whole), text(&preset("boba").unwrap())])
}

/// The same inside a node, and two ranks that share its port.
fn inside(whole: &Calibration) -> InsideNode {
    let knots = whole.measured.plogp.knots.iter().take(2);
    let knots = knots.map(|knot| GapKnot { bytes: knot.bytes, gap_seconds: knot.gap_seconds });
    let knots: Vec<GapKnot> = knots.collect();
    let gap = |ranks| PortGap { ranks, both_ways: false, knots: knots.clone() };
    InsideNode {
        measured: whole.measured.clone(),
        fitted: None,
        fits: Vec::new(),
        port: vec![gap(1), gap(2)],
    }
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
        inside: None,
        algorithms: None,
        warnings: Vec::new(),
    }
}

/// A calibration of a platform.
pub fn calibration() -> String {
    text(&Calibration { platform: platform(), ..made_up::calibration() })
}

/// What models decided.
pub fn decisions() -> String {
    let mut all = Choices { platform: platform(), ..made_up::decisions(&PROCS, &SIZES) };
    all.choices.truncate(14);
    text(&all)
}
