//! Maps: one panel per decision function, columns of message sizes, rows of process counts.

mod data;
mod export;
mod layout;

use plotters::prelude::{DrawingBackend, RGBColor};

pub(crate) use data::{MapCell, MapFigure, MapRow, Panel};
use layout::{LEFT, MapLayout};

use crate::{
    FigureError,
    canvas::{Align, Canvas, Hatch, Pixel, Rect, TEXT, TICK},
    colour, font,
    page::{self, Heading, Legend, Part, PartKind, Parted, panel_heading},
    scale_bar::{self, ColourScale},
};

const MAX_ROWS: usize = 1024;
const MAX_COLUMNS: usize = 512;
const MAX_PANELS: usize = 32;

impl MapFigure {
    pub(crate) fn new(
        heading: Heading,
        panels: Vec<Panel>,
        x_label: String,
        mut legend: Legend,
        scale: Option<ColourScale>,
    ) -> Result<Self, FigureError> {
        let mut rows: Vec<MapRow> =
            panels.iter().flat_map(|p| p.cells.keys().map(|k| k.0)).collect();
        let mut sizes: Vec<u64> = panels.iter().flat_map(|p| p.cells.keys().map(|k| k.1)).collect();
        rows.sort_unstable();
        rows.dedup();
        sizes.sort_unstable();
        sizes.dedup();
        for (what, count, limit) in [
            ("rank counts", rows.len(), MAX_ROWS),
            ("message sizes", sizes.len(), MAX_COLUMNS),
            ("decision functions", panels.len(), MAX_PANELS),
        ] {
            if count > limit {
                return Err(FigureError::TooMuch { what, count, limit });
            }
        }
        let cells = rows.len() * sizes.len();
        if panels.iter().any(|panel| panel.cells.len() < cells) {
            let key = page::LegendKey::Patch { fill: colour::EMPTY, hatch: NO_DATA };
            legend.entries.push((key, "no data".into()));
        }
        Ok(MapFigure { heading, panels, rows, sizes, x_label, legend, scale, ranks: false })
    }

    /// This map with ranks on both axes: the rows send, the columns receive.
    pub(crate) fn between_ranks(self) -> Self {
        MapFigure { ranks: true, ..self }
    }

    pub(crate) fn size(&self) -> Result<(u32, u32), FigureError> {
        let layout = MapLayout::from_map(self)?;
        Ok((layout.width as u32, layout.height as u32))
    }

    fn draw_panel<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &MapLayout,
        index: usize,
    ) -> Result<(), FigureError> {
        let (panel, (left, top)) = (&self.panels[index], layout.panel(index));
        let width = layout.panel_width - LEFT;
        match layout.stacked {
            true => stacked_heading(canvas, (left, top), width, panel)?,
            false => panel_heading(canvas, (left, top), width, &panel.title, &panel.detail)?,
        }
        let corner = (left, top + layout.panel_heading());
        self.draw_cells(canvas, panel, layout, corner)?;
        self.draw_rows(canvas, layout, corner)?;
        let is_last = index + 1 == self.panels.len();
        if !layout.stacked || is_last {
            self.draw_columns(canvas, layout, corner)?;
        }
        // Of panels that share an axis the rows are named once, in the middle.
        let bottom = corner.1 + self.rows.len() as i32 * layout.cell.1;
        let first = if layout.stacked { layout.panel(0).1 } else { corner.1 };
        match layout.stacked && !is_last {
            true => Ok(()),
            false => canvas.upward((left - LEFT + 18, (first + bottom) / 2), self.row_name()),
        }
    }

    fn draw_cells<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        panel: &Panel,
        layout: &MapLayout,
        (left, top): Pixel,
    ) -> Result<(), FigureError> {
        let (width, height) = layout.cell;
        for (index, row) in self.rows.iter().rev().enumerate() {
            let mut column = 0;
            while column < self.sizes.len() {
                let cell = panel.cells.get(&(*row, self.sizes[column]));
                // Alike neighbours are one rectangle: smaller files.
                let alike = self.sizes[column..]
                    .iter()
                    .take_while(|bytes| looks(panel.cells.get(&(*row, **bytes))) == looks(cell))
                    .count();
                let place = Rect {
                    x: left + column as i32 * width,
                    y: top + index as i32 * height,
                    width: alike as i32 * width,
                    height,
                };
                let (fill, hatch) = looks(cell);
                canvas.fill(place, fill)?;
                canvas.hatch(place, hatch, page::hatch_color(fill))?;
                column += alike;
            }
        }
        self.draw_grid(canvas, layout, (left, top))?;
        for (index, row) in self.rows.iter().rev().enumerate() {
            for (column, bytes) in self.sizes.iter().enumerate() {
                let Some(cell) = panel.cells.get(&(*row, *bytes)) else { continue };
                let x = left + column as i32 * width;
                let place = Rect { x, y: top + index as i32 * height, width, height };
                draw_marks(canvas, cell, place, layout.text)?;
            }
        }
        self.draw_outlines(canvas, panel, layout.cell, (left, top))
    }

    /// Lines between cells that are outlined and others, or the outside.
    fn draw_outlines<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        panel: &Panel,
        (width, height): (i32, i32),
        (left, top): Pixel,
    ) -> Result<(), FigureError> {
        let (columns, rows) = (self.sizes.len(), self.rows.len());
        // Rows count from the top, as they are drawn; one more on each side is outside.
        let outlined = |row: usize, column: usize| {
            let (Some(row), Some(column)) = (row.checked_sub(1), column.checked_sub(1)) else {
                return false;
            };
            if row >= rows || column >= columns {
                return false;
            }
            let place = (self.rows[rows - 1 - row], self.sizes[column]);
            panel.cells.get(&place).is_some_and(|cell| cell.outlined)
        };
        let (x, y) =
            (|column: usize| left + column as i32 * width, |row: usize| top + row as i32 * height);
        let mut lines = Vec::new();
        for row in 0..=rows {
            let border = |column: usize| outlined(row, column + 1) != outlined(row + 1, column + 1);
            for (from, to) in runs(columns, border) {
                lines.push([(x(from), y(row)), (x(to), y(row))]);
            }
        }
        for column in 0..=columns {
            let border = |row: usize| outlined(row + 1, column) != outlined(row + 1, column + 1);
            for (from, to) in runs(rows, border) {
                lines.push([(x(column), y(from)), (x(column), y(to))]);
            }
        }
        page::outline(canvas, &lines)
    }

    fn draw_grid<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &MapLayout,
        (left, top): Pixel,
    ) -> Result<(), FigureError> {
        let (width, height) = layout.cell;
        let (columns, rows) = (self.sizes.len() as i32, self.rows.len() as i32);
        let (right, bottom) = (left + columns * width, top + rows * height);
        if width >= 10 {
            for column in 1..columns {
                let x = left + column * width;
                canvas.path(&[(x, top), (x, bottom)], colour::LIGHT, 1)?;
            }
        }
        if height >= 10 {
            for row in 1..rows {
                let y = top + row * height;
                canvas.path(&[(left, y), (right, y)], colour::LIGHT, 1)?;
            }
        }
        let outline = Rect { x: left, y: top, width: right - left, height: bottom - top };
        canvas.frame(outline, colour::GREY)
    }

    fn draw_columns<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &MapLayout,
        (left, top): Pixel,
    ) -> Result<(), FigureError> {
        let (width, height) = layout.cell;
        let bottom = top + self.rows.len() as i32 * height;
        for (index, bytes) in self.sizes.iter().enumerate() {
            if !layout.labelled_columns[index] {
                continue;
            }
            let x = left + index as i32 * width + width / 2;
            canvas.path(&[(x, bottom), (x, bottom + 5)], colour::GREY, 1)?;
            let (number, unit) = self.column_label(*bytes);
            canvas.text((x, bottom + 16), &number, TICK, colour::BLACK, Align::Center)?;
            canvas.text((x, bottom + 35), &unit, TICK, colour::BLACK, Align::Center)?;
        }
        let columns = self.sizes.len() as i32;
        let label = font::shorten(&self.x_label, TEXT, layout.panel_width - LEFT)?;
        // Under the middle of the cells where it fits there, else from their left edge on.
        let room = columns * width;
        let (x, align) = match font::width(&label, TEXT)? <= room {
            true => (left + room / 2, Align::Center),
            false => (left, Align::Left),
        };
        canvas.text((x, bottom + 60), &label, TEXT, colour::BLACK, align)
    }

    fn has_nodes(&self) -> bool {
        self.rows.iter().any(|row| row.has_nodes())
    }

    /// What the rows are.
    fn row_name(&self) -> &'static str {
        match (self.ranks, self.has_nodes()) {
            (true, _) => "sender",
            (false, true) => "nodes x ranks",
            (false, false) => "ranks",
        }
    }

    fn draw_rows<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &MapLayout,
        (left, top): Pixel,
    ) -> Result<(), FigureError> {
        let height = layout.cell.1;
        let bottom = top + self.rows.len() as i32 * height;
        let has_nodes = self.has_nodes();
        for (index, row) in self.rows.iter().enumerate() {
            if !layout.labelled_rows[index] {
                continue;
            }
            let y = bottom - index as i32 * height - height / 2;
            canvas.path(&[(left - 5, y), (left, y)], colour::GREY, 1)?;
            let text = match has_nodes {
                true => format!("{row:#}").replace(":cyclic", "c"),
                false => row.to_string(),
            };
            let text = font::shorten(&text, TICK, LEFT - 40)?;
            canvas.text((left - 10, y), &text, TICK, colour::BLACK, Align::Right)?;
        }
        Ok(())
    }
}

/// A panel's title with what stands behind it, in one line.
fn stacked_heading<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    (left, top): Pixel,
    width: i32,
    panel: &Panel,
) -> Result<(), FigureError> {
    let title = font::shorten(&panel.title, TEXT, width)?;
    canvas.text((left, top + 16), &title, TEXT, colour::BLACK, Align::Left)?;
    let beside = font::width(&title, TEXT)? + 18;
    let detail = font::shorten(&panel.detail, TICK, width - beside)?;
    canvas.text((left + beside, top + 16), &detail, TICK, colour::GREY, Align::Left)
}

impl Parted for MapFigure {
    type Layout = MapLayout;

    fn heading(&self) -> &Heading {
        &self.heading
    }

    fn layout(&self) -> Result<MapLayout, FigureError> {
        MapLayout::from_map(self)
    }

    fn parts(&self, layout: &MapLayout) -> Result<Vec<Part>, FigureError> {
        layout.parts(self)
    }

    fn draw_part<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &MapLayout,
        part: &Part,
    ) -> Result<(), FigureError> {
        match (part.kind, &self.scale) {
            (PartKind::Heading, _) => self.heading.draw(canvas, layout.width),
            (PartKind::Panel(_), _) if layout.stacked => {
                (0..self.panels.len()).try_for_each(|index| self.draw_panel(canvas, layout, index))
            }
            (PartKind::Panel(index), _) => self.draw_panel(canvas, layout, index),
            (PartKind::Scale, Some(scale)) => scale_bar::draw(canvas, part.place.y, scale),
            (PartKind::Scale, None) => Ok(()),
            (PartKind::Key { entry, .. }, _) => self.legend.draw_entry(canvas, entry, part.place),
        }
    }
}

/// The ranges of `0..count` in which `holds` does.
fn runs(count: usize, holds: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for index in (0..count).filter(|index| holds(*index)) {
        match runs.last_mut() {
            Some((_, end)) if *end == index => *end += 1,
            _ => runs.push((index, index + 1)),
        }
    }
    runs
}

/// How cells without data look.
const NO_DATA: Hatch = Hatch::Rising(8);

fn looks(cell: Option<&MapCell>) -> (RGBColor, Hatch) {
    cell.map_or((colour::EMPTY, NO_DATA), |cell| (cell.fill, cell.hatch))
}

fn draw_marks<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    cell: &MapCell,
    place: Rect,
    text: Option<(usize, u32)>,
) -> Result<(), FigureError> {
    if cell.framed && place.width >= 8 && place.height >= 8 {
        page::inner_frame(canvas, place, cell.fill)?;
    }
    if let Some((form, em)) = text
        && !cell.texts[form].is_empty()
    {
        let written = &cell.texts[form];
        let center = place.center();
        if cell.hatch != Hatch::Plain {
            let (width, height) = (font::width(written, em)? + 4, em as i32);
            let ground = Rect { x: center.0 - width / 2, y: center.1 - height / 2, width, height };
            canvas.fill(ground, cell.fill)?;
        }
        let ink = colour::contrasting(cell.fill);
        canvas.text(center, written, em, ink, Align::Center)?;
    }
    if cell.cornered && place.width >= 8 && place.height >= 8 {
        page::corner(canvas, place, cell.fill)?;
    }
    if cell.dot && place.width >= 8 && place.height >= 8 {
        page::dot(canvas, place, cell.fill)?;
    }
    Ok(())
}
