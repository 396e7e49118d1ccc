//! Decision functions in few words: a table of switching points, a decision tree, a quadtree.
//!
//! What a shorter function costs is stated: at every point of the grid, how much more the method
//! that it takes is predicted to cost than the best one.

mod code;
mod compressed;
mod map;
mod trees;

pub use code::Language;
pub use compressed::{Bounds, Compressed, CompressionForm, DecisionNode};
pub use map::DecisionGrid;

use records::Method;
use statistics::mean;

use crate::{
    Predictor,
    decide::{DecideError, switching_points},
};

impl DecisionGrid {
    /// Compresses the function; `predictor` is the one that the map was made with.
    ///
    /// # Errors
    /// As [`switching_points`], of a table.
    pub fn compress(
        &self,
        predictor: &Predictor,
        shape: CompressionForm,
        bounds: Bounds,
    ) -> Result<Compressed, DecideError> {
        let nodes = match shape {
            CompressionForm::Table => self.table(predictor)?,
            CompressionForm::Tree => trees::tree(self, bounds),
            CompressionForm::Quadtree => trees::quadtree(self, bounds),
        };
        let leaf = |node: &&DecisionNode| matches!(node, DecisionNode::Method(_));
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

    fn table(&self, predictor: &Predictor) -> Result<Vec<DecisionNode>, DecideError> {
        let exact = !predictor.model().evaluator().follows_schedules();
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
fn split_rows(rows: &[(u32, Vec<(u64, u32)>)], nodes: &mut Vec<DecisionNode>) -> u32 {
    if let [(_, ranges)] = rows {
        return split_ranges(ranges, nodes);
    }
    let (below, above) = rows.split_at(rows.len() / 2);
    let place = nodes.len();
    nodes.push(DecisionNode::Method(0));
    let then = [split_rows(below, nodes), split_rows(above, nodes)];
    nodes[place] = DecisionNode::Procs { from: above[0].0.into(), then };
    place as u32
}

fn split_ranges(ranges: &[(u64, u32)], nodes: &mut Vec<DecisionNode>) -> u32 {
    let place = nodes.len();
    if let [(_, method)] = ranges {
        nodes.push(DecisionNode::Method(*method));
        return place as u32;
    }
    let (below, above) = ranges.split_at(ranges.len() / 2);
    nodes.push(DecisionNode::Method(0));
    let then = [split_ranges(below, nodes), split_ranges(above, nodes)];
    nodes[place] = DecisionNode::Bytes { from: above[0].0, then };
    place as u32
}
