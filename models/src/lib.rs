//! Models of point-to-point communication, closed forms, fits and decision functions.
//!
//! From what two ranks cost each other to what a collective costs, and which algorithm to take:
//!
//! 1. [`fit`] makes parameters of Hockney, LogP/LogGP and PLogP from raw observations; [`presets`]
//!    holds those of the paper.
//! 2. [`parameters`] evaluates them at a message size.
//! 3. [`closed_forms`] holds the paper's Tables 1 to 4, one file per collective, the three models
//!    beside each other, as printed and corrected ([`Forms`]).
//!    Beside them stand refined forms of what the schedules do; [`simulated`] follows a schedule where no form is.
//! 4. [`Predictor`] evaluates them at a [`Point`], with the uncertainty that the parameters give.
//! 5. [`decide`] takes the exact arg-min over algorithms and segment sizes.
//!
//! "The paper" is J. Pjesivac-Grbovic, T. Angskun, G. Bosilca, G. E. Fagg, E. Gabriel and
//! J. J. Dongarra, "Performance Analysis of MPI Collective Operations". All times are in seconds,
//! all sizes in bytes; what a message size means is defined by
//! [`Collective::message_size`](records::Collective::message_size).
//!
//! ```
//! use models::{Forms, Model, Point, Predictor, presets::preset};
//! use records::{Algorithm, Collective};
//!
//! let frodo = preset("frodo")?;
//! let predictor = Predictor::new(Model::LogGp, Forms::Corrected, &frodo.measured)?;
//! let point = Point::flat(Collective::Bcast, 8, 64 << 10);
//! let pipeline = predictor.predict(point, Algorithm::Pipeline, 1 << 10)?;
//! let linear = predictor.predict(point, Algorithm::Linear, 0)?;
//! assert!(pipeline < linear / 4.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod closed_forms;
pub mod compress;
mod curve;
pub mod decide;
pub mod explain;
pub mod fit;
mod limit;
mod minimise;
mod model;
pub mod parameters;
pub mod port_sharing;
mod predict;
pub mod presets;
mod reach;
pub mod simulated;
mod spreading;
pub mod transfer;

pub use closed_forms::algorithms;
pub use limit::{LimitCause, NetworkLimit, limit, limit_on_nodes};
pub use model::{Evaluator, Forms, Model, NetworkModel};
pub use predict::{FullPrediction, PredictError, Predictor, fan_outs, native_schedule};
pub use reach::Reach;
// What every prediction is about; part of this interface.
pub use records::Point;
