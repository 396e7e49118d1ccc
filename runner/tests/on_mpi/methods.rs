//! What is tried: our algorithms, and the collectives that have any.

use colibri_runner::ScheduledMethod;
use records::{Algorithm, Collective, Method, TreePace};

/// By the registry's word, for what the executor must refuse. `has_gaps`: elements that are combined don't follow each
/// other as their bytes.
pub fn can(method: &ScheduledMethod, has_gaps: bool, commutative: bool, ranks: u32) -> bool {
    let text = method.to_string();
    if text.contains("shared-") && has_gaps {
        return false;
    }
    if text.starts_with("own:shared-") {
        // More are on two nodes.
        return ranks <= RANKS_OF_NODE;
    }
    if is_node_aware(&text) {
        return commutative;
    }
    let name = text.trim_start_matches("own:").split(',').next().unwrap();
    let entry = schedules::find_named(method.collective(), name).unwrap();
    (commutative || !entry.requirements.commutative)
        && (!entry.requirements.even || ranks == 1 || ranks.is_multiple_of(2))
}

/// So many ranks, from the first on, are on one node.
const RANKS_OF_NODE: u32 = 2;

/// An algorithm without parameters other than segments of so many bytes (0: none).
pub fn plain(collective: Collective, algorithm: Algorithm, segment_bytes: u64) -> ScheduledMethod {
    let method = records::OwnMethod::plain(algorithm).with_segment(segment_bytes);
    ScheduledMethod::new(collective, &method).unwrap()
}

fn with_fan_out(collective: Collective, algorithm: Algorithm, fan_out: u32) -> ScheduledMethod {
    let method = records::OwnMethod { fan_out, ..records::OwnMethod::plain(algorithm) };
    ScheduledMethod::new(collective, &method).unwrap()
}

/// Those of memory that the ranks of a node share, alone, in groups and inside nodes.
pub fn shared_methods(collective: Collective) -> Vec<ScheduledMethod> {
    let alone = schedules::shared_of_collective(collective).into_iter().flat_map(|entry| {
        let segments = if entry.segmented { &[0, 40][..] } else { &[0] };
        let plain =
            segments.iter().map(move |segment| plain(collective, entry.algorithm, *segment));
        let in_groups = entry.fanned.then(|| with_fan_out(collective, entry.algorithm, 2));
        plain.chain(in_groups)
    });
    let inside = ["shared-flags", "shared-cells", "shared-slices", "shared-slots"];
    let composed = ["two-level", "multi-lane"].into_iter().flat_map(|scheme| {
        inside.map(|inside| named(collective, &format!("own:{scheme},intra={inside}")))
    });
    alone.chain(composed.flatten()).collect()
}

/// All algorithms of messages; those with segments also with several.
pub fn methods(collective: Collective) -> Vec<ScheduledMethod> {
    let segments = |segmented: bool| if segmented { &[0, 40][..] } else { &[0] };
    schedules::of_collective(collective)
        .flat_map(|entry| segments(entry.segmented).iter().map(move |segment| (entry, *segment)))
        .map(|(entry, segment)| plain(collective, entry.algorithm, segment))
        .chain(shaped(collective))
        .chain(node_aware(collective))
        .collect()
}

/// Those that have a fan-out with another one, and trees for messages that take long.
fn shaped(collective: Collective) -> impl Iterator<Item = ScheduledMethod> {
    let fanned = schedules::of_collective(collective).filter(|entry| entry.fanned);
    fanned.map(move |entry| {
        let pace = match entry.algorithm {
            Algorithm::Fitted => TreePace { trip: 5, gap: 2 },
            _ => TreePace::EVEN,
        };
        // Streams of segments: there is another one where the message is cut.
        let segment_bytes = if entry.algorithm == Algorithm::Circulant { 40 } else { 0 };
        let plain = records::OwnMethod::plain(entry.algorithm);
        let shaped = records::OwnMethod { fan_out: 3, pace, segment_bytes, ..plain };
        ScheduledMethod::new(collective, &shaped).unwrap()
    })
}

fn is_node_aware(method: &str) -> bool {
    ["two-level", "multi-lane", "order=node"].iter().any(|part| method.contains(part))
}

/// Those that look at nodes, with segments where there are any.
fn node_aware(collective: Collective) -> impl Iterator<Item = ScheduledMethod> {
    let texts = [
        ["own:two-level,segment=40", "own:two-level,intra=linear"],
        ["own:two-level,inter=two-trees,segment=40", "own:two-level,inter=binomial"],
        ["own:multi-lane,segment=40", "own:multi-lane"],
        ["own:linear,order=node", "own:ring,order=node"],
    ];
    texts
        .into_iter()
        .filter_map(move |texts| texts.into_iter().find_map(|text| named(collective, text)))
}

/// One that looks at nodes, if the collective has it.
fn named(collective: Collective, text: &str) -> Option<ScheduledMethod> {
    match text.parse().unwrap() {
        Method::Own(method) => ScheduledMethod::new(collective, &method).ok(),
        other => panic!("{other}"),
    }
}

/// The collectives that have algorithms of ours.
pub fn collectives() -> impl Iterator<Item = Collective> {
    let has_own = |collective: &Collective| schedules::of_collective(*collective).next().is_some();
    Collective::ALL.into_iter().filter(has_own)
}
