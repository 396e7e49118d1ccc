//! A decision function in few words, and looking it up.

use records::{Collective, Method};
use serde::Serialize;

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompressionForm {
    /// For each number of processes, the sizes at which the method changes, to the byte where the
    /// model allows ([`switching_points`](crate::decide::switching_points)).
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
    pub shape: CompressionForm,
    /// The methods that it may take.
    pub methods: Vec<Method>,
    /// The root is the first.
    pub nodes: Vec<DecisionNode>,
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
pub enum DecisionNode {
    /// Which of the methods.
    Method(u32),
    /// By the communicator size.
    Procs {
        /// From this one on it is the second node. As wide as a message size, so that a look-up
        /// asks both questions by the same instructions, and none of them is a branch.
        from: u64,
        then: [u32; 2],
    },
    /// By the message size.
    Bytes {
        /// From this one on it is the second node.
        from: u64,
        then: [u32; 2],
    },
}

impl Compressed {
    /// The method for a communicator and a message.
    #[inline]
    pub fn decide(&self, procs: u32, bytes: u64) -> &Method {
        &self.methods[self.index(procs, bytes)]
    }

    #[inline]
    pub(super) fn index(&self, procs: u32, bytes: u64) -> usize {
        let mut node = 0;
        loop {
            let (size, from, then) = match self.nodes[node as usize] {
                DecisionNode::Method(method) => return method as usize,
                DecisionNode::Procs { from, then } => (procs.into(), from, then),
                DecisionNode::Bytes { from, then } => (bytes, from, then),
            };
            node = then[usize::from(size >= from)];
        }
    }
}
