//! Every rank of a node works between the nodes, with its share.

use records::{Algorithm, Collective};

use super::{
    copies::BlockOrder,
    group::RankGroup,
    plan::{Family, GroupPhase, PhasePlan},
    site::{CallSite, MemoryPlace, RECEIVE, SCRATCH, SEND},
    two_level,
};

/// See [`node_aware`](super).
pub(super) struct MultiLane;

impl Family for MultiLane {
    const ALGORITHM: Algorithm = Algorithm::MultiLane;
    const DESCRIPTION: &'static str = "every rank of a node carries its share between nodes";

    fn plan(collective: Collective, site: &CallSite<'_>, plan: &mut PhasePlan) {
        let share =
            site.nodes.per_node().map_or(0, |per_node| site.span.count / u64::from(per_node));
        let is_cut =
            matches!(collective, Collective::Bcast | Collective::Reduce | Collective::Allreduce);
        let ordered = collective.combines() && !site.call.commutative;
        if site.nodes.per_node().is_none() || ordered || (is_cut && share == 0) {
            return two_level::TwoLevel::plan(collective, site, plan);
        }
        match collective {
            Collective::Bcast => bcast(site, plan),
            Collective::Reduce => reduce(site, plan),
            Collective::Allreduce => allreduce(site, plan),
            Collective::Allgather => allgather(site, plan),
            Collective::Gather => gather(site, plan),
            Collective::Scatter => scatter(site, plan),
            Collective::Alltoall => alltoall(site, plan),
            Collective::ReduceScatterBlock => reduce_scatter(site, plan),
            _ => two_level::barrier(site, plan),
        }
    }
}

/// This node's ranks; the root's local number is that of the root.
fn node(site: &CallSite<'_>, collective: Collective, count: u64) -> GroupPhase {
    let root = if collective.is_rooted() { site.nodes.local(site.call.root) } else { 0 };
    GroupPhase::new(collective, RankGroup::Node(site.node()), root, count)
}

/// The ranks with this local number; that on the root's node is the root.
fn lane(site: &CallSite<'_>, collective: Collective, count: u64) -> GroupPhase {
    let root = if collective.is_rooted() { site.root_node() } else { 0 };
    GroupPhase::new(collective, RankGroup::Lane(site.local()), root, count)
}

/// Elements of a rank's share: all shares are equal, and together no less than the vector.
fn share(site: &CallSite<'_>) -> u64 {
    site.span.count.div_ceil(site.members())
}

/// What the shares have more than the vector; below a share's elements times the ranks of a node.
fn surplus(site: &CallSite<'_>) -> u64 {
    share(site) * site.members() - site.span.count
}

/// Blocks of all ranks, in elements: those of a lane, of a node, of all.
fn of_lane(site: &CallSite<'_>) -> u64 {
    u64::from(site.nodes.count()) * site.call.count
}

fn of_all(site: &CallSite<'_>) -> u64 {
    site.all() * site.call.count
}

/// The vector with its surplus, the same as its beginning, in scratch memory from `start` on.
fn widened(site: &CallSite<'_>, input: MemoryPlace, start: u64, plan: &mut PhasePlan) {
    let count = site.span.count;
    plan.copy(BlockOrder::Whole, (input, SCRATCH.plus(start)), count);
    plan.copy(BlockOrder::Whole, (input, SCRATCH.plus(start + count)), surplus(site));
}

fn bcast(site: &CallSite<'_>, plan: &mut PhasePlan) {
    if site.call.ranks == 1 {
        return;
    }
    let (data, share) = (RECEIVE.plus(site.span.start), share(site));
    let exact = surplus(site) == 0;
    let shares = if exact { data } else { SCRATCH };
    let own = shares.plus(u64::from(site.local()) * share);
    if !exact {
        plan.scratch = share * site.members();
        if site.is_root() {
            widened(site, data, 0, plan);
        }
    }
    if site.node() == site.root_node() {
        let dealt = node(site, Collective::Scatter, share).from(shares).into(own);
        plan.then(dealt.in_place(site.is_root()));
    }
    plan.then(lane(site, Collective::Bcast, share).into(own));
    let collected = node(site, Collective::Allgather, share);
    if exact && site.is_root() {
        // It has them, and what it sends may be read-only.
        plan.scratch = share * site.members();
        plan.then(collected.from(own).into(SCRATCH));
    } else {
        plan.then(collected.into(shares).in_place(true));
    }
    if !exact && !site.is_root() {
        plan.copy(BlockOrder::Whole, (shares, data), site.span.count);
    }
}

/// The input of a reduction as shares: the user's, or widened behind two shares of scratch memory.
fn shares_of_input(site: &CallSite<'_>, plan: &mut PhasePlan) -> MemoryPlace {
    let input = site.input().plus(site.span.start);
    let share = share(site);
    plan.scratch = 2 * share;
    if surplus(site) == 0 {
        return input;
    }
    plan.scratch += share * site.members();
    widened(site, input, 2 * share, plan);
    SCRATCH.plus(2 * share)
}

fn reduce(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (result, share) = (RECEIVE.plus(site.span.start), share(site));
    let shares = shares_of_input(site, plan);
    let (of_node, of_lane) = (SCRATCH, SCRATCH.plus(share));
    plan.then(node(site, Collective::ReduceScatterBlock, share).from(shares).into(of_node));
    plan.then(lane(site, Collective::Reduce, share).from(of_node).into(of_lane));
    if site.node() != site.root_node() {
        return;
    }
    let collected = node(site, Collective::Gather, share).from(of_lane);
    let exact = surplus(site) == 0;
    let widened = SCRATCH.plus(2 * share);
    plan.then(collected.into(if exact { result } else { widened }));
    if !exact && site.is_root() {
        plan.copy(BlockOrder::Whole, (widened, result), site.span.count);
    }
}

fn allreduce(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (result, share) = (RECEIVE.plus(site.span.start), share(site));
    let shares = shares_of_input(site, plan);
    let (own, exact) = (SCRATCH, surplus(site) == 0);
    plan.then(node(site, Collective::ReduceScatterBlock, share).from(shares).into(own));
    plan.then(lane(site, Collective::Allreduce, share).into(own).in_place(true));
    let widened = SCRATCH.plus(2 * share);
    let all = if exact { result } else { widened };
    plan.then(node(site, Collective::Allgather, share).from(own).into(all));
    if !exact {
        plan.copy(BlockOrder::Whole, (widened, result), site.span.count);
    }
}

fn allgather(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let direct = site.nodes.is_cyclic();
    let all = if direct { RECEIVE } else { SCRATCH };
    plan.scratch = if direct { 0 } else { of_all(site) };
    let own = all.plus(u64::from(site.local()) * of_lane(site));
    let in_place = direct && site.call.in_place;
    let between = lane(site, Collective::Allgather, site.call.count).from(site.own_block());
    plan.then(between.into(own).in_place(in_place));
    plan.then(node(site, Collective::Allgather, of_lane(site)).into(all).in_place(true));
    if !direct {
        plan.copy(BlockOrder::FromLanes, (all, RECEIVE), site.call.count);
    }
}

fn gather(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let between = lane(site, Collective::Gather, site.call.count);
    if site.node() != site.root_node() {
        return plan.then(between);
    }
    let of_lane = of_lane(site);
    plan.scratch = of_lane;
    let send = if site.is_root() { site.own_block() } else { SEND };
    plan.then(between.from(send).into(SCRATCH));
    let collected = node(site, Collective::Gather, of_lane).from(SCRATCH);
    if !site.is_root() || site.nodes.is_cyclic() {
        return plan.then(collected);
    }
    let all = SCRATCH.plus(of_lane);
    plan.scratch += of_all(site);
    plan.then(collected.into(all));
    plan.copy(BlockOrder::FromLanes, (all, RECEIVE), site.call.count);
}

fn scatter(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let between = lane(site, Collective::Scatter, site.call.count);
    if site.node() != site.root_node() {
        return plan.then(between);
    }
    let of_lane = of_lane(site);
    plan.scratch = of_lane;
    let dealt = node(site, Collective::Scatter, of_lane).into(SCRATCH);
    if site.is_root() {
        let mut all = SEND;
        if !site.nodes.is_cyclic() {
            all = SCRATCH.plus(of_lane);
            plan.scratch += of_all(site);
            plan.copy(BlockOrder::ToLanes, (SEND, all), site.call.count);
        }
        plan.then(dealt.from(all));
        plan.then(between.from(SCRATCH).in_place(site.call.in_place));
    } else {
        plan.then(dealt);
        plan.then(between.from(SCRATCH));
    }
}

/// What goes to a node travels in the lane of its sender, and there to its receiver.
fn alltoall(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (block, of_all) = (site.call.count, of_all(site));
    let (first, second) = (SCRATCH, SCRATCH.plus(of_all));
    plan.scratch = 2 * of_all;
    let mut by_node = site.input();
    if !site.nodes.is_block() {
        plan.copy(BlockOrder::ToNodes, (by_node, first), block);
        by_node = first;
    }
    let of_pair = site.members() * block;
    plan.then(lane(site, Collective::Alltoall, of_pair).from(by_node).into(second));
    let (rows, columns) = (site.nodes.count(), site.members() as u32);
    plan.copy(BlockOrder::Transposed { rows, columns }, (second, first), block);
    plan.then(node(site, Collective::Alltoall, of_lane(site)).from(first).into(second));
    plan.copy(BlockOrder::FromLanes, (second, RECEIVE), block);
}

fn reduce_scatter(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (block, of_lane) = (site.call.count, of_lane(site));
    plan.scratch = of_lane;
    let mut shares = site.input();
    if !site.nodes.is_cyclic() {
        plan.copy(BlockOrder::ToLanes, (shares, SCRATCH.plus(of_lane)), block);
        shares = SCRATCH.plus(of_lane);
        plan.scratch += of_all(site);
    }
    plan.then(node(site, Collective::ReduceScatterBlock, of_lane).from(shares).into(SCRATCH));
    plan.then(lane(site, Collective::ReduceScatterBlock, block).from(SCRATCH));
}
