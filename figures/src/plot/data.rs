//! What a plot shows.

use crate::ticks::Quantity;

/// An axis; all are logarithmic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// What is on it, such as `message size (count x type size)`.
    pub label: String,
    /// What it counts.
    pub quantity: Quantity,
}

/// A value with the interval that holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlotPoint {
    pub x: f64,
    pub y: f64,
    /// Lower end of the interval; equal to `y` where there is none.
    pub low: f64,
    /// Upper end of the interval; equal to `y` where there is none.
    pub high: f64,
}

impl PlotPoint {
    /// A value without an interval.
    pub const fn exact(x: f64, y: f64) -> Self {
        PlotPoint { x, y, low: y, high: y }
    }

    /// A logarithmic axis can show it.
    pub(super) fn is_drawable(&self) -> bool {
        [self.x, self.y].iter().all(|value| value.is_finite() && *value > 0.0)
    }
}

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// A line without markers, as for a model; intervals are a band.
    Line,
    /// Markers joined by a line, as for measurements; intervals are bars.
    Marked,
    /// Markers alone, as for residuals; intervals are bars.
    Scattered,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub trace: Trace,
    /// Its points; by ascending x where they are joined.
    pub points: Vec<PlotPoint>,
}

#[derive(Debug, Clone)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) detail: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Curve>,
    pub(crate) notes: Option<Notes>,
}

/// Short texts over the curves, above their x.
#[derive(Debug, Clone)]
pub(crate) struct Notes {
    pub(crate) label: String,
    pub(crate) texts: Vec<(f64, String)>,
}
