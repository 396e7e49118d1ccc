//! Where everything of a map lies.

use super::data::{MapFigure, MapRow};
use crate::{
    FigureError,
    canvas::{Pixel, Rect, TICK},
    font,
    page::{
        GREATEST_WIDTH, LINE, MARGIN, MIN_WIDTH, PANEL_HEADING, Part, PartKind, columns_and_rows,
    },
    scale_bar::{self, ColourScale},
};

/// Left of the cells: the axis label and the numbers.
pub(super) const LEFT: i32 = 84;
/// Between panels side by side.
const GAP: i32 = 30;
/// Below the cells: numbers, units and the axis label.
const BELOW: i32 = 84;
const TEXT_PADDING: i32 = 8;
/// Above a panel that shares its axis with those below it, title and detail in one line.
const STACKED_HEADING: i32 = 30;
/// Below such a panel's cells.
const STACKED_GAP: i32 = 4;
/// Room for the title and the detail of such a panel.
const STACKED_WIDTH: i32 = 560;
/// So many rows are drawn below each other, on one axis; penalties always are.
const STACKED_ROWS: usize = 8;
/// Panels that share an axis have this much room together, in pixels.
const STACK: (i32, i32) = (1000, 1700);

/// Everything that follows from the number of panels, rows and columns.
pub(crate) struct MapLayout {
    pub(super) width: i32,
    pub(super) height: i32,
    pub(super) columns: usize,
    /// All panels below each other, with one axis of message sizes.
    pub(super) stacked: bool,
    pub(super) cell: (i32, i32),
    pub(super) panel_width: i32,
    panel_height: i32,
    panels_top: i32,
    legend_top: i32,
    /// Which form of the cells' texts fits, and its height.
    pub(super) text: Option<(usize, u32)>,
    pub(super) labelled_columns: Vec<bool>,
    pub(super) labelled_rows: Vec<bool>,
}

impl MapLayout {
    pub(super) fn from_map(map: &MapFigure) -> Result<Self, FigureError> {
        let is_penalty = matches!(map.scale, Some(ColourScale::Penalty(_)));
        let stacked =
            !map.ranks && map.panels.len() > 1 && (is_penalty || map.rows.len() <= STACKED_ROWS);
        let cell = cell_size(map, stacked);
        let cells_width = map.sizes.len() as i32 * cell.0;
        // A narrow map leaves its panels room for titles and the axis label.
        let panel_width = LEFT + cells_width.max(if stacked { STACKED_WIDTH } else { 400 }) + GAP;
        let cells_height = map.rows.len() as i32 * cell.1;
        let (columns, rows, panel_height, axis) = match stacked {
            true => (1, map.panels.len(), STACKED_HEADING + cells_height + STACKED_GAP, BELOW),
            false => {
                let (columns, rows) = columns_and_rows(map.panels.len(), panel_width);
                (columns, rows, PANEL_HEADING + cells_height + BELOW, 0)
            }
        };
        let width = (2 * MARGIN + columns as i32 * panel_width - GAP)
            .clamp(MIN_WIDTH, GREATEST_WIDTH.max(2 * MARGIN + panel_width));
        let panels_top = map.heading.height(width)? + LINE / 2;
        let legend_top = panels_top + rows as i32 * panel_height + axis;
        let scale = if map.scale.is_some() { scale_bar::HEIGHT } else { 0 };
        let height = legend_top + scale + map.legend.height(width)? + MARGIN;
        Ok(MapLayout {
            width,
            height,
            columns,
            stacked,
            cell,
            panel_width,
            panel_height,
            panels_top,
            legend_top,
            text: fitting_text(map, cell)?,
            labelled_columns: labelled_columns(map, cell.0)?,
            labelled_rows: labelled_rows(&map.rows, cell.1),
        })
    }

    /// Where a panel begins.
    pub(super) fn panel(&self, index: usize) -> Pixel {
        let (column, row) = (index % self.columns, index / self.columns);
        let left = MARGIN + LEFT + column as i32 * self.panel_width;
        (left, self.panels_top + row as i32 * self.panel_height)
    }

    /// Height of what stands above a panel's cells.
    pub(super) fn panel_heading(&self) -> i32 {
        if self.stacked { STACKED_HEADING } else { PANEL_HEADING }
    }

    pub(super) fn parts(&self, map: &MapFigure) -> Result<Vec<Part>, FigureError> {
        let mut parts = vec![map.heading.part(self.width)?];
        let panel = |index: usize, height: i32| {
            let (left, y) = self.panel(index);
            let place = Rect { x: left - LEFT, y, width: self.panel_width, height };
            Part { kind: PartKind::Panel(index), place }
        };
        match self.stacked {
            true => parts.push(panel(0, self.legend_top - self.panels_top)),
            false => {
                let all = (0..map.panels.len()).map(|index| panel(index, self.panel_height));
                parts.extend(all);
            }
        }
        let mut top = self.legend_top;
        if map.scale.is_some() {
            let place = Rect { x: 0, y: top, width: self.width, height: scale_bar::HEIGHT };
            parts.push(Part { kind: PartKind::Scale, place });
            top += scale_bar::HEIGHT;
        }
        parts.extend(map.legend.parts(0, (0, top), self.width)?);
        Ok(parts)
    }
}

/// Few rows: wide cells with their numbers in them, panels below each other. Many: a bird's view,
/// nearer where one panel is alone.
fn cell_size(map: &MapFigure, stacked: bool) -> (i32, i32) {
    let (columns, rows) = (map.sizes.len().max(1) as i32, map.rows.len().max(1) as i32);
    if stacked {
        let of_panel = STACK.1 / map.panels.len() as i32 - STACKED_HEADING - STACKED_GAP;
        let widest = (STACKED_WIDTH / columns).clamp(80, 140);
        return ((STACK.0 / columns).clamp(4, widest), (of_panel / rows).clamp(3, 40));
    }
    match (rows, map.panels.len()) {
        (..=8, _) => ((1400 / columns).clamp(4, 80), (130 / rows).clamp(40, 100)),
        (_, 1) if !map.ranks => ((1400 / columns).clamp(4, 60), (900 / rows).clamp(2, 30)),
        _ => ((640 / columns).clamp(4, 80), (580 / rows).clamp(2, 30)),
    }
}

fn fitting_text(
    map: &MapFigure,
    (width, height): (i32, i32),
) -> Result<Option<(usize, u32)>, FigureError> {
    for em in [TICK, TICK - 2] {
        for form in 0..2 {
            let mut widest = 0;
            for cell in map.panels.iter().flat_map(|panel| panel.cells.values()) {
                widest = widest.max(font::width(&cell.texts[form], em)?);
            }
            if widest + TEXT_PADDING <= width && em as i32 + TEXT_PADDING <= height {
                return Ok(Some((form, em)));
            }
        }
    }
    Ok(None)
}

/// Every column, or every second, fifth or tenth, counted from 1 KiB or 1 MiB on where these are.
fn labelled_columns(map: &MapFigure, width: i32) -> Result<Vec<bool>, FigureError> {
    let sizes = &map.sizes;
    let anchor = [1 << 10, 1 << 20, 1]
        .into_iter()
        .find_map(|round| sizes.iter().position(|bytes| *bytes == round))
        .unwrap_or(0);
    let mut widest = 0;
    for bytes in sizes {
        let (number, unit) = map.column_label(*bytes);
        widest = widest.max(font::width(&number, TICK)?).max(font::width(&unit, TICK)?);
    }
    let needed = widest + 8;
    let stride = [1, 2, 5, 10, 20, 50, 100]
        .into_iter()
        .find(|stride| *stride as i32 * width >= needed)
        .unwrap_or(sizes.len().max(1));
    Ok((0..sizes.len()).map(|index| index.abs_diff(anchor) % stride == 0).collect())
}

/// Every row, or so many that the numbers do not touch; even numbers rather than odd ones.
fn labelled_rows(rows: &[MapRow], height: i32) -> Vec<bool> {
    let needed = TICK as i32 + 2;
    let stride = [1, 2, 4, 8, 16, 32, 64]
        .into_iter()
        .find(|stride| *stride as i32 * height >= needed)
        .unwrap_or(rows.len().max(1));
    let anchor = rows.iter().position(|row| (row.number() as usize).is_multiple_of(stride));
    let anchor = anchor.unwrap_or(0);
    (0..rows.len()).map(|index| index.abs_diff(anchor).is_multiple_of(stride)).collect()
}
