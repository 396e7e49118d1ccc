//! What is tried: our algorithms, and the collectives that have any.

use colibri_runner::OwnMethod;
use records::{Algorithm, Collective, Method, ParametrizedAlgorithm, TreePace};
use schedules::Entry;

/// By the registry's word, for what the executor must refuse.
pub fn can(method: &OwnMethod, commutative: bool, ranks: u32) -> bool {
    let text = method.to_string();
    if is_node_aware(&text) {
        return commutative;
    }
    let name = text.trim_start_matches("own:").split('(').next().unwrap();
    let entry = schedules::find_named(method.collective(), name).unwrap();
    (commutative || !entry.requirements.commutative)
        && (!entry.requirements.even || ranks == 1 || ranks.is_multiple_of(2))
}

/// All algorithms; those with segments also with several.
pub fn methods(collective: Collective) -> Vec<OwnMethod> {
    let segments = |segmented: bool| if segmented { &[0, 40][..] } else { &[0] };
    all_entries(collective)
        .flat_map(|entry| segments(entry.segmented).iter().map(move |segment| (entry, *segment)))
        .map(|(entry, segment)| OwnMethod::from_entry(entry, segment).unwrap())
        .chain(shaped(collective))
        .chain(node_aware(collective))
        .collect()
}

/// Those by messages, and by memory that the ranks of a node share.
fn all_entries(collective: Collective) -> impl Iterator<Item = &'static Entry> {
    schedules::of_collective(collective).chain(schedules::shared_of_collective(collective))
}

/// Those that have a fan-out with another one, and trees for messages that take long.
fn shaped(collective: Collective) -> impl Iterator<Item = OwnMethod> {
    let fanned = schedules::of_collective(collective).filter(|entry| entry.fanned);
    fanned.map(move |entry| {
        let pace = match entry.algorithm {
            Algorithm::Fitted => TreePace { trip: 5, gap: 2 },
            _ => TreePace::EVEN,
        };
        // Streams of segments: there is another one where the message is cut.
        let segment_bytes = if entry.algorithm == Algorithm::Circulant { 40 } else { 0 };
        let plain = ParametrizedAlgorithm::plain(entry.algorithm);
        OwnMethod::shaped(
            collective,
            &ParametrizedAlgorithm { fan_out: 3, pace, segment_bytes, ..plain },
        )
        .unwrap()
    })
}

fn is_node_aware(method: &str) -> bool {
    ["two-level", "multi-lane", "order=node"].iter().any(|part| method.contains(part))
}

/// Those that look at nodes, with segments where there are any.
fn node_aware(collective: Collective) -> impl Iterator<Item = OwnMethod> {
    let texts = [
        ["own:two-level,segment=40", "own:two-level,intra=linear"],
        ["own:two-level,inter=two-trees,segment=40", "own:two-level,inter=binomial"],
        ["own:multi-lane,segment=40", "own:multi-lane"],
        ["own:linear,order=node", "own:ring,order=node"],
        // Memory inside the nodes, where the collective has such a part.
        ["own:two-level,intra=shared-cells", "own:two-level,intra=shared-slices"],
        ["own:two-level,intra=shared-flags", "own:two-level,intra=shared-slots"],
        ["own:multi-lane,intra=shared-cells", "own:multi-lane,intra=shared-slices"],
        ["own:multi-lane,intra=shared-slots", "own:multi-lane,intra=shared-flags"],
    ];
    let method = move |text: &str| match text.parse().unwrap() {
        Method::NodeAware(method) => OwnMethod::node_aware(collective, &method).ok(),
        other => panic!("{other}"),
    };
    texts.into_iter().filter_map(move |texts| texts.into_iter().find_map(method))
}

/// The collectives that have algorithms of ours.
pub fn collectives() -> impl Iterator<Item = Collective> {
    let has_own = |collective: &Collective| schedules::of_collective(*collective).next().is_some();
    Collective::ALL.into_iter().filter(has_own)
}
