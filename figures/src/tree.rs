//! A topology, as Graphviz text or as a picture.

use schedules::topology::{ChildOrder, Topology, TreeShape};

use crate::{
    Figure, FigureError,
    page::Heading,
    tree_page::{DrawnRank, TreePage},
};

/// Most ranks in a Graphviz text.
const MAX_RANKS_AS_TEXT: u32 = 1 << 20;
/// Most ranks in a picture: a flat tree of them is 7000 pixels wide.
const MAX_RANKS: u32 = 128;

/// A tree in Graphviz's language, for `dot -Tsvg` and the like: one edge for each rank but the
/// root, from parent to child, level by level, the children of a rank in the given order.
///
/// # Errors
/// There is no such tree (no ranks, a root that is none of them, a fan-out below what the topology
/// takes), or it has more than 2^20 ranks.
pub fn dot(
    topology: &Topology,
    shape: TreeShape,
    order: ChildOrder,
) -> Result<String, FigureError> {
    let nodes = walk(topology, shape, order, MAX_RANKS_AS_TEXT)?;
    let mut text = format!("digraph \"{}\" {{\n", topology.name);
    text += &format!("  label=\"{}, root {}\";\n", title(topology, shape), shape.root);
    // Graphviz would place children where edges are shortest.
    text += "  ordering=out;\n  node [shape=circle];\n";
    text += &format!("  {} [shape=doublecircle];\n", shape.root);
    for node in &nodes {
        for child in &nodes[node.children.clone()] {
            text += &format!("  {} -> {};\n", node.rank, child.rank);
        }
    }
    text += "}\n";
    Ok(text)
}

/// A tree as a picture, the root on top, the children of a rank from left to right in the given
/// order.
///
/// # Errors
/// There is no such tree, as for [`dot`], or it has more than 128 ranks.
pub fn tree(
    topology: &Topology,
    shape: TreeShape,
    order: ChildOrder,
) -> Result<Figure, FigureError> {
    let nodes = walk(topology, shape, order, MAX_RANKS)?;
    let order = match order {
        ChildOrder::Ascending => "ascending",
        ChildOrder::Descending => "descending",
    };
    let lines = vec![
        topology.description.to_owned(),
        format!("root {}; children from left to right, {order} from the root on", shape.root),
    ];
    let heading = Heading { title: title(topology, shape), lines };
    Figure::of_tree(TreePage::new(heading, nodes))
}

/// `k-nomial tree of 13 ranks, radix 4`.
fn title(topology: &Topology, shape: TreeShape) -> String {
    let fan_out = match fan_out(topology) {
        Some((what, _)) => format!(", {what} {}", shape.fan_out),
        None => String::new(),
    };
    let ranks = records::counted(shape.ranks, "rank");
    format!("{} tree of {ranks}{fan_out}", topology.name)
}

/// Whether a topology looks at its fan-out.
pub fn has_fan_out(topology: &Topology) -> bool {
    fan_out(topology).is_some()
}

/// What the fan-out is to a topology that looks at it, and the least it can be.
fn fan_out(topology: &Topology) -> Option<(&'static str, u32)> {
    match topology.name {
        "k-nomial" => Some(("radix", 2)),
        "k-chain" => Some(("chains", 1)),
        _ => None,
    }
}

fn walk(
    topology: &Topology,
    shape: TreeShape,
    order: ChildOrder,
    limit: u32,
) -> Result<Vec<DrawnRank>, FigureError> {
    let TreeShape { ranks, root, fan_out: given } = shape;
    if ranks == 0 {
        return Err(FigureError::Impossible("a tree of 0 ranks; expected at least 1".into()));
    }
    if root >= ranks {
        let problem = format!("root {root} of {ranks} ranks; expected 0 to {}", ranks - 1);
        return Err(FigureError::Impossible(problem));
    }
    if let Some((what, least)) = fan_out(topology).filter(|(_, least)| given < *least) {
        let problem = format!("{} with {what} {given}; expected at least {least}", topology.name);
        return Err(FigureError::Impossible(problem));
    }
    if ranks > limit {
        let [count, limit] = [ranks, limit].map(|ranks| ranks as usize);
        return Err(FigureError::TooMuch { what: "ranks", count, limit });
    }
    let mut nodes = vec![DrawnRank { rank: root, level: 0, children: 0..0 }];
    let mut at = 0;
    while let Some(DrawnRank { rank, level, .. }) = nodes.get(at).cloned() {
        let first = nodes.len();
        let children = topology.children(shape, rank, order).into_iter();
        nodes.extend(children.map(|rank| DrawnRank { rank, level: level + 1, children: 0..0 }));
        nodes[at].children = first..nodes.len();
        at += 1;
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use schedules::topology::TOPOLOGIES;

    use crate::tree_page::{PITCH, RADIUS, columns};

    proptest! {
        /// No two circles of a level touch, and a parent stands over its children.
        #[test]
        fn nothing_overlaps(
            index in 0..TOPOLOGIES.len(), ranks in 1_u32..=MAX_RANKS, root in 0_u32..128,
            fan_out in 2_u32..9, ascending: bool,
        ) {
            let order = if ascending { ChildOrder::Ascending } else { ChildOrder::Descending };
            let shape = TreeShape { ranks, root: root % ranks, fan_out };
            let nodes = walk(&TOPOLOGIES[index], shape, order, MAX_RANKS).unwrap();
            let (middles, width) = columns(&nodes);
            prop_assert_eq!(nodes.len() as u32, ranks);
            for index in 0..nodes.len() {
                prop_assert!((PITCH / 2..=width - PITCH / 2).contains(&middles[index]));
                let next = index + 1;
                if next < nodes.len() && nodes[next].level == nodes[index].level {
                    prop_assert!(middles[next] - middles[index] > 2 * RADIUS);
                }
                let children = &middles[nodes[index].children.clone()];
                if let (Some(first), Some(last)) = (children.first(), children.last()) {
                    prop_assert!(*first <= middles[index] && middles[index] <= *last);
                }
            }
        }
    }
}
