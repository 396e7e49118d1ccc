//! Another algorithm, on ranks renumbered by node.

use records::{Algorithm, Collective};

use super::{
    copies::BlockOrder,
    group::RankGroup,
    plan::{Family, GroupPhase, PhasePlan},
    site::{CallSite, RECEIVE, SCRATCH, SEND},
};

/// See [`node_aware`](super).
pub(super) struct NodeOrder;

impl Family for NodeOrder {
    const ALGORITHM: Algorithm = Algorithm::NodeOrder;
    const DESCRIPTION: &'static str = "another algorithm, on ranks renumbered by node";
    const CUTS: bool = false;

    fn plan(collective: Collective, site: &CallSite<'_>, plan: &mut PhasePlan) {
        let phase = |group: RankGroup| {
            let root = group.place(site.call, site.nodes, site.call.root);
            let phase = GroupPhase::new(collective, group, root, site.call.count);
            phase.segment(site.call.segment).in_place(site.call.in_place)
        };
        let (moves_blocks, combines) = (
            !matches!(
                collective,
                Collective::Bcast
                    | Collective::Reduce
                    | Collective::Allreduce
                    | Collective::Barrier
            ),
            collective.combines(),
        );
        // Blocks, and operands that may not change places, stay in the order of ranks.
        if site.nodes.is_block() && (moves_blocks || (combines && !site.call.commutative)) {
            return plan.then(phase(RankGroup::InOrder));
        }
        if !moves_blocks {
            let group =
                if collective.is_rooted() { RankGroup::FromRoot } else { RankGroup::InOrder };
            return plan.then(phase(group));
        }
        renumbered(site, phase(RankGroup::InOrder).in_place(false), plan);
    }
}

/// Where the order by nodes is not that of the ranks, blocks are put in order before or after.
fn renumbered(site: &CallSite<'_>, phase: GroupPhase, plan: &mut PhasePlan) {
    let (block, all) = (site.call.count, site.all() * site.call.count);
    match phase.collective {
        Collective::Gather if site.is_root() => {
            plan.scratch = all;
            plan.then(phase.from(site.own_block()).into(SCRATCH));
            plan.copy(BlockOrder::Listed { back: true }, (SCRATCH, RECEIVE), block);
        }
        Collective::Scatter if site.is_root() => {
            plan.scratch = all;
            plan.copy(BlockOrder::Listed { back: false }, (SEND, SCRATCH), block);
            plan.then(phase.from(SCRATCH).in_place(site.call.in_place));
        }
        Collective::Gather | Collective::Scatter => plan.then(phase),
        Collective::Allgather => {
            plan.scratch = all;
            plan.then(phase.from(site.own_block()).into(SCRATCH));
            plan.copy(BlockOrder::Listed { back: true }, (SCRATCH, RECEIVE), block);
        }
        Collective::ReduceScatterBlock => {
            plan.scratch = all;
            plan.copy(BlockOrder::Listed { back: false }, (site.input(), SCRATCH), block);
            plan.then(phase.from(SCRATCH));
        }
        _ => {
            let received = SCRATCH.plus(all);
            plan.scratch = 2 * all;
            plan.copy(BlockOrder::Listed { back: false }, (site.input(), SCRATCH), block);
            plan.then(phase.from(SCRATCH).into(received));
            plan.copy(BlockOrder::Listed { back: true }, (received, RECEIVE), block);
        }
    }
}
