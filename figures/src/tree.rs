//! A topology, as Graphviz text or as a picture.

use std::ops::Range;

use plotters::prelude::{DrawingBackend, RGBColor};
use schedules::topology::{ChildOrder, Shape, Topology};

use crate::{
    Figure, FigureError,
    canvas::{Align, Canvas, Hatch, Pixel, TEXT, TICK},
    colour,
    page::{Heading, Key, LEAST_WIDTH, LINE, Legend, MARGIN},
};

/// Most ranks in a Graphviz text.
const MOST_RANKS_AS_TEXT: u32 = 1 << 20;
/// Most ranks in a picture: a flat tree of them is 7000 pixels wide.
const MOST_RANKS: u32 = 128;

const RADIUS: i32 = 20;
/// Between neighbours of one level, and between levels.
const PITCH: i32 = 52;
const LEVEL: i32 = 78;
/// Left of the tree: the levels' names.
const NAMES: i32 = 90;

/// A tree in Graphviz's language, for `dot -Tsvg` and the like: one edge for each rank but the
/// root, from parent to child, level by level, the children of a rank in the given order.
///
/// # Errors
/// There is no such tree (no ranks, a root that is none of them, a fan-out below what the topology
/// takes), or it has more than 2^20 ranks.
pub fn dot(topology: &Topology, shape: Shape, order: ChildOrder) -> Result<String, FigureError> {
    let nodes = walk(topology, shape, order, MOST_RANKS_AS_TEXT)?;
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
pub fn tree(topology: &Topology, shape: Shape, order: ChildOrder) -> Result<Figure, FigureError> {
    let nodes = walk(topology, shape, order, MOST_RANKS)?;
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
fn title(topology: &Topology, shape: Shape) -> String {
    let fan_out = match fan_out(topology) {
        Some((what, _)) => format!(", {what} {}", shape.fan_out),
        None => String::new(),
    };
    let ranks = if shape.ranks == 1 { "rank" } else { "ranks" };
    format!("{} tree of {} {ranks}{fan_out}", topology.name, shape.ranks)
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

/// A rank of a tree; the nodes of a tree come level by level.
#[derive(Debug, Clone)]
struct Node {
    rank: u32,
    level: i32,
    /// Where its children stand among the nodes.
    children: Range<usize>,
}

fn walk(
    topology: &Topology,
    shape: Shape,
    order: ChildOrder,
    limit: u32,
) -> Result<Vec<Node>, FigureError> {
    let Shape { ranks, root, fan_out: given } = shape;
    if ranks == 0 {
        return Err(FigureError::Impossible("a tree of 0 ranks; wanted at least 1".into()));
    }
    if root >= ranks {
        let problem = format!("root {root} of {ranks} ranks; wanted 0 to {}", ranks - 1);
        return Err(FigureError::Impossible(problem));
    }
    if let Some((what, least)) = fan_out(topology).filter(|(_, least)| given < *least) {
        let problem = format!("{} with {what} {given}; wanted at least {least}", topology.name);
        return Err(FigureError::Impossible(problem));
    }
    if ranks > limit {
        let [count, limit] = [ranks, limit].map(|ranks| ranks as usize);
        return Err(FigureError::TooMuch { what: "ranks", count, limit });
    }
    let mut nodes = vec![Node { rank: root, level: 0, children: 0..0 }];
    let mut at = 0;
    while let Some(Node { rank, level, .. }) = nodes.get(at).cloned() {
        let first = nodes.len();
        let children = topology.children(shape, rank, order).into_iter();
        nodes.extend(children.map(|rank| Node { rank, level: level + 1, children: 0..0 }));
        nodes[at].children = first..nodes.len();
        at += 1;
    }
    Ok(nodes)
}

/// The middle of each node from the left edge of the tree, and the width of the tree.
///
/// Every leaf has a column of its own, those of a subtree side by side; a parent stands in the
/// middle between its first and its last child. So subtrees never overlap.
fn columns(nodes: &[Node]) -> (Vec<i32>, i32) {
    let mut leaves = vec![1; nodes.len()];
    for (index, node) in nodes.iter().enumerate().rev() {
        if !node.children.is_empty() {
            leaves[index] = leaves[node.children.clone()].iter().sum();
        }
    }
    let mut first_leaf = vec![0; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        let mut next = first_leaf[index];
        for child in node.children.clone() {
            first_leaf[child] = next;
            next += leaves[child];
        }
    }
    let mut middles: Vec<i32> = first_leaf.iter().map(|leaf| leaf * PITCH + PITCH / 2).collect();
    for (index, node) in nodes.iter().enumerate().rev() {
        if let (Some(first), Some(last)) =
            (node.children.clone().next(), node.children.clone().last())
        {
            middles[index] = i32::midpoint(middles[first], middles[last]);
        }
    }
    (middles, leaves[0] * PITCH)
}

/// A tree, laid out.
#[derive(Debug, Clone)]
pub(crate) struct TreePage {
    heading: Heading,
    legend: Legend,
    nodes: Vec<Node>,
    middles: Vec<i32>,
    tree_width: i32,
    levels: i32,
}

impl TreePage {
    fn new(heading: Heading, nodes: Vec<Node>) -> Self {
        let (middles, tree_width) = columns(&nodes);
        let levels = nodes.iter().map(|node| node.level).max().unwrap_or(0) + 1;
        let entries = Role::ALL.iter().filter(|role| nodes.iter().any(|n| Role::of(n) == **role));
        let patch = |role: &Role| Key::Patch { fill: role.fill(), hatch: Hatch::Plain };
        let entries = entries.map(|role| (patch(role), role.name().to_owned())).collect();
        TreePage { heading, legend: Legend { entries }, nodes, middles, tree_width, levels }
    }

    fn width(&self) -> i32 {
        (2 * MARGIN + NAMES + self.tree_width).max(LEAST_WIDTH)
    }

    fn top(&self) -> Result<i32, FigureError> {
        Ok(self.heading.height(self.width())? + LINE / 2)
    }

    fn legend_top(&self) -> Result<i32, FigureError> {
        Ok(self.top()? + (self.levels - 1) * LEVEL + 2 * RADIUS + LINE)
    }

    pub(crate) fn size(&self) -> Result<(u32, u32), FigureError> {
        let height = self.legend_top()? + self.legend.height(self.width())? + MARGIN;
        Ok((self.width() as u32, height as u32))
    }

    pub(crate) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
    ) -> Result<(), FigureError> {
        let (width, top) = (self.width(), self.top()? + RADIUS);
        self.heading.draw(canvas, width)?;
        for level in 0..self.levels {
            let name = if level == 0 { "depth 0".to_owned() } else { level.to_string() };
            let place = (MARGIN + 64, top + level * LEVEL);
            canvas.text(place, &name, TICK, colour::GREY, Align::Right)?;
        }
        let room = width - 2 * MARGIN - NAMES - self.tree_width;
        let left = MARGIN + NAMES + room / 2;
        let place =
            |index: usize| (left + self.middles[index], top + self.nodes[index].level * LEVEL);
        for (index, node) in self.nodes.iter().enumerate() {
            let children: Vec<Pixel> = node.children.clone().map(place).collect();
            edges(canvas, place(index), &children)?;
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let fill = Role::of(node).fill();
            canvas.disc(place(index), RADIUS, colour::GREY)?;
            canvas.disc(place(index), RADIUS - 1, fill)?;
            let color = colour::contrasting(fill);
            canvas.text(place(index), &node.rank.to_string(), TEXT, color, Align::Center)?;
        }
        self.legend.draw(canvas, self.legend_top()?, width)
    }
}

/// Down from the parent, across, and down to each child: straight edges of a wide family would
/// pass through siblings.
fn edges<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    (x, y): Pixel,
    children: &[Pixel],
) -> Result<(), FigureError> {
    let (Some(first), Some(last)) = (children.first(), children.last()) else { return Ok(()) };
    let across = y + LEVEL / 2;
    canvas.path(&[(x, y), (x, across)], colour::GREY, 2)?;
    canvas.path(&[*first, (first.0, across), (last.0, across), *last], colour::GREY, 2)?;
    for child in children {
        canvas.path(&[(child.0, across), *child], colour::GREY, 2)?;
    }
    Ok(())
}

/// What a rank is in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Root,
    Inner,
    Leaf,
}

impl Role {
    const ALL: [Role; 3] = [Role::Root, Role::Inner, Role::Leaf];

    fn of(node: &Node) -> Self {
        match (node.level, node.children.is_empty()) {
            (0, _) => Role::Root,
            (_, false) => Role::Inner,
            (_, true) => Role::Leaf,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Role::Root => "root",
            Role::Inner => "rank with children",
            Role::Leaf => "leaf",
        }
    }

    fn fill(self) -> RGBColor {
        match self {
            Role::Root => colour::SERIES[0],
            Role::Inner => colour::SERIES[5],
            Role::Leaf => colour::WHITE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use schedules::topology::TOPOLOGIES;

    proptest! {
        /// No two circles of a level touch, and a parent stands over its children.
        #[test]
        fn nothing_overlaps(
            index in 0..TOPOLOGIES.len(), ranks in 1_u32..=MOST_RANKS, root in 0_u32..128,
            fan_out in 2_u32..9, ascending: bool,
        ) {
            let order = if ascending { ChildOrder::Ascending } else { ChildOrder::Descending };
            let shape = Shape { ranks, root: root % ranks, fan_out };
            let nodes = walk(&TOPOLOGIES[index], shape, order, MOST_RANKS).unwrap();
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
