//! Every method of a collective.

use records::{Algorithm, Collective, Method, TreePace};

use crate::{
    ScheduledMethod,
    mockups::{self, Mockup},
    tests::plain,
};

/// Those that are tried.
pub const COLLECTIVES: [Collective; 11] = [
    Collective::Allreduce,
    Collective::Reduce,
    Collective::Scan,
    Collective::Exscan,
    Collective::ReduceScatter,
    Collective::ReduceScatterBlock,
    Collective::Bcast,
    Collective::Gather,
    Collective::Allgather,
    Collective::Scatter,
    Collective::Alltoall,
];

#[derive(Debug, Clone, Copy)]
pub enum Tried {
    Own(ScheduledMethod),
    Mockup(&'static Mockup),
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tried::Own(method) => write!(f, "{} {method}", method.collective()),
            Tried::Mockup(mockup) => mockup.fmt(f),
        }
    }
}

/// Those of memory that the ranks of a node share, alone and inside nodes.
pub fn shared_methods(collective: Collective) -> Vec<Tried> {
    let alone = schedules::shared_of_collective(collective).into_iter().flat_map(|entry| {
        let segments: &[u64] = if entry.segmented { &[0, 5] } else { &[0] };
        segments.iter().map(move |segment| plain(collective, entry.algorithm, *segment))
    });
    let composed = ["two-level", "multi-lane"].into_iter().flat_map(|scheme| {
        ["cells", "slices", "slots"].map(|inside| format!("own:{scheme},intra=shared-{inside}"))
    });
    alone.chain(node_aware(collective, composed)).map(Tried::Own).collect()
}

/// Those of these names that a collective has.
fn node_aware(
    collective: Collective,
    names: impl Iterator<Item = impl AsRef<str>>,
) -> impl Iterator<Item = ScheduledMethod> {
    names.filter_map(move |name| match name.as_ref().parse().unwrap() {
        Method::Own(method) => ScheduledMethod::new(collective, &method).ok(),
        other => panic!("{other}"),
    })
}

/// Every method of a collective by messages, with segments where it has any, other fan-outs and on nodes.
pub fn methods(collective: Collective) -> Vec<Tried> {
    let mut all = Vec::new();
    for entry in schedules::of_collective(collective) {
        let segments: &[u64] = if entry.segmented { &[0, 5] } else { &[0] };
        all.extend(segments.iter().map(|segment| plain(collective, entry.algorithm, *segment)));
        if entry.fanned {
            let is_fitted = entry.algorithm == Algorithm::Fitted;
            let pace = if is_fitted { TreePace { trip: 5, gap: 2 } } else { TreePace::EVEN };
            let plain = records::OwnMethod::plain(entry.algorithm);
            let other = records::OwnMethod { fan_out: 3, pace, ..plain };
            all.push(ScheduledMethod::new(collective, &other).unwrap());
        }
    }
    let of_nodes = [
        "own:two-level,segment=5",
        "own:two-level",
        "own:two-level,inter=two-trees,segment=5",
        "own:multi-lane,segment=5",
        "own:multi-lane",
        "own:ring,order=node",
        "own:binomial,order=node",
        "own:fitted,order=node",
        "own:circulant,order=node,segment=5",
    ];
    all.extend(node_aware(collective, of_nodes.into_iter()));
    let mockups = mockups::of_collective(collective).map(Tried::Mockup);
    all.into_iter().map(Tried::Own).chain(mockups).collect()
}
