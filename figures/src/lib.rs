//! Every picture, drawn from result files alone.
//!
//! | figure | drawn from | after |
//! |---|---|---|
//! | [`penalty_map`] | penalties | the paper's Figure 7 |
//! | [`decision_map`], [`measured_map`] | decisions, penalties | Figure 6 |
//! | [`parameters`] | a calibration | Figure 1 |
//! | [`curves`] | any series over message size or process count | Figures 2, 3 and 5 |
//! | [`gain`] | the default's times and the tuned ones | |
//!
//! The paper is Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations".
//!
//! A [`Figure`] is laid out when it is made; [`save`] writes it as SVG and PNG, both from the same
//! drawing code. Nothing depends on the machine: the font is part of the program (`font/`), and the
//! same input gives the same bytes.

#![forbid(unsafe_code)]

mod canvas;
mod colour;
mod decision_map;
mod error;
mod figure;
mod font;
mod gain;
mod map;
mod page;
mod parameters;
mod penalty_map;
mod plot;
mod raster;
mod scale_bar;
mod ticks;

pub use decision_map::{decision_map, measured_map};
pub use error::FigureError;
pub use figure::{Figure, save};
pub use gain::{Gain, GainPoint, gain, gains};
pub use parameters::parameters;
pub use penalty_map::penalty_map;
pub use plot::{Axis, Point, Quantity, Series, Trace, curves};
