//! The scale of penalties under a map.

use plotters::prelude::DrawingBackend;

use crate::{
    FigureError,
    canvas::{Align, Canvas, Rect, TEXT, TICK},
    colour::{self, GREATEST, LEAST},
    page::MARGIN,
};

/// Height with its numbers and the space below it.
pub(crate) const HEIGHT: i32 = 88;

const PATCH: i32 = 80;
const STEPS: i32 = 120;
const STEP: i32 = 5;
const TICKS: [u32; 7] = [5, 10, 20, 50, 100, 200, 300];

/// What a penalty is.
pub(crate) const PENALTY: &str = "penalty: time(decided) / time(best measured) - 1, in %";

/// Draws it at the left margin, from `top` on; `label` says what its percentages mean.
pub(crate) fn draw<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    top: i32,
    label: &str,
) -> Result<(), FigureError> {
    canvas.text((MARGIN, top + 10), label, TEXT, colour::BLACK, Align::Left)?;
    let (y, height) = (top + 26, 22);
    let none = Rect { x: MARGIN, y, width: PATCH, height };
    patch(canvas, none, colour::of_penalty(0.0), &format!("< {:.0} %", LEAST * 100.0))?;

    let bar = Rect { x: none.right() + 30, y, width: STEPS * STEP, height };
    for step in 0..STEPS {
        let position = (f64::from(step) + 0.5) / f64::from(STEPS);
        let slice = Rect { x: bar.x + step * STEP, y, width: STEP, height };
        canvas.fill(slice, colour::on_scale(position))?;
    }
    canvas.frame(bar, colour::GREY)?;
    for percent in TICKS {
        let position = (f64::from(percent) / 100.0 / LEAST).ln() / (GREATEST / LEAST).ln();
        let x = bar.x + (position * f64::from(bar.width)).round() as i32;
        canvas.path(&[(x, bar.bottom()), (x, bar.bottom() + 5)], colour::GREY, 1)?;
        let place = (x, bar.bottom() + 17);
        canvas.text(place, &format!("{percent} %"), TICK, colour::BLACK, Align::Center)?;
    }

    let above = Rect { x: bar.right() + 50, y, width: PATCH, height };
    patch(canvas, above, colour::of_penalty(f64::INFINITY), &format!("> {:.0} %", GREATEST * 100.0))
}

fn patch<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    rect: Rect,
    fill: plotters::style::RGBColor,
    text: &str,
) -> Result<(), FigureError> {
    canvas.fill(rect, fill)?;
    canvas.frame(rect, colour::GREY)?;
    let place = (rect.center().0, rect.bottom() + 17);
    canvas.text(place, text, TICK, colour::BLACK, Align::Center)
}
