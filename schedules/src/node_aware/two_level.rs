//! A leader on each node works between the nodes.

use records::{Algorithm, Collective};

use super::{
    copies::BlockOrder,
    group::RankGroup,
    plan::{Family, GroupPhase, PhasePlan},
    site::{CallSite, MemoryPlace, RECEIVE, SCRATCH, SEND},
};
use crate::Buffer;

/// See [`node_aware`](super).
pub(super) struct TwoLevel;

impl Family for TwoLevel {
    const ALGORITHM: Algorithm = Algorithm::TwoLevel;
    const DESCRIPTION: &'static str = "a leader on each node, and its node's ranks with it";

    fn plan(collective: Collective, site: &CallSite<'_>, plan: &mut PhasePlan) {
        match collective {
            Collective::Bcast => bcast(site, plan),
            Collective::Reduce => reduce(site, plan),
            Collective::Allreduce => allreduce(site, plan),
            Collective::Allgather => allgather(site, plan),
            Collective::Gather => gather(site, plan),
            Collective::Scatter => scatter(site, plan),
            Collective::Alltoall => alltoall(site, plan),
            Collective::ReduceScatterBlock => reduce_scatter(site, plan),
            _ => barrier(site, plan),
        }
    }
}

/// This node's ranks; the leader is the root.
fn node(site: &CallSite<'_>, collective: Collective, count: u64) -> GroupPhase {
    let leader = site.nodes.local(site.leader());
    GroupPhase::new(collective, RankGroup::Node(site.node()), leader, count)
}

/// All leaders; the root of all is the root.
fn leaders(site: &CallSite<'_>, collective: Collective, count: u64) -> GroupPhase {
    let root = if collective.is_rooted() { site.root_node() } else { 0 };
    GroupPhase::new(collective, RankGroup::Leaders, root, count)
}

/// Where the blocks of all ranks lie in order if the nodes are as equal as their order is the
/// ranks'; elsewhere they need a place with as many blocks for each node as the fullest has.
fn is_direct(site: &CallSite<'_>) -> bool {
    site.nodes.is_block() && site.nodes.per_node().is_some()
}

/// Elements of such a place, for one node.
fn per_node(site: &CallSite<'_>) -> u64 {
    u64::from(site.nodes.most()) * site.call.count
}

/// Elements of such a place, for all nodes.
fn of_nodes(site: &CallSite<'_>) -> u64 {
    u64::from(site.nodes.count()) * per_node(site)
}

/// The places that a node's ranks don't fill.
fn fill(site: &CallSite<'_>, place: MemoryPlace, plan: &mut PhasePlan) {
    let (filled, slots) = (site.members() as u32, site.nodes.most());
    if filled < slots {
        plan.copy(BlockOrder::Filler { filled, slots }, (place, place), site.call.count);
    }
}

pub(super) fn bcast(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (count, data) = (site.span.count, RECEIVE.plus(site.span.start));
    if site.is_leader() {
        plan.then(leaders(site, Collective::Bcast, count).into(data));
    }
    plan.then(node(site, Collective::Bcast, count).into(data));
}

pub(super) fn reduce(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (count, start) = (site.span.count, site.span.start);
    let input = site.input().plus(start);
    let within = node(site, Collective::Reduce, count);
    if site.is_root() {
        let result = RECEIVE.plus(start);
        plan.then(within.from(SEND.plus(start)).into(result).in_place(site.call.in_place));
        plan.then(leaders(site, Collective::Reduce, count).into(result).in_place(true));
    } else if site.is_leader() {
        plan.scratch = count;
        plan.then(within.from(input).into(SCRATCH));
        plan.then(leaders(site, Collective::Reduce, count).from(SCRATCH));
    } else {
        plan.then(within.from(input));
    }
}

pub(super) fn allreduce(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (count, start) = (site.span.count, site.span.start);
    let result = RECEIVE.plus(start);
    let within = node(site, Collective::Reduce, count).into(result);
    if site.is_leader() {
        plan.then(within.from(SEND.plus(start)).in_place(site.call.in_place));
        plan.then(leaders(site, Collective::Allreduce, count).into(result).in_place(true));
    } else {
        plan.then(within.from(site.input().plus(start)));
    }
    plan.then(node(site, Collective::Bcast, count).into(result));
}

pub(super) fn allgather(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let block = site.call.count;
    let direct = is_direct(site);
    let all = if direct { RECEIVE } else { SCRATCH };
    let own = all.plus(u64::from(site.node()) * per_node(site));
    let within = node(site, Collective::Gather, block).from(site.own_block());
    if site.is_leader() {
        plan.scratch = if direct { 0 } else { of_nodes(site) };
        plan.then(within.into(own).in_place(direct && site.call.in_place));
        fill(site, own, plan);
        let between = leaders(site, Collective::Allgather, per_node(site));
        plan.then(between.into(all).in_place(true));
        if !direct {
            plan.copy(BlockOrder::FromNodes, (all, RECEIVE), block);
        }
    } else {
        plan.then(within);
    }
    plan.then(node(site, Collective::Bcast, site.all() * block));
}

pub(super) fn gather(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let block = site.call.count;
    let within = node(site, Collective::Gather, block);
    let between = leaders(site, Collective::Gather, per_node(site));
    if site.is_root() {
        let direct = is_direct(site);
        plan.scratch = if direct { 0 } else { of_nodes(site) };
        let all = if direct { RECEIVE } else { SCRATCH };
        let own = all.plus(u64::from(site.node()) * per_node(site));
        plan.then(within.from(site.own_block()).into(own).in_place(direct && site.call.in_place));
        fill(site, own, plan);
        plan.then(between.into(all).in_place(true));
        if !direct {
            plan.copy(BlockOrder::FromNodes, (all, RECEIVE), block);
        }
    } else if site.is_leader() {
        plan.scratch = per_node(site);
        plan.then(within.into(SCRATCH));
        fill(site, SCRATCH, plan);
        plan.then(between.from(SCRATCH));
    } else {
        plan.then(within);
    }
}

pub(super) fn scatter(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let block = site.call.count;
    let within = node(site, Collective::Scatter, block);
    let between = leaders(site, Collective::Scatter, per_node(site));
    if site.is_root() {
        let direct = is_direct(site);
        let all = if direct { SEND } else { SCRATCH };
        if !direct {
            plan.scratch = of_nodes(site);
            plan.copy(BlockOrder::ToNodes, (SEND, all), block);
        }
        plan.then(between.from(all).in_place(true));
        let own = all.plus(u64::from(site.node()) * per_node(site));
        plan.then(within.from(own).in_place(site.call.in_place));
    } else if site.is_leader() {
        plan.scratch = per_node(site);
        plan.then(between.into(SCRATCH));
        plan.then(within.from(SCRATCH));
    } else {
        plan.then(within);
    }
}

/// The leader collects all that its node's ranks send, and deals out all that they receive.
fn alltoall(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (block, all) = (site.call.count, site.all() * site.call.count);
    let collected = node(site, Collective::Gather, all).from(site.input());
    let dealt = node(site, Collective::Scatter, all);
    if !site.is_leader() {
        plan.then(collected);
        plan.then(dealt);
        return;
    }
    let of_pair = u64::from(site.nodes.most()) * per_node(site);
    let pairs = u64::from(site.nodes.count()) * of_pair;
    let (by_rank, sent) = (SCRATCH, SCRATCH.plus(site.members() * all));
    let received = sent.plus(pairs);
    plan.scratch = received.start + pairs;
    plan.then(collected.into(by_rank));
    plan.copy(BlockOrder::ToPairs, (by_rank, sent), block);
    plan.then(leaders(site, Collective::Alltoall, of_pair).from(sent).into(received));
    plan.copy(BlockOrder::FromPairs, (received, by_rank), block);
    plan.then(dealt.from(by_rank));
}

fn reduce_scatter(site: &CallSite<'_>, plan: &mut PhasePlan) {
    let (block, all) = (site.call.count, site.all() * site.call.count);
    let within = node(site, Collective::Reduce, all).from(site.input());
    let dealt = node(site, Collective::Scatter, block);
    if !site.is_leader() {
        plan.then(within);
        plan.then(dealt);
        return;
    }
    plan.then(within.into(SCRATCH));
    let (mut by_node, mut end) = (SCRATCH, all);
    if !is_direct(site) {
        by_node = MemoryPlace::new(Buffer::Temporary, end);
        end += of_nodes(site);
        plan.copy(BlockOrder::ToNodes, (SCRATCH, by_node), block);
    }
    let own = MemoryPlace::new(Buffer::Temporary, end);
    plan.scratch = end + per_node(site);
    let between = leaders(site, Collective::ReduceScatterBlock, per_node(site));
    plan.then(between.from(by_node).into(own));
    plan.then(dealt.from(own));
}

/// Who leaves the second barrier of a node knows that its leader has left that of all leaders, who
/// entered it after the first of their nodes.
pub(super) fn barrier(site: &CallSite<'_>, plan: &mut PhasePlan) {
    plan.then(node(site, Collective::Barrier, 0));
    if site.is_leader() {
        plan.then(leaders(site, Collective::Barrier, 0));
    }
    plan.then(node(site, Collective::Barrier, 0));
}
