//! A tree, laid out and drawn.

use std::ops::Range;

use plotters::prelude::{DrawingBackend, RGBColor};

use crate::{
    FigureError,
    canvas::{Align, Canvas, Hatch, Pixel, TEXT, TICK},
    colour,
    data::{FigureTable, GnuplotScript},
    page::{Heading, LINE, Legend, LegendKey, MARGIN, MIN_WIDTH},
};

pub(crate) const RADIUS: i32 = 20;
/// Between neighbours of one level, and between levels.
pub(crate) const PITCH: i32 = 52;
const LEVEL: i32 = 78;
/// Left of the tree: the levels' names.
const NAMES: i32 = 90;

/// A rank of a tree; the nodes of a tree come level by level.
#[derive(Debug, Clone)]
pub(crate) struct DrawnRank {
    pub(crate) rank: u32,
    pub(crate) level: i32,
    /// Where its children stand among the nodes.
    pub(crate) children: Range<usize>,
}

/// The middle of each node from the left edge of the tree, and the width of the tree.
///
/// Every leaf has a column of its own, those of a subtree side by side; a parent stands in the
/// middle between its first and its last child. So subtrees never overlap.
pub(crate) fn columns(nodes: &[DrawnRank]) -> (Vec<i32>, i32) {
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
    nodes: Vec<DrawnRank>,
    middles: Vec<i32>,
    tree_width: i32,
    levels: i32,
}

impl TreePage {
    pub(crate) fn new(heading: Heading, nodes: Vec<DrawnRank>) -> Self {
        let (middles, tree_width) = columns(&nodes);
        let levels = nodes.iter().map(|node| node.level).max().unwrap_or(0) + 1;
        let entries =
            Role::ALL.iter().filter(|role| nodes.iter().any(|n| Role::from_node(n) == **role));
        let patch = |role: &Role| LegendKey::Patch { fill: role.fill(), hatch: Hatch::Plain };
        let entries = entries.map(|role| (patch(role), role.name().to_owned())).collect();
        TreePage { heading, legend: Legend { entries }, nodes, middles, tree_width, levels }
    }

    fn width(&self) -> i32 {
        (2 * MARGIN + NAMES + self.tree_width).max(MIN_WIDTH)
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
            let fill = Role::from_node(node).fill();
            canvas.disc(place(index), RADIUS, colour::GREY)?;
            canvas.disc(place(index), RADIUS - 1, fill)?;
            let color = colour::contrasting(fill);
            canvas.text(place(index), &node.rank.to_string(), TEXT, color, Align::Center)?;
        }
        self.legend.draw(canvas, self.legend_top()?, width)
    }
}

impl TreePage {
    pub(crate) fn table(&self) -> FigureTable {
        let mut parents = vec![None; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            parents[node.children.clone()].fill(Some(index));
        }
        let row = |(index, parent): (usize, &Option<usize>)| {
            let node = &self.nodes[index];
            let of_parent = parent.map_or_else(String::new, |it| self.nodes[it].rank.to_string());
            let x = [index, parent.unwrap_or(index)].map(|it| self.middles[it].to_string());
            let [x, parent_x] = x;
            vec![node.rank.to_string(), of_parent, node.level.to_string(), x, parent_x]
        };
        let columns = &["rank", "parent", "depth", "x", "parent_x"];
        FigureTable { columns, rows: parents.iter().enumerate().map(row).collect() }
    }

    pub(crate) fn script(&self, mut script: GnuplotScript) -> String {
        script.set("title", &self.heading.title);
        script.line("unset key");
        script.line("unset xtics");
        script.set("ylabel", "depth");
        script.line(&format!("set yrange [{}:-0.5]", f64::from(self.levels) - 0.5));
        let table = script.table.clone();
        let edges = "using 5:($3 > 0 ? $3-1 : 1/0):($4-$5):(1) with vectors nohead lc rgb 'gray'";
        script.plot(&[
            format!("{table} every ::1 {edges}"),
            format!("{table} every ::1 using 4:3 with points pt 7 ps 2 lc rgb 'light-blue'"),
            format!("{table} every ::1 using 4:3:1 with labels"),
        ]);
        script.finish()
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

    fn from_node(node: &DrawnRank) -> Self {
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
