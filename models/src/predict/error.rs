use records::{Algorithm, Collective, Method, nearest};
use schedules::CallError;

use crate::{
    closed_forms::{COLLECTIVES, algorithms},
    simulated::SimulateError,
};

/// No time can be predicted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    /// The collective has no closed forms.
    #[error("{collective} has no closed forms (there are for: {})", names(&COLLECTIVES))]
    Collective { collective: Collective },
    /// The algorithm has no closed form for that collective.
    #[error(
        "{collective} has no closed form for '{algorithm}'{} (there are for: {})",
        hint(*.collective, *.algorithm),
        names(algorithms(*.collective))
    )]
    Algorithm {
        /// For which collective.
        collective: Collective,
        algorithm: Algorithm,
    },
    /// The method has no closed form.
    #[error("{collective} by the method '{method}' has no closed form: {reason}")]
    Method {
        /// For which collective.
        collective: Collective,
        method: Method,
        reason: &'static str,
    },
    /// Each algorithm has constants of its own, but this one has none.
    #[error("no constants were fitted for {collective} by '{method}'")]
    Constants {
        /// For which collective.
        collective: Collective,
        method: Method,
    },
    /// Segments were asked of an algorithm that has none.
    #[error("{collective} by '{algorithm}' has no segments; expected segment size 0")]
    Segments {
        /// For which collective.
        collective: Collective,
        algorithm: Algorithm,
    },
    /// The algorithm has no schedule for that collective, so that no model knows it.
    #[error("{0}")]
    Unknown(String),
    /// The algorithm cannot serve that call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The simulator gives no time.
    #[error(transparent)]
    Simulation(#[from] SimulateError),
    /// No process.
    #[error("0 ranks; a communicator has at least 1")]
    Procs,
    /// A barrier with a message size.
    #[error("a barrier of {bytes} bytes; a barrier carries none, expected 0")]
    BarrierBytes { bytes: u64 },
}

fn names<T: std::fmt::Display>(known: &[T]) -> String {
    known.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn hint(collective: Collective, given: Algorithm) -> String {
    nearest(given.name(), algorithms(collective).iter().map(|algorithm| algorithm.name()))
        .map(|name| format!("; the nearest is '{name}'"))
        .unwrap_or_default()
}
