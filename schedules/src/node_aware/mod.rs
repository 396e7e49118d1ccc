//! Algorithms that look at the nodes: compositions of other algorithms, each among some ranks.
//!
//! - *two-level*: one rank of each node, its leader, works between the nodes; the others work with
//!   their leader. The root is the leader of its node.
//! - *multi-lane*: every rank works between the nodes with its share, in a lane that holds one rank
//!   of each node (Träff, Hunold, "Decomposing MPI Collectives for Exploiting Multi-lane
//!   Communication", CLUSTER 2020). Where nodes have unequal numbers of ranks, the operation is not
//!   commutative, or there is less than an element per rank, it is two-level.
//! - *node-order*: another algorithm, on ranks renumbered by node, so that neighbours in a ring or a
//!   chain are on the same node as far as can be.
//!
//! [`Call::inter`] names the algorithm between nodes, [`Call::intra`] the one inside. A phase of a
//! collective that has no algorithm of the name, or whose group that can't serve, takes what serves
//! all calls. Segments flow through all phases one after the other: a rank begins with the next
//! one as soon as it has done its part of this one. Two trees between nodes have segments of their
//! own: `leaders_trees`.
//!
//! Blocks of nodes with fewer ranks than others are filled up with copies of another block, so that
//! every phase has equal blocks.

mod copies;
mod group;
mod in_order;
mod leaders_trees;
mod multi_lane;
mod plan;
mod site;
mod two_level;

use std::marker::PhantomData;

use records::{Algorithm, Collective};

use self::{
    leaders_trees::CHILDREN,
    plan::{Family, PhasePlan},
    site::CallSite,
};
use crate::{
    Call, ElementSpan, Entry, NodeChecks, NodesOfRanks, Program, Round,
    algorithms::{HalvesDown, HalvesUp},
    find, find_shared,
    program::Extent,
};

const BCAST: usize = Collective::Bcast as usize;
const REDUCE: usize = Collective::Reduce as usize;
const ALLREDUCE: usize = Collective::Allreduce as usize;
const ALLGATHER: usize = Collective::Allgather as usize;
const GATHER: usize = Collective::Gather as usize;
const SCATTER: usize = Collective::Scatter as usize;
const ALLTOALL: usize = Collective::Alltoall as usize;
const REDUCE_SCATTER: usize = Collective::ReduceScatterBlock as usize;
const BARRIER: usize = Collective::Barrier as usize;

const fn entry<F: Family, const COLLECTIVE: usize>() -> Entry {
    let collective = Collective::ALL[COLLECTIVE];
    let entry = Entry::new::<ByNode<F, COLLECTIVE>>(collective, F::ALGORITHM, F::DESCRIPTION);
    match is_segmented(collective) {
        true => entry.node_aware(CHECKS).segmented(),
        false => entry.node_aware(CHECKS),
    }
}

/// Whether the vector may go through the phases piece by piece.
const fn is_segmented(collective: Collective) -> bool {
    matches!(collective, Collective::Bcast | Collective::Reduce | Collective::Allreduce)
}

macro_rules! entries {
    ($($family:ty),*) => {
        &[$(
            entry::<$family, BCAST>(),
            entry::<$family, REDUCE>(),
            entry::<$family, ALLREDUCE>(),
            entry::<$family, ALLGATHER>(),
            entry::<$family, GATHER>(),
            entry::<$family, SCATTER>(),
            entry::<$family, ALLTOALL>(),
            entry::<$family, REDUCE_SCATTER>(),
            entry::<$family, BARRIER>(),
        )*]
    };
}

/// Every node-aware algorithm.
pub static NODE_AWARE: &[Entry] =
    entries![two_level::TwoLevel, multi_lane::MultiLane, in_order::NodeOrder];

/// The collectives of which a node-aware algorithm has phases: between nodes, then inside them.
pub fn parts(entry: &Entry) -> (&'static [Collective], &'static [Collective]) {
    use Collective::{
        Allgather, Allreduce, Alltoall, Barrier, Bcast, Gather, Reduce, ReduceScatterBlock, Scatter,
    };
    match (entry.algorithm, entry.collective) {
        (_, Barrier) => (&[Barrier], &[Barrier]),
        (Algorithm::NodeOrder, Bcast) => (&[Bcast], &[]),
        (Algorithm::NodeOrder, Reduce) => (&[Reduce], &[]),
        (Algorithm::NodeOrder, Allreduce) => (&[Allreduce], &[]),
        (Algorithm::NodeOrder, Allgather) => (&[Allgather], &[]),
        (Algorithm::NodeOrder, Gather) => (&[Gather], &[]),
        (Algorithm::NodeOrder, Scatter) => (&[Scatter], &[]),
        (Algorithm::NodeOrder, Alltoall) => (&[Alltoall], &[]),
        (Algorithm::NodeOrder, ReduceScatterBlock) => (&[ReduceScatterBlock], &[]),
        (Algorithm::TwoLevel, Bcast) => (&[Bcast], &[Bcast]),
        (Algorithm::TwoLevel, Reduce) => (&[Reduce], &[Reduce]),
        (Algorithm::TwoLevel, Allreduce) => (&[Allreduce], &[Reduce, Bcast]),
        (Algorithm::TwoLevel, Allgather) => (&[Allgather], &[Gather, Bcast]),
        (Algorithm::TwoLevel, Gather) => (&[Gather], &[Gather]),
        (Algorithm::TwoLevel, Scatter) => (&[Scatter], &[Scatter]),
        (Algorithm::TwoLevel, Alltoall) => (&[Alltoall], &[Gather, Scatter]),
        (Algorithm::TwoLevel, ReduceScatterBlock) => (&[ReduceScatterBlock], &[Reduce, Scatter]),
        (Algorithm::MultiLane, Bcast) => (&[Bcast], &[Scatter, Allgather]),
        (Algorithm::MultiLane, Reduce) => (&[Reduce], &[ReduceScatterBlock, Gather]),
        (Algorithm::MultiLane, Allreduce) => (&[Allreduce], &[ReduceScatterBlock, Allgather]),
        (Algorithm::MultiLane, Allgather) => (&[Allgather], &[Allgather]),
        (Algorithm::MultiLane, Gather) => (&[Gather], &[Gather]),
        (Algorithm::MultiLane, Scatter) => (&[Scatter], &[Scatter]),
        (Algorithm::MultiLane, Alltoall) => (&[Alltoall], &[Alltoall]),
        (Algorithm::MultiLane, ReduceScatterBlock) => {
            (&[ReduceScatterBlock], &[ReduceScatterBlock])
        }
        _ => (&[], &[]),
    }
}

/// As [`find_part`], of phases inside nodes: with the algorithms of shared memory. By the name of one, every phase
/// takes that of its own collective.
pub fn find_part_inside(
    collectives: &[Collective],
    algorithm: Algorithm,
) -> Option<&'static Entry> {
    let find = |collective: &Collective| find_shared(*collective, algorithm);
    find_part(collectives, algorithm).or_else(|| collectives.iter().find_map(find))
}

/// The algorithm of a name among those that phases may take, if one of them has it.
pub fn find_part(collectives: &[Collective], algorithm: Algorithm) -> Option<&'static Entry> {
    collectives.iter().find_map(|collective| find(*collective, algorithm))
}

/// Why a node-aware algorithm can't serve a call.
const CHECKS: NodeChecks = NodeChecks { on_any: problem_on_any, on_these: problem_on_these };

/// The node-aware algorithm for a collective, if there is one: two-level, multi-lane or node-order.
pub fn find_node_aware(collective: Collective, algorithm: Algorithm) -> Option<&'static Entry> {
    let is_it = |entry: &&Entry| (entry.collective, entry.algorithm) == (collective, algorithm);
    NODE_AWARE.iter().find(is_it)
}

fn problem_on_any(entry: &Entry, call: &Call<'_>) -> Option<String> {
    let inner = call.inter.filter(|_| entry.algorithm == Algorithm::NodeOrder);
    let inner = inner.and_then(|inter| find_part(parts(entry).0, inter));
    if let Some(problem) = inner.unwrap_or(entry).fan_out_problem(call.fan_out) {
        return Some(problem);
    }
    let is_ordered = entry.collective.combines() && !call.commutative;
    if is_ordered && !call.nodes.is_some_and(|nodes| keeps_order(entry, nodes)) {
        let problem = "the operation is not commutative; operands would change their order";
        return Some(problem.into());
    }
    let inner = inner.filter(|inner| !plan::serves(inner, call, call.ranks))?;
    Some(format!("{} can't serve {} ranks or this operation", inner.name, call.ranks))
}

/// Whether operands keep the order of ranks: those of a node follow each other.
fn keeps_order(entry: &Entry, nodes: &NodesOfRanks) -> bool {
    nodes.is_block() && entry.collective != Collective::ReduceScatterBlock
}

fn problem_on_these(call: &Call<'_>) -> Option<String> {
    match call.nodes {
        None => Some("the nodes of the ranks are not known".into()),
        Some(nodes) if nodes.ranks() != call.ranks => {
            Some(format!("the nodes of {} ranks for {} ranks", nodes.ranks(), call.ranks))
        }
        Some(_) => None,
    }
}

/// Phases, or what is faster than phases: see `leaders_trees`.
enum ByNode<F, const COLLECTIVE: usize> {
    Phases(Composed<F, COLLECTIVE>),
    TreesDown(HalvesDown<CHILDREN>),
    TreesUp(HalvesUp<CHILDREN>),
}

impl<F: Family, const COLLECTIVE: usize> Program for ByNode<F, COLLECTIVE> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let collective = Collective::ALL[COLLECTIVE];
        let nodes = call.nodes.filter(|_| leaders_trees::serve(F::ALGORITHM, collective, call));
        let Some(nodes) = nodes else { return ByNode::Phases(Composed::new(call, rank)) };
        let positions = leaders_trees::positions(call, nodes, rank);
        match collective {
            Collective::Reduce => ByNode::TreesUp(HalvesUp::new(call, rank, positions)),
            _ => ByNode::TreesDown(HalvesDown::new(call, positions)),
        }
    }

    fn rounds(&self) -> u64 {
        match self {
            ByNode::Phases(phases) => phases.rounds(),
            ByNode::TreesDown(halves) => halves.rounds(),
            ByNode::TreesUp(halves) => halves.rounds(),
        }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        match self {
            ByNode::Phases(phases) => phases.round(call, index, out),
            ByNode::TreesDown(halves) => halves.round(call, index, out),
            ByNode::TreesUp(halves) => halves.round(call, index, out),
        }
    }

    fn slots(&self) -> u32 {
        match self {
            ByNode::Phases(phases) => phases.slots(),
            ByNode::TreesDown(halves) => halves.slots(),
            ByNode::TreesUp(halves) => halves.slots(),
        }
    }

    fn temporary(&self, call: &Call<'_>, scratch: &mut Round) -> u64 {
        match self {
            ByNode::Phases(phases) => phases.temporary(call, scratch),
            ByNode::TreesDown(_) => 0,
            ByNode::TreesUp(halves) => halves.temporary(),
        }
    }

    fn destinations(&self) -> u32 {
        match self {
            ByNode::TreesDown(halves) => halves.destinations(),
            ByNode::Phases(_) | ByNode::TreesUp(_) => 1,
        }
    }

    fn turns(&self) -> u64 {
        match self {
            ByNode::Phases(phases) => phases.turns(),
            ByNode::TreesDown(_) | ByNode::TreesUp(_) => 0,
        }
    }
}

/// The phases of a collective, once or for each segment.
struct Composed<F, const COLLECTIVE: usize> {
    rank: u32,
    whole: ElementSpan,
    segment: u64,
    passes: u64,
    /// Rounds of each pass but the last, and of the last.
    rounds: (u64, u64),
    /// Turns with shared memory of each pass but the last, and of the last.
    turns: (u64, u64),
    slots: u32,
    family: PhantomData<F>,
}

impl<F: Family, const COLLECTIVE: usize> Composed<F, COLLECTIVE> {
    fn plan(&self, call: &Call<'_>, pass: u64) -> PhasePlan {
        let mut plan = PhasePlan::default();
        if let Some(nodes) = call.nodes {
            let span = self.whole.segment(pass, self.segment);
            let collective = Collective::ALL[COLLECTIVE];
            F::plan(collective, &CallSite { call, nodes, rank: self.rank, span }, &mut plan);
        }
        plan
    }

    /// Of the first pass and of the last, where these differ.
    fn kinds(&self) -> impl Iterator<Item = u64> + use<F, COLLECTIVE> {
        let last = self.passes.saturating_sub(1);
        [Some(0), (last > 0).then_some(last)]
            .into_iter()
            .flatten()
            .take(self.passes.min(2) as usize)
    }
}

impl<F: Family, const COLLECTIVE: usize> Program for Composed<F, COLLECTIVE> {
    fn new(call: &Call<'_>, rank: u32) -> Self {
        let whole = ElementSpan { start: 0, count: call.count };
        let cut = is_segmented(Collective::ALL[COLLECTIVE]) && F::CUTS;
        let segment = if cut { call.segment } else { 0 };
        let passes = if cut { whole.segments(segment) } else { 1 };
        let mut made = Composed {
            rank,
            whole,
            segment,
            passes,
            rounds: (0, 0),
            turns: (0, 0),
            slots: 0,
            family: PhantomData,
        };
        for pass in made.kinds() {
            let plan = made.plan(call, pass);
            let Extent { rounds, slots, turns } = plan.extent(call, rank);
            made.slots = made.slots.max(slots);
            if pass == 0 {
                (made.rounds.0, made.turns.0) = (rounds, turns);
            }
            (made.rounds.1, made.turns.1) = (rounds, turns);
        }
        made
    }

    fn rounds(&self) -> u64 {
        match self.passes {
            0 => 0,
            passes => (passes - 1) * self.rounds.0 + self.rounds.1,
        }
    }

    fn round(&self, call: &Call<'_>, index: u64, out: &mut Round) {
        let pass = index.checked_div(self.rounds.0).unwrap_or(self.passes).min(self.passes - 1);
        let is_last = index + 1 == self.rounds();
        let (first, turn) = (pass * self.rounds.0, pass * self.turns.0);
        self.plan(call, pass).round(call, self.rank, index - first, turn, out);
        out.become_part(self.slots, is_last, |step| step);
    }

    fn slots(&self) -> u32 {
        self.slots
    }

    fn turns(&self) -> u64 {
        match self.passes {
            0 => 0,
            passes => (passes - 1) * self.turns.0 + self.turns.1,
        }
    }

    fn temporary(&self, call: &Call<'_>, scratch: &mut Round) -> u64 {
        let of_pass = |pass| self.plan(call, pass).temporary(call, self.rank, scratch);
        self.kinds().map(of_pass).max().unwrap_or_default()
    }
}
