//! The scale of colours under a map.

use plotters::prelude::{DrawingBackend, RGBColor};

use crate::{
    FigureError,
    canvas::{Align, Canvas, Pixel, Rect, TEXT, TICK},
    colour::{self, GREATEST, LEAST},
    page::MARGIN,
};

/// Height with its numbers and the space below it.
pub(crate) const HEIGHT: i32 = 88;

const PATCH: i32 = 80;
const HIGH: i32 = 22;
const STEPS: i32 = 84;
const STEP: i32 = 5;
const TICKS: [u32; 6] = [5, 10, 20, 50, 100, 300];

/// What a penalty is.
pub(crate) const PENALTY: &str =
    "penalty: time(decided) / time(best measured) - 1, in %; below 0 is noise";

/// What the colours of a map's cells say.
#[derive(Debug, Clone)]
pub(crate) enum ColourScale {
    /// Penalties; what their percentages mean.
    Penalty(&'static str),
    /// Ratios of two times; what their percentages mean.
    Ratio(String),
}

/// Draws it at the left margin, from `top` on.
pub(crate) fn draw<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    top: i32,
    scale: &ColourScale,
) -> Result<(), FigureError> {
    match scale {
        ColourScale::Penalty(label) => penalties(canvas, top, label),
        ColourScale::Ratio(label) => ratios(canvas, top, label),
    }
}

fn penalties<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    top: i32,
    label: &str,
) -> Result<(), FigureError> {
    canvas.text((MARGIN, top + 10), label, TEXT, colour::BLACK, Align::Left)?;
    let y = top + 26;
    let none = Rect { x: MARGIN, y, width: PATCH, height: HIGH };
    patch(canvas, none, colour::of_penalty(0.0), &format!("< {:.0} %", LEAST * 100.0))?;
    let place = (none.right() + 30, y);
    let ticks = TICKS.map(|percent| (f64::from(percent) / 100.0, format!("{percent} %")));
    let right = bar(canvas, place, STEPS, colour::on_scale, &ticks)?;
    let above = Rect { x: right + 50, y, width: PATCH, height: HIGH };
    patch(canvas, above, colour::of_penalty(f64::INFINITY), &format!("> {:.0} %", GREATEST * 100.0))
}

/// Both sides of 1: the faster the second time the farther to the left.
fn ratios<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    top: i32,
    label: &str,
) -> Result<(), FigureError> {
    canvas.text((MARGIN, top + 10), label, TEXT, colour::BLACK, Align::Left)?;
    let y = top + 26;
    let excesses = [10_u32, 50, 300].map(|percent| f64::from(percent) / 100.0);
    let faster = |position: f64| colour::on_sides(1.0 - position, false);
    let mirrored = excesses.map(|excess| {
        let text = format!("{:.0} %", 100.0 * (1.0 / (1.0 + excess) - 1.0));
        (LEAST * GREATEST / excess, text)
    });
    let right = bar(canvas, (MARGIN + 20, y), STEPS / 2, faster, &mirrored)?;
    let same = Rect { x: right + 40, y, width: PATCH, height: HIGH };
    patch(canvas, same, colour::EQUAL_TIMES, &format!("within {:.0} %", LEAST * 100.0))?;
    let ticks = excesses.map(|excess| (excess, format!("+{:.0} %", 100.0 * excess)));
    let slower = |position: f64| colour::on_sides(position, true);
    bar(canvas, (same.right() + 40, y), STEPS / 2, slower, &ticks).map(drop)
}

/// A logarithmic scale from [`LEAST`] to [`GREATEST`] with its ticks; the right end of it.
fn bar<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    (x, y): Pixel,
    steps: i32,
    color: impl Fn(f64) -> RGBColor,
    ticks: &[(f64, String)],
) -> Result<i32, FigureError> {
    let bar = Rect { x, y, width: steps * STEP, height: HIGH };
    for step in 0..steps {
        let position = (f64::from(step) + 0.5) / f64::from(steps);
        let slice = Rect { x: bar.x + step * STEP, y, width: STEP, height: HIGH };
        canvas.fill(slice, color(position))?;
    }
    canvas.frame(bar, colour::GREY)?;
    for (value, text) in ticks {
        let position = (value / LEAST).ln() / (GREATEST / LEAST).ln();
        let x = bar.x + (position * f64::from(bar.width)).round() as i32;
        canvas.path(&[(x, bar.bottom()), (x, bar.bottom() + 5)], colour::GREY, 1)?;
        canvas.text((x, bar.bottom() + 17), text, TICK, colour::BLACK, Align::Center)?;
    }
    Ok(bar.right())
}

fn patch<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    rect: Rect,
    fill: RGBColor,
    text: &str,
) -> Result<(), FigureError> {
    canvas.fill(rect, fill)?;
    canvas.frame(rect, colour::GREY)?;
    let place = (rect.center().0, rect.bottom() + 17);
    canvas.text(place, text, TICK, colour::BLACK, Align::Center)
}
