//! Texts, rectangles, lines and hatchings on any of plotters' backends, in whole pixels.

use plotters::{
    coord::Shift,
    drawing::DrawingArea,
    element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle, Text},
    prelude::{Color, DrawingBackend, RGBColor},
    style::{
        FontTransform, ShapeStyle, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use crate::{FigureError, colour, font};

/// Text heights in pixels.
pub(crate) const TITLE: u32 = 26;
pub(crate) const PANEL: u32 = 21;
pub(crate) const TEXT: u32 = 17;
pub(crate) const TICK: u32 = 16;

/// Kinds of dashes.
pub(crate) const DASHES: usize = 5;

/// A place in pixels from the upper left corner.
pub(crate) type Pixel = (i32, i32);

/// A rectangle of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: i32,
    pub(crate) height: i32,
}

impl Rect {
    pub(crate) fn right(&self) -> i32 {
        self.x + self.width
    }

    pub(crate) fn bottom(&self) -> i32 {
        self.y + self.height
    }

    pub(crate) fn center(&self) -> Pixel {
        (self.x + self.width / 2, self.y + self.height / 2)
    }
}

/// Lines over a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hatch {
    /// No lines.
    Plain,
    /// Lines along x + y, this far apart in x.
    Rising(i32),
    /// Lines along x - y, this far apart in x.
    Falling(i32),
    /// Level lines.
    Level(i32),
    /// Upright lines.
    Upright(i32),
}

/// How a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Center,
    Right,
}

/// Where to draw.
pub(crate) struct Canvas<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
}

impl<'a, DB: DrawingBackend> Canvas<'a, DB> {
    pub(crate) fn new(area: &'a DrawingArea<DB, Shift>) -> Self {
        Canvas { area }
    }

    pub(crate) fn area(&self) -> &DrawingArea<DB, Shift> {
        self.area
    }

    /// Writes a text whose capitals are centred on `place.1`.
    pub(crate) fn text(
        &self,
        place: Pixel,
        text: &str,
        em: u32,
        color: RGBColor,
        align: Align,
    ) -> Result<(), FigureError> {
        let style = font::style(em, color)?.pos(anchor(align));
        // The backends centre small letters; digits and capitals reach higher.
        let lower = (em as i32 + 5) / 11;
        self.write(text, style, (place.0, place.1 + lower))
    }

    /// Writes a text upwards, centred on `place`.
    pub(crate) fn upward(&self, place: Pixel, text: &str) -> Result<(), FigureError> {
        let style = font::style(TEXT, colour::BLACK)?
            .transform(FontTransform::Rotate270)
            .pos(anchor(Align::Center));
        self.write(text, style, place)
    }

    fn write(&self, text: &str, style: TextStyle<'_>, at: Pixel) -> Result<(), FigureError> {
        self.area.draw(&Text::new(font::printable(text), at, style)).map_err(FigureError::drawing)
    }

    pub(crate) fn fill(&self, rect: Rect, color: RGBColor) -> Result<(), FigureError> {
        let corners = [(rect.x, rect.y), (rect.right(), rect.bottom())];
        self.area.draw(&Rectangle::new(corners, color.filled())).map_err(FigureError::drawing)
    }

    pub(crate) fn frame(&self, rect: Rect, color: RGBColor) -> Result<(), FigureError> {
        let (right, bottom) = (rect.right(), rect.bottom());
        let corners = [
            (rect.x, rect.y),
            (right, rect.y),
            (right, bottom),
            (rect.x, bottom),
            (rect.x, rect.y),
        ];
        self.path(&corners, color, 1)
    }

    pub(crate) fn path(
        &self,
        points: &[Pixel],
        color: RGBColor,
        width: u32,
    ) -> Result<(), FigureError> {
        let style = ShapeStyle { color: color.to_rgba(), filled: false, stroke_width: width };
        self.area.draw(&PathElement::new(points.to_vec(), style)).map_err(FigureError::drawing)
    }

    /// A line in one of [`DASHES`] kinds of dashes; the first is unbroken.
    pub(crate) fn dashes(
        &self,
        points: &[Pixel],
        color: RGBColor,
        kind: usize,
    ) -> Result<(), FigureError> {
        let (length, space) = match kind % DASHES {
            0 => return self.path(points, color, 2),
            1 => (12, 6),
            2 => (4, 5),
            3 => (22, 5),
            _ => (9, 14),
        };
        let style = ShapeStyle { color: color.to_rgba(), filled: false, stroke_width: 2 };
        let element = DashedPathElement::new(points.to_vec(), length, space, style);
        self.area.draw(&element).map_err(FigureError::drawing)
    }

    /// Fills an area so that what is below it shows through.
    pub(crate) fn veil(&self, corners: &[Pixel], color: RGBColor) -> Result<(), FigureError> {
        self.area
            .draw(&Polygon::new(corners.to_vec(), color.mix(0.18)))
            .map_err(FigureError::drawing)
    }

    pub(crate) fn polygon(&self, corners: &[Pixel], color: RGBColor) -> Result<(), FigureError> {
        self.area
            .draw(&Polygon::new(corners.to_vec(), color.filled()))
            .map_err(FigureError::drawing)
    }

    pub(crate) fn disc(
        &self,
        center: Pixel,
        radius: i32,
        color: RGBColor,
    ) -> Result<(), FigureError> {
        self.area.draw(&Circle::new(center, radius, color.filled())).map_err(FigureError::drawing)
    }

    /// Hatches a rectangle; neighbours with the same hatching join without a seam.
    pub(crate) fn hatch(
        &self,
        rect: Rect,
        hatch: Hatch,
        color: RGBColor,
    ) -> Result<(), FigureError> {
        for line in hatch_lines(rect, hatch) {
            self.path(&line, color, 1)?;
        }
        Ok(())
    }
}

fn anchor(align: Align) -> Pos {
    let horizontal = match align {
        Align::Left => HPos::Left,
        Align::Center => HPos::Center,
        Align::Right => HPos::Right,
    };
    Pos::new(horizontal, VPos::Center)
}

/// The lines of a hatching inside a rectangle. They lie on lines of the whole picture, so that
/// neighbouring rectangles continue each other.
fn hatch_lines(rect: Rect, hatch: Hatch) -> Vec<[Pixel; 2]> {
    let (left, top, right, bottom) = (rect.x, rect.y, rect.right() - 1, rect.bottom() - 1);
    let multiples = |from: i32, to: i32, step: i32| {
        let step = step.max(1);
        (from.div_euclid(step)..=to.div_euclid(step)).map(move |k| k * step)
    };
    match hatch {
        Hatch::Plain => Vec::new(),
        Hatch::Rising(step) => multiples(left + top, right + bottom, step)
            .map(|sum| {
                let (from, to) = (left.max(sum - bottom), right.min(sum - top));
                [(from, sum - from), (to, sum - to)]
            })
            .filter(|[from, to]| from.0 < to.0)
            .collect(),
        Hatch::Falling(step) => multiples(left - bottom, right - top, step)
            .map(|difference| {
                let (from, to) = (left.max(difference + top), right.min(difference + bottom));
                [(from, from - difference), (to, to - difference)]
            })
            .filter(|[from, to]| from.0 < to.0)
            .collect(),
        Hatch::Level(step) => multiples(top, bottom, step)
            .filter(|y| (top..=bottom).contains(y))
            .map(|y| [(left, y), (right, y)])
            .collect(),
        Hatch::Upright(step) => multiples(left, right, step)
            .filter(|x| (left..=right).contains(x))
            .map(|x| [(x, top), (x, bottom)])
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hatchings_stay_inside_their_rectangle(
            x in 0_i32..500, y in 0_i32..500, width in 1_i32..90, height in 1_i32..90,
            step in 1_i32..12,
        ) {
            let rect = Rect { x, y, width, height };
            for hatch in [
                Hatch::Rising(step), Hatch::Falling(step), Hatch::Level(step), Hatch::Upright(step),
            ] {
                for (px, py) in hatch_lines(rect, hatch).into_iter().flatten() {
                    prop_assert!((x..rect.right()).contains(&px), "{hatch:?}: x {px}");
                    prop_assert!((y..rect.bottom()).contains(&py), "{hatch:?}: y {py}");
                }
            }
            if width > step {
                prop_assert!(!hatch_lines(rect, Hatch::Upright(step)).is_empty());
            }
        }
    }
}
