//! Decision functions in few words: a table of switching points, a decision tree, a quadtree.
//!
//! What a shorter function costs is stated: at every point of the grid, how much more the method
//! that it takes is predicted to cost than the best one.

mod code;
mod trees;

pub use code::Language;

use records::{Collective, Method};
use serde::Serialize;
use statistics::mean;

use crate::{
    Model, Point, Predictor,
    decide::{DecideError, seconds_of, switching_points},
};

/// A decision function over a grid, with what every candidate costs at every point of it.
#[derive(Debug, Clone)]
pub struct Map {
    collective: Collective,
    procs: Vec<u32>,
    bytes: Vec<u64>,
    methods: Vec<Method>,
    /// By procs, bytes and method: time over the least time, less one.
    penalties: Vec<f64>,
}

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// For each number of processes, the sizes at which the method changes, to the byte where the
    /// model allows ([`switching_points`]).
    Table,
    /// Splits that save most, of the communicator size or the message size.
    Tree,
    /// Splits in the middle of both.
    Quadtree,
}

/// Where a tree ends; both hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Levels below the root of a tree (a quadtree's level splits both sizes).
    pub depth: u32,
    /// A part is not split if no point in it costs more than this above the best.
    pub penalty: f64,
}

/// A decision function that can be looked up without the model.
///
/// Between the grid's communicator sizes the nearest below holds, outside of the grid the nearest
/// of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compressed {
    /// Of which collective.
    pub collective: Collective,
    /// In which form.
    pub shape: Shape,
    /// The methods that it may take.
    pub methods: Vec<Method>,
    /// The root is the first.
    pub nodes: Vec<Node>,
    /// Number of ranges of a table, leaves of a tree.
    pub entries: usize,
    /// Over the points of the grid, unweighted: predicted time over the best, less one.
    pub mean_penalty: f64,
    /// The greatest of them.
    pub greatest_penalty: f64,
}

/// A decision, or a question that leads to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Node {
    /// Which of the methods.
    Method(u32),
    /// By the communicator size.
    Procs {
        /// From this one on it is the second node. As wide as a message size, so that a look-up
        /// asks both questions by the same instructions, and none of them is a branch.
        from: u64,
        /// The nodes.
        then: [u32; 2],
    },
    /// By the message size.
    Bytes {
        /// From this one on it is the second node.
        from: u64,
        /// The nodes.
        then: [u32; 2],
    },
}

impl Map {
    /// Predicts every method at every point of a grid; both sizes ascend.
    ///
    /// # Errors
    /// The grid is empty or does not ascend, a method has no prediction, or none is a candidate
    /// somewhere.
    pub fn new(
        predictor: &Predictor,
        collective: Collective,
        (procs, bytes): (&[u32], &[u64]),
        methods: &[Method],
    ) -> Result<Self, DecideError> {
        let ascends =
            procs.windows(2).all(|pair| pair[0] < pair[1]) && bytes.is_sorted_by(|a, b| a < b);
        if procs.is_empty() || bytes.is_empty() || !ascends {
            return Err(DecideError::Grid);
        }
        let mut penalties = Vec::with_capacity(procs.len() * bytes.len() * methods.len());
        for &procs in procs {
            for &bytes in bytes {
                let point = Point { collective, procs, bytes };
                let seconds = seconds_of(predictor, point, methods)?;
                let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
                if !least.is_finite() {
                    let reason = "none of the methods is one there";
                    return Err(DecideError::NoCandidate { point, reason });
                }
                // One process: all cost nothing.
                let penalty = |seconds: f64| if least > 0.0 { seconds / least - 1.0 } else { 0.0 };
                penalties.extend(seconds.into_iter().map(penalty));
            }
        }
        Ok(Map {
            collective,
            procs: procs.to_vec(),
            bytes: bytes.to_vec(),
            methods: methods.to_vec(),
            penalties,
        })
    }

    /// Compresses the function; `predictor` is the one that the map was made with.
    ///
    /// # Errors
    /// As [`switching_points`], of a table.
    pub fn compress(
        &self,
        predictor: &Predictor,
        shape: Shape,
        bounds: Bounds,
    ) -> Result<Compressed, DecideError> {
        let nodes = match shape {
            Shape::Table => self.table(predictor)?,
            Shape::Tree => trees::tree(self, bounds),
            Shape::Quadtree => trees::quadtree(self, bounds),
        };
        let leaf = |node: &&Node| matches!(node, Node::Method(_));
        let mut compressed = Compressed {
            collective: self.collective,
            shape,
            methods: self.methods.clone(),
            entries: nodes.iter().filter(leaf).count(),
            nodes,
            mean_penalty: 0.0,
            greatest_penalty: 0.0,
        };
        let mut all = Vec::new();
        for (row, &procs) in self.procs.iter().enumerate() {
            for (column, &bytes) in self.bytes.iter().enumerate() {
                all.push(self.penalty(row, column, compressed.index(procs, bytes)));
            }
        }
        compressed.mean_penalty = mean(&all).unwrap_or_default();
        compressed.greatest_penalty = all.into_iter().fold(0.0, f64::max);
        Ok(compressed)
    }

    fn penalty(&self, row: usize, column: usize, method: usize) -> f64 {
        self.penalties[(row * self.bytes.len() + column) * self.methods.len() + method]
    }

    fn best(&self, row: usize, column: usize) -> usize {
        let start = (row * self.bytes.len() + column) * self.methods.len();
        let penalties = &self.penalties[start..start + self.methods.len()];
        penalties.iter().position(|penalty| *penalty <= 1e-12).unwrap_or(0)
    }

    /// Where a size begins that is nearer to the grid's size at `column` than to the one before.
    fn border(&self, column: usize) -> u64 {
        let (below, above) = (self.bytes[column - 1], self.bytes[column]);
        let mean = (below.max(1) as f64 * above as f64).sqrt().ceil() as u64;
        mean.clamp(below + 1, above)
    }

    fn table(&self, predictor: &Predictor) -> Result<Vec<Node>, DecideError> {
        let exact = Model::TABLES.contains(&predictor.model());
        let mut rows: Vec<(u32, Vec<(u64, u32)>)> = Vec::new();
        for (row, &procs) in self.procs.iter().enumerate() {
            let ranges: Vec<(u64, u32)> = if exact && self.bytes.len() > 1 {
                let range = self.bytes[0]..=self.bytes[self.bytes.len() - 1];
                let found =
                    switching_points(predictor, (self.collective, procs), &self.methods, range)?;
                let index = |method: &Method| self.methods.iter().position(|known| known == method);
                found
                    .into_iter()
                    .filter_map(|one| Some((one.from_bytes, index(&one.method)? as u32)))
                    .collect()
            } else {
                let from = |column| if column == 0 { 0 } else { self.border(column) };
                let columns = 0..self.bytes.len();
                columns.map(|column| (from(column), self.best(row, column) as u32)).collect()
            };
            let mut ranges = ranges;
            ranges.dedup_by_key(|(_, method)| *method);
            if rows.last().is_none_or(|(_, last)| *last != ranges) {
                rows.push((procs, ranges));
            }
        }
        let mut nodes = Vec::new();
        split_rows(&rows, &mut nodes);
        Ok(nodes)
    }
}

/// A balanced tree over the rows of a table; the index of its root.
fn split_rows(rows: &[(u32, Vec<(u64, u32)>)], nodes: &mut Vec<Node>) -> u32 {
    if let [(_, ranges)] = rows {
        return split_ranges(ranges, nodes);
    }
    let (below, above) = rows.split_at(rows.len() / 2);
    let place = nodes.len();
    nodes.push(Node::Method(0));
    let then = [split_rows(below, nodes), split_rows(above, nodes)];
    nodes[place] = Node::Procs { from: above[0].0.into(), then };
    place as u32
}

fn split_ranges(ranges: &[(u64, u32)], nodes: &mut Vec<Node>) -> u32 {
    let place = nodes.len();
    if let [(_, method)] = ranges {
        nodes.push(Node::Method(*method));
        return place as u32;
    }
    let (below, above) = ranges.split_at(ranges.len() / 2);
    nodes.push(Node::Method(0));
    let then = [split_ranges(below, nodes), split_ranges(above, nodes)];
    nodes[place] = Node::Bytes { from: above[0].0, then };
    place as u32
}

impl Compressed {
    /// The method for a communicator and a message.
    #[inline]
    pub fn decide(&self, procs: u32, bytes: u64) -> &Method {
        &self.methods[self.index(procs, bytes)]
    }

    #[inline]
    fn index(&self, procs: u32, bytes: u64) -> usize {
        let mut node = 0;
        loop {
            let (size, from, then) = match self.nodes[node as usize] {
                Node::Method(method) => return method as usize,
                Node::Procs { from, then } => (procs.into(), from, then),
                Node::Bytes { from, then } => (bytes, from, then),
            };
            node = then[usize::from(size >= from)];
        }
    }
}
