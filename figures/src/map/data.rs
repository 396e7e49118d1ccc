//! What a map shows.

use std::{collections::BTreeMap, fmt};

use plotters::prelude::RGBColor;
use records::{Layout, quantity};

use crate::{
    canvas::Hatch,
    page::{Heading, Legend},
    scale_bar::ColourScale,
};

/// What is drawn at one place.
#[derive(Debug, Clone)]
pub(crate) struct MapCell {
    pub(crate) fill: RGBColor,
    pub(crate) hatch: Hatch,
    /// One text in two forms, the longest first; the first that fits all cells is written.
    pub(crate) texts: [String; 2],
    /// Marked with a dot.
    pub(crate) dot: bool,
    /// Marked with a cut corner.
    pub(crate) cornered: bool,
    /// Marked with an inner frame.
    pub(crate) framed: bool,
    /// Marked, together with its neighbours that are, by a line around them.
    pub(crate) outlined: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) detail: String,
    /// By row and column.
    pub(crate) cells: BTreeMap<(MapRow, u64), MapCell>,
}

/// What a row of a map stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MapRow {
    /// A communicator's ranks and nodes.
    Layout(Layout),
    Rank(u32),
}

impl MapRow {
    /// The number by which it is told.
    pub(super) fn number(self) -> u32 {
        match self {
            MapRow::Layout(layout) => layout.procs(),
            MapRow::Rank(rank) => rank,
        }
    }

    /// Whether it stands for several ranks on a node, which a number of processes does not tell.
    pub(super) fn has_nodes(self) -> bool {
        matches!(self, MapRow::Layout(layout) if !layout.is_flat())
    }
}

impl From<Layout> for MapRow {
    fn from(layout: Layout) -> Self {
        MapRow::Layout(layout)
    }
}

impl fmt::Display for MapRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapRow::Layout(layout) => layout.fmt(f),
            MapRow::Rank(rank) => rank.fmt(f),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct MapFigure {
    pub(super) heading: Heading,
    pub(super) panels: Vec<Panel>,
    /// Rows and columns: every value that occurs in a panel, ascending.
    pub(super) rows: Vec<MapRow>,
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
