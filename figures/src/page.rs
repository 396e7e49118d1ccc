//! What every figure has around its panels: a heading, a legend, a grid of places.

use plotters::{
    backend::SVGBackend,
    drawing::IntoDrawingArea,
    prelude::{DrawingBackend, RGBColor},
};

use crate::{
    FigureError,
    canvas::{Align, Canvas, Hatch, PANEL, Pixel, Rect, TEXT, TITLE},
    colour, font,
};

/// White space at the edges.
pub(crate) const MARGIN: i32 = 24;
/// Figures are no narrower, so that headings and legends have room.
pub(crate) const MIN_WIDTH: i32 = 720;
/// Figures of several panels are no wider.
pub(crate) const GREATEST_WIDTH: i32 = 1600;
/// Height of a line of text.
pub(crate) const LINE: i32 = 25;

/// What a figure shows and what it was drawn from.
#[derive(Debug, Clone)]
pub(crate) struct Heading {
    pub(crate) title: String,
    /// Each begins a line of its own and is wrapped.
    pub(crate) lines: Vec<String>,
}

/// A part of a figure that can be shown alone, and where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    pub(crate) place: Rect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Heading,
    /// By its number. Where all panels share an axis they are one part.
    Panel(usize),
    /// The scale of colours.
    Scale,
    /// An entry of a legend, which may introduce those after it.
    Key {
        legend: usize,
        entry: usize,
        is_word: bool,
    },
}

impl PartKind {
    /// As SVG files call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PartKind::Heading => "heading",
            PartKind::Panel(_) => "panel",
            PartKind::Scale => "scale",
            PartKind::Key { is_word: false, .. } => "key",
            PartKind::Key { is_word: true, .. } => "word",
        }
    }
}

/// A figure that is drawn part by part.
pub(crate) trait Parted {
    type Layout;

    fn heading(&self) -> &Heading;

    fn layout(&self) -> Result<Self::Layout, FigureError>;

    fn parts(&self, layout: &Self::Layout) -> Result<Vec<Part>, FigureError>;

    fn draw_part<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        layout: &Self::Layout,
        part: &Part,
    ) -> Result<(), FigureError>;

    fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>) -> Result<(), FigureError> {
        let layout = self.layout()?;
        self.parts(&layout)?.iter().try_for_each(|part| self.draw_part(canvas, &layout, part))
    }

    /// Each part is an SVG element of its own, whose class is what it is, so that a page can place them by
    /// itself. The title and the lines below it are also there as text.
    fn svg(&self, size: (u32, u32)) -> Result<String, FigureError> {
        let (width, height) = size;
        let Heading { title, lines } = self.heading();
        let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n<desc>{}</desc>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#FFFFFF\" stroke=\"none\"/>\n",
            escaped(title),
            lines.join("\n"),
        );
        let layout = self.layout()?;
        for part in self.parts(&layout)? {
            let mut text = String::new();
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            self.draw_part(&Canvas::new(&area), &layout, &part)?;
            area.present().map_err(FigureError::drawing)?;
            drop(area);
            // Without the document's own element, which is the first and the last line.
            let inside = text.split_once('\n').map_or("", |(_, inside)| inside);
            let inside = inside.trim_end().trim_end_matches("</svg>");
            let Rect { x, y, width, height } = part.place;
            svg += &format!(
                "<svg class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
                 viewBox=\"{x} {y} {width} {height}\">\n{inside}</svg>\n",
                part.kind.name()
            );
        }
        Ok(svg + "</svg>\n")
    }
}

/// Text as an element's content.
fn escaped(text: &str) -> String {
    let text = font::printable(text).replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// What a reader must know, as one line of a heading; the files have the rest.
pub(crate) fn warnings(warnings: &[String]) -> Option<String> {
    let shown = warnings.iter().take(2).map(String::as_str).collect::<Vec<&str>>().join("; ");
    match warnings.len() {
        0 => None,
        1 | 2 => Some(format!("warning: {shown}")),
        count => Some(format!("warning: {shown}; and {} more", count - 2)),
    }
}

impl Heading {
    fn wrapped(&self, width: i32) -> Result<(Vec<String>, Vec<String>), FigureError> {
        let limit = width - 2 * MARGIN;
        let title = font::wrap(&self.title, TITLE, limit)?;
        let mut lines = Vec::new();
        for line in &self.lines {
            lines.extend(font::wrap(line, TEXT, limit)?);
        }
        Ok((title, lines))
    }

    pub(crate) fn height(&self, width: i32) -> Result<i32, FigureError> {
        let (title, lines) = self.wrapped(width)?;
        Ok(MARGIN + 36 * title.len() as i32 + LINE * lines.len() as i32 + 6)
    }

    /// Where it lies in a figure of this width.
    pub(crate) fn part(&self, width: i32) -> Result<Part, FigureError> {
        let place = Rect { x: 0, y: 0, width, height: self.height(width)? };
        Ok(Part { kind: PartKind::Heading, place })
    }

    pub(crate) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        width: i32,
    ) -> Result<(), FigureError> {
        let (title, lines) = self.wrapped(width)?;
        let mut y = MARGIN;
        for line in title {
            canvas.text((MARGIN, y + 14), &line, TITLE, colour::BLACK, Align::Left)?;
            y += 36;
        }
        for line in lines {
            canvas.text((MARGIN, y + LINE / 2), &line, TEXT, colour::GREY, Align::Left)?;
            y += LINE;
        }
        Ok(())
    }
}

/// What stands before a legend's text.
#[derive(Debug, Clone)]
pub(crate) enum LegendKey {
    /// A patch as a cell has it.
    Patch {
        fill: RGBColor,
        hatch: Hatch,
    },
    /// A patch with a dot in its corner.
    Dot,
    /// A patch with a cut corner.
    Corner,
    /// A patch with an inner frame.
    Framed,
    /// A patch with a line around it.
    Outlined,
    Curve {
        color: RGBColor,
        dashes: Option<usize>,
        marker: Option<usize>,
    },
    /// Nothing: the text introduces what follows.
    Word,
}

/// Texts with their keys, from left to right in as many rows as needed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Legend {
    pub(crate) entries: Vec<(LegendKey, String)>,
}

const KEY_WIDTH: i32 = 42;
const KEY_HEIGHT: i32 = 22;
const LEGEND_ROW: i32 = 34;
/// Between entries.
const KEY_GAP: i32 = 28;

impl Legend {
    fn places(&self, width: i32) -> Result<Vec<Pixel>, FigureError> {
        let (mut x, mut y) = (MARGIN, 0);
        let mut places = Vec::new();
        for (key, text) in &self.entries {
            let needed = key_width(key) + font::width(text, TEXT)? + KEY_GAP;
            let starts_group = matches!(key, LegendKey::Word) && x > MARGIN;
            if starts_group || (x > MARGIN && x + needed > width - MARGIN) {
                (x, y) = (MARGIN, y + LEGEND_ROW);
            }
            places.push((x, y));
            x += needed;
        }
        Ok(places)
    }

    pub(crate) fn height(&self, width: i32) -> Result<i32, FigureError> {
        Ok(self.places(width)?.last().map_or(0, |place| place.1 + LEGEND_ROW))
    }

    /// Where each entry lies, in a legend of this width from `origin` on; between its margins.
    pub(crate) fn parts(
        &self,
        number: usize,
        (left, top): Pixel,
        width: i32,
    ) -> Result<Vec<Part>, FigureError> {
        let mut parts = Vec::new();
        for (entry, (x, y)) in self.places(width)?.into_iter().enumerate() {
            let (key, text) = &self.entries[entry];
            let needed = key_width(key) + font::width(text, TEXT)? + KEY_GAP / 2;
            let place = Rect {
                x: left + x,
                y: top + y,
                width: needed.min(width - MARGIN - x),
                height: LEGEND_ROW,
            };
            let is_word = matches!(key, LegendKey::Word);
            parts.push(Part { kind: PartKind::Key { legend: number, entry, is_word }, place });
        }
        Ok(parts)
    }

    pub(crate) fn draw<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        top: i32,
        width: i32,
    ) -> Result<(), FigureError> {
        for (entry, part) in self.parts(0, (0, top), width)?.iter().enumerate() {
            self.draw_entry(canvas, entry, part.place)?;
        }
        Ok(())
    }

    /// Draws an entry at the place of its part.
    pub(crate) fn draw_entry<DB: DrawingBackend>(
        &self,
        canvas: &Canvas<'_, DB>,
        entry: usize,
        Rect { x, y, width, .. }: Rect,
    ) -> Result<(), FigureError> {
        let (key, text) = &self.entries[entry];
        let patch =
            Rect { x, y: y + (LEGEND_ROW - KEY_HEIGHT) / 2, width: KEY_WIDTH, height: KEY_HEIGHT };
        draw_key(canvas, key, patch)?;
        let text = font::shorten(text, TEXT, width - key_width(key))?;
        let place = (x + key_width(key), y + LEGEND_ROW / 2);
        canvas.text(place, &text, TEXT, colour::BLACK, Align::Left)
    }
}

fn key_width(key: &LegendKey) -> i32 {
    if matches!(key, LegendKey::Word) { 0 } else { KEY_WIDTH + 9 }
}

fn draw_key<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    key: &LegendKey,
    patch: Rect,
) -> Result<(), FigureError> {
    match key {
        LegendKey::Word => Ok(()),
        LegendKey::Patch { fill, hatch } => {
            canvas.fill(patch, *fill)?;
            canvas.hatch(patch, *hatch, hatch_color(*fill))?;
            canvas.frame(patch, colour::GREY)
        }
        LegendKey::Dot => {
            canvas.fill(patch, colour::LIGHT)?;
            canvas.frame(patch, colour::GREY)?;
            dot(canvas, patch, colour::LIGHT)
        }
        LegendKey::Corner => {
            canvas.fill(patch, colour::LIGHT)?;
            canvas.frame(patch, colour::GREY)?;
            corner(canvas, patch, colour::LIGHT)
        }
        LegendKey::Framed => {
            canvas.fill(patch, colour::LIGHT)?;
            inner_frame(canvas, patch, colour::LIGHT)
        }
        LegendKey::Outlined => {
            canvas.fill(patch, colour::LIGHT)?;
            let (right, bottom) = (patch.right(), patch.bottom());
            outline(
                canvas,
                &[
                    [(patch.x, patch.y), (right, patch.y)],
                    [(right, patch.y), (right, bottom)],
                    [(patch.x, bottom), (right, bottom)],
                    [(patch.x, patch.y), (patch.x, bottom)],
                ],
            )
        }
        LegendKey::Curve { color, dashes, marker: kind } => {
            let (x, y) = patch.center();
            if let Some(dashes) = dashes {
                canvas.dashes(&[(patch.x, y), (patch.right(), y)], *color, *dashes)?;
            }
            kind.map_or(Ok(()), |kind| marker(canvas, (x, y), kind, *color))
        }
    }
}

/// The colour of the lines over a filling.
pub(crate) fn hatch_color(fill: RGBColor) -> RGBColor {
    match fill == colour::EMPTY {
        true => RGBColor(170, 170, 170),
        false => colour::contrasting(fill),
    }
}

/// A mark in a cell's upper right corner.
pub(crate) fn dot<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    cell: Rect,
    fill: RGBColor,
) -> Result<(), FigureError> {
    let radius = (cell.width.min(cell.height) / 8).clamp(2, 4);
    let center = (cell.right() - radius - 3, cell.y + radius + 3);
    canvas.disc(center, radius + 1, fill)?;
    canvas.disc(center, radius, colour::contrasting(fill))
}

/// A mark that fills a cell's upper right corner.
pub(crate) fn corner<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    cell: Rect,
    fill: RGBColor,
) -> Result<(), FigureError> {
    let side = (cell.width.min(cell.height) / 3).clamp(4, 12);
    let (right, top) = (cell.right(), cell.y);
    let triangle = [(right - side, top), (right, top), (right, top + side)];
    canvas.polygon(&triangle, colour::contrasting(fill))
}

/// A mark along a cell's edge.
pub(crate) fn inner_frame<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    cell: Rect,
    fill: RGBColor,
) -> Result<(), FigureError> {
    let inner =
        Rect { x: cell.x + 2, y: cell.y + 2, width: cell.width - 5, height: cell.height - 5 };
    canvas.frame(inner, colour::contrasting(fill))
}

/// Lines that are seen on any colour: black on white.
pub(crate) fn outline<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    lines: &[[Pixel; 2]],
) -> Result<(), FigureError> {
    for (color, width) in [(colour::WHITE, 5), (colour::BLACK, 3)] {
        for line in lines {
            canvas.path(line, color, width)?;
        }
    }
    Ok(())
}

/// One of seven shapes, so that curves can be told apart without their colours.
pub(crate) fn marker<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    (x, y): Pixel,
    kind: usize,
    color: RGBColor,
) -> Result<(), FigureError> {
    match kind % 7 {
        0 => canvas.disc((x, y), 5, color),
        1 => canvas.fill(Rect { x: x - 5, y: y - 5, width: 10, height: 10 }, color),
        2 => canvas.polygon(&[(x, y - 7), (x + 7, y + 5), (x - 7, y + 5)], color),
        3 => canvas.polygon(&[(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y)], color),
        4 => canvas.polygon(&[(x, y + 7), (x + 7, y - 5), (x - 7, y - 5)], color),
        5 => {
            canvas.path(&[(x - 5, y - 5), (x + 5, y + 5)], color, 3)?;
            canvas.path(&[(x - 5, y + 5), (x + 5, y - 5)], color, 3)
        }
        _ => {
            canvas.path(&[(x - 6, y), (x + 6, y)], color, 3)?;
            canvas.path(&[(x, y - 6), (x, y + 6)], color, 3)
        }
    }
}

/// A panel's title, `(a) plogp`, and a line below it, from `top` on; [`PANEL_HEADING`] high.
pub(crate) fn panel_heading<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    (left, top): Pixel,
    width: i32,
    title: &str,
    detail: &str,
) -> Result<(), FigureError> {
    let title = font::shorten(title, PANEL, width)?;
    canvas.text((left, top + 13), &title, PANEL, colour::BLACK, Align::Left)?;
    let detail = font::shorten(detail, TEXT, width)?;
    canvas.text((left, top + 40), &detail, TEXT, colour::GREY, Align::Left)
}

/// Height of [`panel_heading`].
pub(crate) const PANEL_HEADING: i32 = 58;

/// `(a)`, `(b)`, ..., `(27)`.
pub(crate) fn panel_name(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index) if index < 26 => format!("({})", char::from(b'a' + index)),
        _ => format!("({})", index + 1),
    }
}

/// How many columns and rows hold `panels` of a given width.
pub(crate) fn columns_and_rows(panels: usize, panel_width: i32) -> (usize, usize) {
    let fitting = ((GREATEST_WIDTH - 2 * MARGIN) / panel_width.max(1)).max(1) as usize;
    let rows = panels.div_ceil(fitting).max(1);
    // Balanced: four panels are two rows of two, not three and one.
    (panels.div_ceil(rows).max(1), rows)
}
