//! Every picture, drawn from result files and schedules alone.
//!
//! | figure | drawn from | after |
//! |---|---|---|
//! | [`penalty_map`] | penalties | the paper's Figure 7 |
//! | [`limit_map`] | times above the limit | |
//! | [`decision_map`] | decisions, penalties | Figure 6 |
//! | [`difference_map`] | what two decision functions take, with its times | |
//! | [`parameters`] | a calibration | Figure 1 |
//! | [`fits`] | a calibration's lines over the number of processes | |
//! | [`algorithm_fits`] | a calibration's constants of algorithms | |
//! | [`panels`] | any series over message size or process count | Figures 2, 3 and 5 |
//! | [`pair_map`] | the links between ranks | |
//! | [`gain`] | the default's times and the tuned ones | |
//! | [`relative`] | the times of several jobs by several methods | PGMPITuneLib's Figure 4 |
//! | [`tree`], [`dot`] | a topology of the schedules | |
//! | [`space_time`] | a schedule's activities in the simulator | |
//!
//! The paper is Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations".
//!
//! A [`Figure`] is laid out when it is made; [`save`] writes it as SVG and PNG, both from the same
//! drawing code, with its data as CSV and a gnuplot script that draws the same from that. Nothing depends on the machine: the font is part of the program (`font/`), and the
//! same input gives the same bytes.

#![forbid(unsafe_code)]

mod algorithm_fits;
mod canvas;
mod colour;
mod curves;
mod data;
mod decision_map;
mod difference_map;
mod error;
mod figure;
mod fits;
mod font;
mod gain;
mod map;
mod page;
mod pair_map;
mod parameters;
mod penalty_map;
mod plot;
mod raster;
mod relative;
mod scale_bar;
mod space_time;
mod space_time_page;
mod ticks;
mod tree;
mod tree_page;
mod uneven_tree;

pub use algorithm_fits::algorithm_fits;
pub use curves::panels;
pub use decision_map::decision_map;
pub use difference_map::{ComparedPoint, difference_map};
pub use error::FigureError;
pub use figure::{Figure, save, save_as};
pub use fits::fits;
pub use gain::{GainPanel, GainPoint, gain};
pub use pair_map::pair_map;
pub use parameters::parameters;
pub use penalty_map::{limit_map, penalty_map};
pub use plot::{Axis, Curve, PlotPoint, SHARED_LEGEND, Trace};
pub use relative::{RelativeMethod, RelativePanel, RelativePoint, relative};
pub use space_time::{MAX_MESSAGES, MAX_RANKS, space_time};
pub use ticks::Quantity;
pub use tree::{dot, has_fan_out, tree};
pub use uneven_tree::uneven_dot;
