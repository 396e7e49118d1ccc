//! Trees over a grid: parts of it that take one method.

use std::ops::Range;

use super::{Bounds, DecisionGrid, DecisionNode};

/// A method that is no candidate somewhere costs this much there.
const NO_CANDIDATE_PENALTY: f64 = 1e6;

/// Sums of penalties over the rectangles from the grid's corner.
struct Sums<'a> {
    map: &'a DecisionGrid,
    sums: Vec<f64>,
}

#[derive(Debug, Clone)]
struct GridPart {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<'a> Sums<'a> {
    fn from_map(map: &'a DecisionGrid) -> Self {
        let (rows, columns, methods) = (map.procs.len(), map.bytes.len(), map.methods.len());
        let mut sums = Sums { map, sums: vec![0.0; (rows + 1) * (columns + 1) * methods] };
        for row in 0..rows {
            for column in 0..columns {
                for method in 0..methods {
                    let here = map.penalty(row, column, method).min(NO_CANDIDATE_PENALTY);
                    let sum =
                        here + sums.at(row, column + 1, method) + sums.at(row + 1, column, method)
                            - sums.at(row, column, method);
                    let place = sums.place(row + 1, column + 1, method);
                    sums.sums[place] = sum;
                }
            }
        }
        sums
    }

    fn place(&self, row: usize, column: usize, method: usize) -> usize {
        (row * (self.map.bytes.len() + 1) + column) * self.map.methods.len() + method
    }

    fn at(&self, row: usize, column: usize, method: usize) -> f64 {
        self.sums[self.place(row, column, method)]
    }

    /// The method that costs least over a part, and that cost.
    fn best(&self, part: &GridPart) -> (usize, f64) {
        let GridPart { rows, columns } = part;
        let sum = |method| {
            self.at(rows.end, columns.end, method)
                - self.at(rows.start, columns.end, method)
                - self.at(rows.end, columns.start, method)
                + self.at(rows.start, columns.start, method)
        };
        let all = (0..self.map.methods.len()).map(|method| (method, sum(method)));
        all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }

    fn greatest(&self, part: &GridPart, method: usize) -> f64 {
        let rows = part.rows.clone();
        let cells = rows.flat_map(|row| part.columns.clone().map(move |column| (row, column)));
        cells.map(|(row, column)| self.map.penalty(row, column, method)).fold(0.0, f64::max)
    }

    /// The split of a part that leaves least.
    fn split(&self, part: &GridPart) -> Option<(GridPart, GridPart)> {
        let by_rows = (part.rows.start + 1..part.rows.end).map(|at| cut_rows(part, at));
        let by_columns = (part.columns.start + 1..part.columns.end).map(|at| cut_columns(part, at));
        by_rows.chain(by_columns).min_by(|a, b| {
            let left = |(one, other): &(GridPart, GridPart)| self.best(one).1 + self.best(other).1;
            left(a).total_cmp(&left(b))
        })
    }
}

fn cut_rows(part: &GridPart, at: usize) -> (GridPart, GridPart) {
    let with = |rows| GridPart { rows, columns: part.columns.clone() };
    (with(part.rows.start..at), with(at..part.rows.end))
}

fn cut_columns(part: &GridPart, at: usize) -> (GridPart, GridPart) {
    let with = |columns| GridPart { rows: part.rows.clone(), columns };
    (with(part.columns.start..at), with(at..part.columns.end))
}

/// Greedy splits, each where the two parts' best methods leave the least penalty.
pub(super) fn tree(map: &DecisionGrid, bounds: Bounds) -> Vec<DecisionNode> {
    let mut nodes = Vec::new();
    grow(&Sums::from_map(map), &whole(map), bounds, &mut nodes);
    nodes
}

/// Splits in the middle of both sizes.
pub(super) fn quadtree(map: &DecisionGrid, bounds: Bounds) -> Vec<DecisionNode> {
    let mut nodes = Vec::new();
    quarter(&Sums::from_map(map), &whole(map), bounds, &mut nodes);
    nodes
}

fn whole(map: &DecisionGrid) -> GridPart {
    GridPart { rows: 0..map.procs.len(), columns: 0..map.bytes.len() }
}

/// A leaf, if the part needs no split; else a node to be filled in. And its place.
fn leaf(
    sums: &Sums,
    part: &GridPart,
    bounds: Bounds,
    nodes: &mut Vec<DecisionNode>,
) -> (usize, bool) {
    let (method, _) = sums.best(part);
    nodes.push(DecisionNode::Method(method as u32));
    let single = part.rows.len() * part.columns.len() == 1;
    // Equal but for rounding is equal.
    let good = sums.greatest(part, method) <= bounds.penalty + 1e-12;
    (nodes.len() - 1, bounds.depth == 0 || single || good)
}

/// The question that tells the two parts apart.
fn question(
    map: &DecisionGrid,
    (one, other): &(GridPart, GridPart),
    then: [u32; 2],
) -> DecisionNode {
    if one.rows == other.rows {
        DecisionNode::Bytes { from: map.border(other.columns.start), then }
    } else {
        DecisionNode::Procs { from: map.procs[other.rows.start].into(), then }
    }
}

fn grow(sums: &Sums, part: &GridPart, bounds: Bounds, nodes: &mut Vec<DecisionNode>) -> u32 {
    let (place, done) = leaf(sums, part, bounds, nodes);
    if !done && let Some(parts) = sums.split(part) {
        let below = Bounds { depth: bounds.depth - 1, ..bounds };
        let then = [grow(sums, &parts.0, below, nodes), grow(sums, &parts.1, below, nodes)];
        nodes[place] = question(sums.map, &parts, then);
    }
    place as u32
}

fn quarter(sums: &Sums, part: &GridPart, bounds: Bounds, nodes: &mut Vec<DecisionNode>) -> u32 {
    let (place, done) = leaf(sums, part, bounds, nodes);
    if done {
        return place as u32;
    }
    let below = Bounds { depth: bounds.depth - 1, ..bounds };
    let halves = |part: &GridPart, nodes: &mut Vec<DecisionNode>| match part.columns.len() {
        1 => quarter(sums, part, below, nodes),
        length => {
            let parts = cut_columns(part, part.columns.start + length / 2);
            let place = nodes.len();
            nodes.push(DecisionNode::Method(0));
            let then =
                [quarter(sums, &parts.0, below, nodes), quarter(sums, &parts.1, below, nodes)];
            nodes[place] = question(sums.map, &parts, then);
            place as u32
        }
    };
    // The place of the part's own node is taken by its first question.
    nodes.truncate(place);
    match part.rows.len() {
        1 => halves(part, nodes),
        length => {
            let parts = cut_rows(part, part.rows.start + length / 2);
            nodes.push(DecisionNode::Method(0));
            let then = [halves(&parts.0, nodes), halves(&parts.1, nodes)];
            nodes[place] = question(sums.map, &parts, then);
            place as u32
        }
    }
}
