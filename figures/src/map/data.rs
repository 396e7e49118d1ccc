//! What a map shows.

use std::collections::BTreeMap;

use plotters::prelude::RGBColor;
use records::quantity;

use crate::{
    canvas::Hatch,
    page::{Heading, Legend},
    scale_bar::ColourScale,
};

/// What is drawn at one (procs, bytes).
#[derive(Debug, Clone)]
pub(crate) struct MapCell {
    pub(crate) fill: RGBColor,
    pub(crate) hatch: Hatch,
    /// The same text, the longest form first; the first that fits all cells is written.
    pub(crate) texts: [String; 2],
    /// Marked with a dot.
    pub(crate) dot: bool,
    /// Marked with an inner frame.
    pub(crate) framed: bool,
    /// Marked, together with its neighbours that are, by a line around them.
    pub(crate) outlined: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) detail: String,
    /// By procs and bytes.
    pub(crate) cells: BTreeMap<(u32, u64), MapCell>,
}

#[derive(Debug, Clone)]
pub(crate) struct MapFigure {
    pub(super) heading: Heading,
    pub(super) panels: Vec<Panel>,
    /// Rows and columns: every value that occurs in a panel, ascending.
    pub(super) procs: Vec<u32>,
    pub(super) sizes: Vec<u64>,
    pub(super) x_label: String,
    pub(super) legend: Legend,
    /// What the cells' colours say, where these are a scale.
    pub(super) scale: Option<ColourScale>,
    /// Rows and columns are ranks, not process counts and message sizes.
    pub(super) ranks: bool,
}

impl MapFigure {
    /// Number and unit of a column, to be written one above the other.
    pub(super) fn column_label(&self, column: u64) -> (String, String) {
        match self.ranks {
            true => (column.to_string(), String::new()),
            false => size_label(column),
        }
    }
}

fn size_label(bytes: u64) -> (String, String) {
    let text = quantity::format_bytes(bytes);
    match text.split_once(' ') {
        Some((number, unit)) => (number.into(), unit.into()),
        None => (text, String::new()),
    }
}
